// The host's side of Pagoda's TaskTable (T. T. Yeh and others, PPoPP 2017, 4.2): tasks are copied into entries that the
// host takes for free, each copy says that the parameters of the task before it have arrived, and what has ended is
// heard of in bulk, when it is needed.
//
// One thread spawns and waits. Nothing here knows a driver: a Port moves bytes between the host's table and the
// device's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rewriter/kernels/task_records.h"

namespace gridloom::tasks {

struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// A task as a launch describes it.
struct Task {
  std::uint32_t kernel = 0;  ///< its number in the MasterKernel
  Extent grid, block;
  std::uint32_t static_bytes = 0, dynamic_bytes = 0;  ///< of shared memory, for each block
  passes::task::Barrier barrier = passes::task::Barrier::kNone;
  bool full_warps = false;  ///< its blocks must be of whole warps
  bool full_rows = false;   ///< and so must their rows
  std::span<const std::byte> params;
};

/// A MasterKernel as it was launched.
struct TableShape {
  std::uint32_t columns = 1;  ///< blocks of the MasterKernel
  std::uint32_t rows = 32;    ///< entries of each column, at most 32
  std::uint32_t entry_bytes = 256;
  std::uint32_t warps = 31;             ///< of a block, the scheduler's not counted
  std::uint32_t pool_bytes = 32 << 10;  ///< of shared memory that a block has for tasks

  std::uint32_t entries() const { return columns * rows; }
  std::uint64_t bytes() const { return std::uint64_t{entries()} * entry_bytes; }
};

/// Why a task cannot be one under this MasterKernel; nothing when it can: "a block has 40 warps, the MasterKernel's
/// 31".
std::optional<const char*> WhyNotTask(const Task& task, const TableShape& shape);

/// Names a task: the entry it is in, and the how manieth it was there.
struct TaskId {
  std::uint32_t entry = 0;
  std::uint32_t round = 0;
};

class Port {
 public:
  virtual ~Port() = default;
  /// Copies to the device's table, behind all copies before it; the bytes may change when it returns.
  virtual void Write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Copies from the device's table and waits for it.
  virtual void Read(std::uint64_t offset, std::span<std::byte> bytes) = 0;
};

class TaskTable {
 public:
  /// The device's table is all zero.
  TaskTable(const TableShape& shape, Port& port);

  /// Gives the task to the device. Nothing when all entries are taken, as far as a look at the device's table tells:
  /// then some task has to end first. WhyNotTask has no objection.
  std::optional<TaskId> Spawn(const Task& task);
  /// Lets the task spawned last begin, too: another that would say so is not on its way.
  void Flush();
  /// The same, if the device lets it begin now; false when it has to look at the task before it first.
  bool TryFlush();
  /// Whether the task had ended when the device was last heard of; Update hears of it.
  bool Ended(TaskId task) const;
  void Update();
  /// Update word by word: for a port that gets at the device's table as at its own memory.
  void Look();

  std::uint32_t running() const { return running_; }
  bool full() const { return running_ == shape_.entries(); }
  std::uint64_t spawned() const { return spawned_; }
  std::uint64_t updates() const { return updates_; }

 private:
  std::uint32_t Word(std::uint32_t entry, std::uint32_t field) const;
  std::uint32_t ReadyOf(std::uint32_t entry);
  void Leave(std::uint32_t entry);
  std::optional<std::uint32_t> FreeEntry();

  const TableShape shape_;
  Port& port_;
  std::vector<bool> taken_;               ///< by entry, as the host knows
  std::vector<std::uint32_t> rounds_;     ///< by entry: of its task, the one that is or was there last
  std::vector<std::byte> copy_;           ///< of the device's table
  std::uint32_t next_ = 0;                ///< where the search goes on: across the columns, then down the rows
  std::optional<std::uint32_t> waiting_;  ///< entry of the task that the next one lets begin
  std::uint32_t running_ = 0;
  std::uint64_t spawned_ = 0, updates_ = 0;
};

}  // namespace gridloom::tasks
