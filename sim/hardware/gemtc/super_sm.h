// What the SuperKernel does on one SM: its blocks there, and what they know of the queue. While a window is simulated
// one thread has it; between windows the host's side, which brings what all SMs did to the queue into one order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/hardware/gemtc/super_kernel.h"
#include "sim/hardware/pagoda/master.h"
#include "sim/hardware/pagoda/resident_warp.h"

namespace gridloom::hardware::gemtc {

using timing::Cycle;

/// Where it keeps the queue: an address space of its own.
inline constexpr std::uint64_t kQueueAt = std::uint64_t{1} << 32;
inline constexpr std::uint32_t kAddressSpace = 0x7100'0000;

/// The words of the queue that change, as they are at some time.
using QueueWords = std::array<std::uint32_t, 3>;

/// Something that a warp does to them: a store, or an exchange that it waits for.
struct QueueAct {
  Cycle at = 0;
  std::uint32_t sm = 0, slot = 0, number = 0;  ///< whose
  std::uint32_t word = 0, value = 0;
  bool exchanges = false;
  std::uint32_t expected = 0;
};
/// A word after an act.
struct QueueWrite {
  Cycle seen = 0;
  std::uint32_t word = 0, value = 0;
};

/// Tasks of a batch, in the order of the queue: each one block.
struct QueuedBlock {
  std::shared_ptr<pagoda::Task> task;
  std::uint32_t block = 0, kernel = 0;
};
struct Batch {
  std::vector<QueuedBlock> blocks;
  std::uint32_t threads = 0;  ///< of a block of the SuperKernel
};

class SuperSm final : private resident::ResidentMemory {
 public:
  /// `hears`: cycles until others see what a warp does.
  SuperSm(std::shared_ptr<const SuperKernel> code, std::shared_ptr<const Batch> batch, std::uint32_t sm,
          const std::vector<QueueWrite>& log, Cycle hears);

  // ---- between windows
  void AddBlock(std::uint32_t slot, std::uint32_t number);
  std::vector<QueueAct> TakeActs() { return std::exchange(acts_, {}); }
  bool has_acts() const { return !acts_.empty(); }
  void Answer(const QueueAct& act, std::uint32_t before);
  std::uint64_t busy_cycles() const { return busy_cycles_; }

  // ---- while a window is simulated
  timing::FedPiece Next(Cycle now, const timing::FedWarp& warp);
  void OnBlockEnd(std::uint32_t number, std::uint64_t warp_instructions, std::uint64_t thread_instructions);

 private:
  struct Warp {
    std::unique_ptr<resident::ResidentWarp> code;
    Cycle entered = timing::kNever;
    Cycle asked = timing::kNever;
    std::optional<std::uint32_t> answer{};
  };
  struct Block {
    std::vector<std::uint8_t> shared;
    std::vector<Warp> warps;
  };

  timing::FedPiece RunTask(Cycle now, Warp& warp, std::uint32_t number);
  std::uint32_t Load(bool shared, std::uint64_t address, std::uint32_t bytes) override;
  void Store(bool shared, std::uint64_t address, std::uint32_t bytes, std::uint64_t value) override;
  void CompareAndSwap(std::uint64_t address, std::uint32_t expected, std::uint32_t value) override;

  const std::shared_ptr<const SuperKernel> code_;
  const std::shared_ptr<const Batch> batch_;
  const std::uint32_t sm_;
  const std::vector<QueueWrite>& log_;
  const Cycle hears_;
  const std::vector<std::uint64_t> parameters_{kQueueAt};
  std::size_t heard_ = 0;
  QueueWords words_{};
  std::map<std::uint32_t, Block> blocks_;  // by slot
  std::vector<QueueAct> acts_;
  resident::LaneWords lanes_;
  std::array<pagoda::Task*, timing::WarpFeed::kMostBlocks> running_{};
  std::uint64_t free_blocks_ = ~std::uint64_t{0};
  std::uint64_t busy_cycles_ = 0;
  Cycle now_ = 0;  // of the question
  timing::FedWarp place_;
  Block* asked_ = nullptr;
};

}  // namespace gridloom::hardware::gemtc
