#include "sim/hardware/pagoda/master_sm.h"

#include <bit>
#include <cstring>
#include <utility>

#include "rewriter/support/check.h"

namespace gridloom::hardware::pagoda {

/// So many looks at a column find nothing before a scheduler warp's further ones are no longer simulated.
constexpr std::uint32_t kLooksBeforeParking = 4;

MasterSm::MasterSm(std::shared_ptr<const Master> master, const MasterShape& shape, std::uint32_t sm,
                   const WriteLog& log, Cycle hears, std::uint32_t mhz)
    : master_(std::move(master)),
      shape_(shape),
      sm_(sm),
      log_(log),
      hears_(hears),
      mhz_(mhz),
      parameters_{kTableAt, kControlAt, shape.rows, shape.entry_bytes, shape.pool_bytes},
      foreign_ready_(shape.entries()) {}

void MasterSm::AddBlock(std::uint32_t slot, std::uint32_t column) {
  Block& block = blocks_[slot];
  block.column = column;
  block.shared.assign(master_->code.shared_bytes, 0);
  for (std::uint32_t w = 0; w < shape_.warps; ++w) {
    block.warps.push_back(std::make_unique<resident::ResidentWarp>(
        master_->code,
        resident::ResidentPlace{
            .block = column, .threads = shape_.warps * resident::kLanes, .warp = w, .parameters = &parameters_}));
  }
  block.entered.assign(shape_.warps, timing::kNever);
  Column& own = columns_[column];
  own.ready.assign(shape_.rows, 0);
  own.sched.assign(shape_.rows, 0);
  own.tasks.resize(shape_.rows);
}

void MasterSm::Bring(Arrival arrival) { arrivals_.push_back(std::move(arrival)); }

/// What others have written, and copies have brought.
void MasterSm::Hear(Cycle now) {
  for (; !arrivals_.empty() && arrivals_.front().seen <= now; arrivals_.pop_front()) {
    Arrival& arrival = arrivals_.front();
    Column& column = columns_.at(arrival.entry / shape_.rows);
    const std::uint32_t row = arrival.entry % shape_.rows;
    column.tasks[row] = std::move(arrival.task);
    column.ready[row] = arrival.ready;
    column.sched[row] = 0;
  }
  for (; heard_ < log_.size() && log_[heard_].seen <= now; ++heard_) {
    if (log_[heard_].sm != sm_) Apply(log_[heard_]);
  }
}

void MasterSm::Apply(const TableWrite& write) {
  if (write.field == TableWrite::kControl) control_ = write.value;
  else if (write.field == offsetof(Entry, ready) || Owns(write.entry)) Word(write.entry, write.field) = write.value;
}

std::uint32_t& MasterSm::Word(std::uint32_t entry, std::uint32_t field) {
  const auto own = columns_.find(entry / shape_.rows);
  if (own == columns_.end()) return foreign_ready_[entry];
  return (field == offsetof(Entry, ready) ? own->second.ready : own->second.sched)[entry % shape_.rows];
}

timing::FedPiece MasterSm::Next(Cycle now, const timing::FedWarp& place) {
  Hear(now);
  now_ = now;
  slot_ = place.slot;
  asked_ = &blocks_.at(place.slot);
  resident::ResidentWarp& warp = *asked_->warps[place.number];
  if (Cycle& entered = asked_->entered[place.number]; entered != timing::kNever) {
    counts_.busy_cycles += now - std::exchange(entered, timing::kNever);
  } else if (warp.called()) {
    return RunTask(now, *asked_, place.number);
  } else if (const std::uint32_t ns = warp.TakeSleep(); ns != 0) {
    return {.kind = timing::FedPiece::Kind::kWait, .until = now + Cycle{ns} * mhz_ / 1000};
  }
  if (!shape_.polls && IsIdle(*asked_, place.number))
    return {.kind = timing::FedPiece::Kind::kWait, .until = timing::kNever};
  if (shape_.parks_schedulers && place.number == 0 && warp.IsAt(master_->scan)) {
    if (const Cycle length = SkippedLook(now, *asked_); length != 0)
      return {.kind = timing::FedPiece::Kind::kWait, .until = now + length};
  }
  wakes_.clear();
  if (!warp.Execute(*this, lanes_)) {
    GL_CHECK(warp.ended(), "lanes of the MasterKernel wait for each other at different barriers");
    return {.kind = timing::FedPiece::Kind::kEnd};
  }
  return {.kind = timing::FedPiece::Kind::kRun,
          .visits = {&warp.visit(), 1},
          .accesses = warp.accesses(),
          .lanes = &lanes_.trace(),
          .code = master_->decoded.get(),
          .wakes = wakes_};
}

/// The MasterKernel's tables, which begin with these records, are the first of its variables in shared memory.
MasterSm::Record MasterSm::RecordOf(const Block& block, std::uint32_t warp) {
  Record record;
  std::memcpy(&record, block.shared.data() + warp * sizeof record, sizeof record);
  return record;
}

/// The warp is about to look for a task, and there is none.
bool MasterSm::IsIdle(const Block& block, std::uint32_t number) const {
  if (!block.warps[number]->IsAt(master_->wait)) return false;
  return RecordOf(block, number).exec == Record::kFree;
}

std::uint32_t MasterSm::ReadyOf(std::uint32_t entry) const {
  const auto own = columns_.find(entry / shape_.rows);
  return own == columns_.end() ? foreign_ready_[entry] : own->second.ready[entry % shape_.rows];
}

/// A look at the block's column now would find a task to schedule, one whose predecessor's parameters have arrived, or
/// the end.
bool MasterSm::WouldFind(const Block& block) const {
  if (control_ != 0) return true;
  const Column& column = columns_.at(block.column);
  for (std::uint32_t row = 0; row < shape_.rows; ++row) {
    if (column.sched[row] == 1) return true;
    const std::uint32_t ready = column.ready[row];
    const bool follows = static_cast<std::int32_t>(ready) > 1 && ready - Entry::kFirstTask < shape_.entries();
    if (follows && ReadyOf(ready - Entry::kFirstTask) == ~0u) return true;
  }
  return false;
}

/// The scheduler warp begins to look at its column. How long that takes, if it need not be simulated: the last looks
/// have found nothing, and this one would not; it is taken to last as long as the last one that was simulated. Else 0.
Cycle MasterSm::SkippedLook(Cycle now, Block& block) {
  if (WouldFind(block)) {
    block.look_began = timing::kNever;
    block.looks_in_vain = 0;
    return 0;
  }
  if (block.looks_in_vain == kLooksBeforeParking) {
    ++counts_.skipped_looks;
    return block.look_length;
  }
  if (block.look_began != timing::kNever) {
    block.look_length = now - block.look_began;
    ++block.looks_in_vain;
  }
  block.look_began = now;
  return 0;
}

/// The warp has come to the call of a task: it runs one of the kernel's.
timing::FedPiece MasterSm::RunTask(Cycle now, Block& block, std::uint32_t number) {
  const Record record = RecordOf(block, number);
  Column& column = columns_.at(block.column);
  const std::shared_ptr<Task>& task = column.tasks.at(record.row);
  timing::FedBlock& runs = task->blocks.at(record.block);
  if (runs.number == timing::WarpFeed::kMostBlocks) {
    GL_CHECK(free_blocks_ != 0, "an SM runs more blocks of tasks than it has warps");
    runs.number = static_cast<std::uint32_t>(std::countr_zero(free_blocks_));
    DropIfCancelled(*task, runs);
    free_blocks_ &= free_blocks_ - 1;
    running_[runs.number] = {.task = task, .block = static_cast<std::size_t>(&runs - task->blocks.data())};
  }
  task->started = std::min(task->started, now);
  block.entered[number] = now;
  return {.kind = timing::FedPiece::Kind::kBlock, .block = &runs, .warp = record.first_thread / resident::kLanes};
}

void MasterSm::OnBlockEnd(std::uint32_t number, std::uint64_t warp_instructions, std::uint64_t thread_instructions) {
  Running& ended = running_[number];
  ended.task->warp_instructions += warp_instructions;
  ended.task->thread_instructions += thread_instructions;
  ended.task->blocks[ended.block].trace.reset();  // the task stays in its row until another comes there
  ended = {};
  free_blocks_ |= std::uint64_t{1} << number;
}

std::uint32_t MasterSm::Load(bool shared, std::uint64_t address, std::uint32_t bytes) {
  if (shared) {
    std::uint32_t value = 0;
    GL_CHECK(address + bytes <= asked_->shared.size(), "the MasterKernel reads beyond its shared memory");
    std::memcpy(&value, asked_->shared.data() + address, bytes);
    return value;
  }
  if (address == kControlAt + offsetof(passes::task::Control, end)) return control_;
  const std::uint64_t at = address - kTableAt;
  const auto entry = static_cast<std::uint32_t>(at / shape_.entry_bytes),
             field = static_cast<std::uint32_t>(at % shape_.entry_bytes);
  GL_CHECK(entry < shape_.entries() && field < sizeof(Entry), "the MasterKernel reads beyond the TaskTable");
  if (field == offsetof(Entry, ready) || field == offsetof(Entry, sched)) return Word(entry, field);
  const std::shared_ptr<Task>& task = columns_.at(entry / shape_.rows).tasks[entry % shape_.rows];
  return task == nullptr ? 0 : task->words[field / 4];
}

void MasterSm::Store(bool shared, std::uint64_t address, std::uint32_t bytes, std::uint64_t value) {
  if (shared) {
    GL_CHECK(address + bytes <= asked_->shared.size(), "the MasterKernel writes beyond its shared memory");
    std::memcpy(asked_->shared.data() + address, &value, bytes);
    const bool is_exec = address < sizeof(Record) * shape_.warps && address % sizeof(Record) == offsetof(Record, exec);
    if (is_exec && value != Record::kFree) {
      wakes_.push_back({.sm = sm_, .slot = slot_, .number = static_cast<std::uint32_t>(address / sizeof(Record))});
    }
    return;
  }
  // What a warp runs, which the host reads when a task has faulted.
  if (address >= kControlAt && address < kControlAt + passes::task::Control::BytesFor(shape_.columns, shape_.warps))
    return;
  const std::uint64_t at = address - kTableAt;
  const auto entry = static_cast<std::uint32_t>(at / shape_.entry_bytes),
             field = static_cast<std::uint32_t>(at % shape_.entry_bytes);
  GL_CHECK(entry < shape_.entries() && (field == offsetof(Entry, ready) || field == offsetof(Entry, sched)),
           "the MasterKernel writes beyond the TaskTable");
  const auto word = static_cast<std::uint32_t>(value);
  if (field == offsetof(Entry, ready) || Owns(entry)) Word(entry, field) = word;
  writes_.push_back({.seen = now_ + hears_, .entry = entry, .field = field, .value = word, .sm = sm_});
}

}  // namespace gridloom::hardware::pagoda
