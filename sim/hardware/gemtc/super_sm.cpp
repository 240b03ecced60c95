#include "sim/hardware/gemtc/super_sm.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "rewriter/support/check.h"

namespace gridloom::hardware::gemtc {

SuperSm::SuperSm(std::shared_ptr<const SuperKernel> code, std::shared_ptr<const Batch> batch, std::uint32_t sm,
                 const std::vector<QueueWrite>& log, Cycle hears)
    : code_(std::move(code)), batch_(std::move(batch)), sm_(sm), log_(log), hears_(hears) {
  words_[offsetof(Queue, count) / 4] = static_cast<std::uint32_t>(batch_->blocks.size());
}

void SuperSm::AddBlock(std::uint32_t slot, std::uint32_t number) {
  Block& block = blocks_[slot];
  block.shared.assign(code_->code.shared_bytes, 0);
  block.warps.clear();
  for (std::uint32_t w = 0; w < batch_->threads / resident::kLanes; ++w) {
    block.warps.push_back(
        {.code = std::make_unique<resident::ResidentWarp>(
             code_->code, resident::ResidentPlace{
                              .block = number, .threads = batch_->threads, .warp = w, .parameters = &parameters_})});
  }
}

void SuperSm::Answer(const QueueAct& act, std::uint32_t before) {
  blocks_.at(act.slot).warps[act.number].answer = before;
}

timing::FedPiece SuperSm::Next(Cycle now, const timing::FedWarp& place) {
  for (; heard_ < log_.size() && log_[heard_].seen <= now; ++heard_) words_[log_[heard_].word] = log_[heard_].value;
  now_ = now;
  place_ = place;
  asked_ = &blocks_.at(place.slot);
  Warp& warp = asked_->warps[place.number];
  if (warp.entered != timing::kNever) {
    busy_cycles_ += now - std::exchange(warp.entered, timing::kNever);
  } else if (warp.code->called()) {
    return RunTask(now, warp, place.number);
  } else if (warp.code->asks()) {
    if (now < warp.asked + hears_) return {.kind = timing::FedPiece::Kind::kWait, .until = warp.asked + hears_};
    GL_CHECK(warp.answer.has_value(), "a warp of the SuperKernel was not answered");
    warp.code->Answer(*std::exchange(warp.answer, std::nullopt));
  }
  if (!warp.code->Execute(*this, lanes_)) {
    GL_CHECK(warp.code->ended(), "lanes of the SuperKernel wait for each other at different barriers");
    return {.kind = timing::FedPiece::Kind::kEnd};
  }
  if (warp.code->asks()) warp.asked = now;
  return {.kind = timing::FedPiece::Kind::kRun,
          .visits = {&warp.code->visit(), 1},
          .accesses = warp.code->accesses(),
          .lanes = &lanes_.trace(),
          .code = code_->decoded.get()};
}

/// The warp has come to the call of a task: it runs the one of its number of the task's block.
timing::FedPiece SuperSm::RunTask(Cycle now, Warp& warp, std::uint32_t number) {
  // The number of the task that the block has taken is the SuperKernel's first variable in shared memory.
  std::uint32_t task = 0;
  std::memcpy(&task, asked_->shared.data(), sizeof task);
  const QueuedBlock& queued = batch_->blocks.at(task);
  timing::FedBlock& runs = queued.task->blocks.at(queued.block);
  if (runs.number == timing::WarpFeed::kMostBlocks) {
    GL_CHECK(free_blocks_ != 0, "an SM runs more blocks of tasks than it has warps");
    runs.number = static_cast<std::uint32_t>(std::countr_zero(free_blocks_));
    pagoda::DropIfCancelled(*queued.task, runs);
    free_blocks_ &= free_blocks_ - 1;
    running_[runs.number] = queued.task.get();
  }
  queued.task->started = std::min(queued.task->started, now);
  warp.entered = now;
  return {.kind = timing::FedPiece::Kind::kBlock, .block = &runs, .warp = number};
}

void SuperSm::OnBlockEnd(std::uint32_t number, std::uint64_t warp_instructions, std::uint64_t thread_instructions) {
  running_[number]->warp_instructions += warp_instructions;
  running_[number]->thread_instructions += thread_instructions;
  free_blocks_ |= std::uint64_t{1} << number;
}

std::uint32_t SuperSm::Load(bool shared, std::uint64_t address, std::uint32_t bytes) {
  std::uint32_t value = 0;
  if (shared) {
    GL_CHECK(address + bytes <= asked_->shared.size(), "the SuperKernel reads beyond its shared memory");
    std::memcpy(&value, asked_->shared.data() + address, bytes);
    return value;
  }
  const std::uint64_t at = address - kQueueAt;
  if (at < sizeof(Queue)) return words_.at(at / 4);
  const QueuedBlock& queued = batch_->blocks.at((at - sizeof(Queue)) / sizeof(QueuedTask));
  const bool kernel = (at - sizeof(Queue)) % sizeof(QueuedTask) == offsetof(QueuedTask, kernel);
  return kernel ? queued.kernel
                : static_cast<std::uint32_t>(queued.task->blocks[queued.block].trace->warps.size()) * resident::kLanes;
}

void SuperSm::Store(bool shared, std::uint64_t address, std::uint32_t bytes, std::uint64_t value) {
  if (shared) {
    GL_CHECK(address + bytes <= asked_->shared.size(), "the SuperKernel writes beyond its shared memory");
    std::memcpy(asked_->shared.data() + address, &value, bytes);
    return;
  }
  const auto word = static_cast<std::uint32_t>((address - kQueueAt) / 4);
  words_.at(word) = static_cast<std::uint32_t>(value);
  acts_.push_back({.at = now_,
                   .sm = sm_,
                   .slot = place_.slot,
                   .number = place_.number,
                   .word = word,
                   .value = static_cast<std::uint32_t>(value)});
}

void SuperSm::CompareAndSwap(std::uint64_t address, std::uint32_t expected, std::uint32_t value) {
  acts_.push_back({.at = now_,
                   .sm = sm_,
                   .slot = place_.slot,
                   .number = place_.number,
                   .word = static_cast<std::uint32_t>((address - kQueueAt) / 4),
                   .value = value,
                   .exchanges = true,
                   .expected = expected});
}

}  // namespace gridloom::hardware::gemtc
