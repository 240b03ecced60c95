#include "interpose/tasks/task_table.h"

#include <algorithm>
#include <cstring>

namespace gridloom::tasks {

using passes::task::Barrier;
using passes::task::Entry;
using passes::task::Shared;

namespace {

std::uint32_t SharedBytesOf(const Task& task) { return (task.static_bytes + 15) / 16 * 16 + task.dynamic_bytes; }
std::uint64_t WarpsOf(const Extent& block) { return (block.count() + 31) / 32; }

}  // namespace

std::optional<const char*> WhyNotTask(const Task& task, const TableShape& shape) {
  if (task.grid.count() == 0 || task.block.count() == 0) return "it has no threads";
  if (WarpsOf(task.block) > shape.warps)
    return "its block has more warps than the MasterKernel's blocks have for tasks";
  if (task.full_warps && task.block.count() % 32 != 0) return "lanes exchange values, and its last warp is not full";
  if (task.full_rows && task.block.x % 32 != 0)
    return "lanes exchange values where their warp comes, and its rows are no whole warps";
  if (task.grid.count() > 0x7FFFFFFF / 32) return "it has too many blocks";
  if (SharedBytesOf(task) > shape.pool_bytes)
    return "its block needs more shared memory than the MasterKernel's blocks have for tasks";
  if (sizeof(Entry) + task.params.size() > shape.entry_bytes)
    return "its parameters are larger than an entry of the TaskTable";
  return std::nullopt;
}

TaskTable::TaskTable(const TableShape& shape, Port& port)
    : shape_(shape), port_(port), taken_(shape.entries()), rounds_(shape.entries()), copy_(shape.bytes()) {}

std::uint32_t TaskTable::Word(std::uint32_t entry, std::uint32_t field) const {
  std::uint32_t word = 0;
  std::memcpy(&word, copy_.data() + std::uint64_t{entry} * shape_.entry_bytes + field, sizeof word);
  return word;
}

/// Neighbours in this order are in different columns, so that all scheduler warps have something to do.
std::optional<std::uint32_t> TaskTable::FreeEntry() {
  for (std::uint32_t i = 0; i < shape_.entries(); ++i) {
    const std::uint32_t place = (next_ + i) % shape_.entries();
    const std::uint32_t entry = place % shape_.columns * shape_.rows + place / shape_.columns;
    if (taken_[entry]) continue;
    next_ = place + 1;
    return entry;
  }
  return std::nullopt;
}

std::optional<TaskId> TaskTable::Spawn(const Task& task) {
  std::optional<std::uint32_t> free = FreeEntry();
  if (!free) {
    Flush();  // it may be the only one that does not run
    Update();
    free = FreeEntry();
    if (!free) return std::nullopt;
  }
  const bool counts = task.barrier == Barrier::kNamed && task.block.count() % 32 != 0;
  // Without a task before it, whoever comes next lets this one begin. A number is that of an entry.
  const Entry head{.ready = waiting_ ? *waiting_ + Entry::kFirstTask : Entry::kThere,
                   .sched = 0,
                   .kernel = task.kernel,
                   .blocks = static_cast<std::uint32_t>(task.grid.count()),
                   .threads = static_cast<std::uint32_t>(task.block.count()),
                   .shared_bytes = SharedBytesOf(task),
                   .barrier = static_cast<std::uint32_t>(counts ? Barrier::kCounting : task.barrier),
                   .grid = {task.grid.x, task.grid.y, task.grid.z},
                   .block = {task.block.x, task.block.y, task.block.z},
                   .dynamic_bytes = task.dynamic_bytes,
                   .unused = {}};
  std::vector<std::byte> entry(sizeof head + (task.params.size() + 3) / 4 * 4);
  std::memcpy(entry.data(), &head, sizeof head);
  if (!task.params.empty()) std::memcpy(entry.data() + sizeof head, task.params.data(), task.params.size());
  taken_[*free] = true;
  ++rounds_[*free];
  ++running_;
  ++spawned_;
  port_.Write(std::uint64_t{*free} * shape_.entry_bytes, entry);
  waiting_ = *free;
  return TaskId{*free, rounds_[*free]};
}

std::uint32_t TaskTable::ReadyOf(std::uint32_t entry) {
  std::byte word[4];
  port_.Read(std::uint64_t{entry} * shape_.entry_bytes + offsetof(Entry, ready), word);
  std::uint32_t ready = 0;
  std::memcpy(&ready, word, sizeof ready);
  return ready;
}

void TaskTable::Flush() {
  while (!TryFlush()) {
  }
}

bool TaskTable::TryFlush() {
  if (!waiting_) return true;
  // Its scheduler warp first lets the task before it begin.
  if (ReadyOf(*waiting_) != Entry::kThere) return false;
  const std::uint64_t offset = std::uint64_t{*waiting_} * shape_.entry_bytes;
  // One copy after the other: if the second word arrived first, the task could have ended before the first one says
  // that it is to begin.
  for (const std::size_t field : {offsetof(Entry, ready), offsetof(Entry, sched)}) {
    std::vector<std::byte> word(4);
    std::memcpy(word.data(), &Entry::kRuns, sizeof Entry::kRuns);
    port_.Write(offset + field, word);
  }
  waiting_.reset();
  return true;
}

bool TaskTable::Ended(TaskId task) const { return rounds_[task.entry] != task.round || !taken_[task.entry]; }

void TaskTable::Update() {
  ++updates_;
  port_.Read(0, copy_);
  for (std::uint32_t entry = 0; entry < shape_.entries(); ++entry) {
    if (!taken_[entry] || entry == waiting_ || Word(entry, offsetof(Entry, ready)) != 0) continue;
    Leave(entry);
  }
}

void TaskTable::Look() {
  for (std::uint32_t entry = 0; entry < shape_.entries(); ++entry) {
    if (taken_[entry] && entry != waiting_ && ReadyOf(entry) == 0) Leave(entry);
  }
}

void TaskTable::Leave(std::uint32_t entry) {
  taken_[entry] = false;
  --running_;
}

}  // namespace gridloom::tasks
