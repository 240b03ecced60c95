// What the MasterKernel does on one SM: its blocks there with their shared memory and warps, the columns of the
// TaskTable that they look at, and what has been heard of the others. While a window is simulated, one thread has it;
// between windows the host's side.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "sim/hardware/pagoda/master.h"
#include "sim/hardware/pagoda/resident_warp.h"

namespace gridloom::hardware::pagoda {

/// Writes of all, in the order in which they are seen.
using WriteLog = std::vector<TableWrite>;

/// An entry that a copy has brought.
struct Arrival {
  Cycle seen = 0;
  std::uint32_t entry = 0;
  std::uint32_t ready = 0;
  std::shared_ptr<Task> task;
};

class MasterSm final : private resident::ResidentMemory {
 public:
  /// `hears`: cycles until others see what this SM writes.
  MasterSm(std::shared_ptr<const Master> master, const MasterShape& shape, std::uint32_t sm, const WriteLog& log,
           Cycle hears, std::uint32_t mhz);

  // ---- between windows
  void AddBlock(std::uint32_t slot, std::uint32_t column);
  void Bring(Arrival arrival);
  /// What it has written since the last call, in the order of time.
  std::vector<TableWrite> TakeWrites() { return std::exchange(writes_, {}); }
  bool has_writes() const { return !writes_.empty(); }
  /// How much of the log the SM has heard of. Forget: so many writes at its beginning are no longer there.
  std::size_t heard() const { return heard_; }
  void Forget(std::size_t writes) { heard_ -= writes; }
  bool Owns(std::uint32_t entry) const { return columns_.contains(entry / shape_.rows); }
  struct Counts {
    std::uint64_t busy_cycles = 0;    ///< that its warps have spent in tasks which they have left
    std::uint64_t skipped_looks = 0;  ///< of parked scheduler warps
  };
  const Counts& counts() const { return counts_; }

  // ---- while a window is simulated
  timing::FedPiece Next(Cycle now, const timing::FedWarp& warp);
  void OnBlockEnd(std::uint32_t number, std::uint64_t warp_instructions, std::uint64_t thread_instructions);

 private:
  struct Column {
    std::vector<std::uint32_t> ready, sched;  ///< by row
    std::vector<std::shared_ptr<Task>> tasks;
  };
  struct Block {
    std::uint32_t column = 0;
    std::vector<std::uint8_t> shared;
    std::vector<std::unique_ptr<resident::ResidentWarp>> warps;
    std::vector<Cycle> entered;  ///< by warp: since when it runs a task; kNever: it does not
    // The looks of its scheduler warp at the column.
    Cycle look_began = timing::kNever;  ///< the one that is under way
    Cycle look_length = 0;              ///< of the last one that was simulated
    std::uint32_t looks_in_vain = 0;    ///< the last ones, in a row
  };
  struct Running {
    std::shared_ptr<Task> task;
    std::size_t block = 0;
  };

  using Record = passes::task::Warp;
  static Record RecordOf(const Block& block, std::uint32_t warp);
  void Hear(Cycle now);
  void Apply(const TableWrite& write);
  bool IsIdle(const Block& block, std::uint32_t number) const;
  bool WouldFind(const Block& block) const;
  Cycle SkippedLook(Cycle now, Block& block);
  timing::FedPiece RunTask(Cycle now, Block& block, std::uint32_t number);
  std::uint32_t& Word(std::uint32_t entry, std::uint32_t field);
  std::uint32_t ReadyOf(std::uint32_t entry) const;
  std::uint32_t Load(bool shared, std::uint64_t address, std::uint32_t bytes) override;
  void Store(bool shared, std::uint64_t address, std::uint32_t bytes, std::uint64_t value) override;

  const std::shared_ptr<const Master> master_;
  const MasterShape shape_;
  const std::uint32_t sm_;
  const WriteLog& log_;
  const Cycle hears_;
  const std::uint32_t mhz_;
  const std::vector<std::uint64_t> parameters_;
  std::size_t heard_ = 0;  // of the log
  std::uint32_t control_ = 0;
  std::vector<std::uint32_t> foreign_ready_;  // by entry, of columns that other SMs look at
  std::map<std::uint32_t, Column> columns_;
  std::map<std::uint32_t, Block> blocks_;  // by slot
  std::deque<Arrival> arrivals_;
  std::vector<TableWrite> writes_;
  resident::LaneWords lanes_;
  std::array<Running, timing::WarpFeed::kMostBlocks> running_;  // by number of the block
  std::uint64_t free_blocks_ = ~std::uint64_t{0};
  Counts counts_;
  std::vector<timing::FedWarp> wakes_;
  Cycle now_ = 0;           // of the question
  Block* asked_ = nullptr;  // whose warp asked
  std::uint32_t slot_ = 0;  // of that block
};

}  // namespace gridloom::hardware::pagoda
