#include "interpose/real/slice_counts.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "interpose/real/call.h"
#include "interpose/real/own_thread.h"

namespace gridloom::api {

using namespace cuda;

namespace {

constexpr std::uint32_t kCounts = 1U << 16;
constexpr std::size_t kCountBytes = sizeof(std::uint32_t);
constexpr std::chrono::milliseconds kCountsEvery{50};

}  // namespace

// ---- CountTable

std::unique_ptr<CountTable> CountTable::Make() {
  std::unique_ptr<CountTable> made(new CountTable);
  const bool all =
      Real<Fn::cuCtxGetCurrent>(&made->context_) == CUDA_SUCCESS &&
      Real<Fn::cuMemAlloc_v2>(&made->counts_, kCounts * kCountBytes) == CUDA_SUCCESS &&
      Real<Fn::cuMemHostAlloc>(&made->copy_, kCounts * kCountBytes, 0u) == CUDA_SUCCESS &&
      Real<Fn::cuStreamCreate>(&made->stream_, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) == CUDA_SUCCESS &&
      Real<Fn::cuEventCreate>(&made->cleared_, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING)) == CUDA_SUCCESS;
  return all ? std::move(made) : nullptr;
}

/// Of one that was not made to its end; those that were are kept for later slices.
CountTable::~CountTable() {
  if (cleared_ != nullptr) static_cast<void>(Real<Fn::cuEventDestroy_v2>(cleared_));
  if (stream_ != nullptr) static_cast<void>(Real<Fn::cuStreamDestroy_v2>(stream_));
  if (copy_ != nullptr) static_cast<void>(Real<Fn::cuMemFreeHost>(copy_));
  if (counts_ != 0) static_cast<void>(Real<Fn::cuMemFree_v2>(counts_));
}

bool CountTable::Clear(bool per_thread, CUstream stream, std::uint64_t ctas) {
  launches_.clear();
  used_ = 0;
  room_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(kCounts, ctas));
  copying_ = false;
  ended_ = 0;
  // Copies come behind it, and so do not see the counts of an earlier slice.
  return RealTwin<Fn::cuMemsetD32Async>(per_thread, counts_, 0u, std::size_t{room_}, stream) == CUDA_SUCCESS &&
         RealTwin<Fn::cuEventRecord>(per_thread, cleared_, stream) == CUDA_SUCCESS &&
         Real<Fn::cuStreamWaitEvent>(stream_, cleared_, 0u) == CUDA_SUCCESS;
}

CountTable::Place CountTable::Add(std::uint64_t ctas, std::uint32_t threads_per_cta) {
  const auto needed = [&](std::uint32_t shift) { return ((ctas - 1) >> shift) + 1; };
  std::uint32_t shift = 0;
  while (needed(shift) > room_ - used_ && needed(shift) > 1) ++shift;
  if (ctas == 0 || needed(shift) > room_ - used_) return {};
  launches_.push_back({used_, shift, ctas, threads_per_cta});
  const Place place{counts_ + used_ * kCountBytes, shift};
  used_ += static_cast<std::uint32_t>(needed(shift));
  return place;
}

/// A count that is full is of CTAs that have run.
std::uint64_t CountTable::EndedOf(const Launch& launch) const {
  const auto* const counts = static_cast<const std::uint32_t*>(copy_) + launch.first;
  const std::uint64_t together = std::uint64_t{1} << launch.shift;
  std::uint64_t ended = 0;
  for (std::uint64_t first = 0; first < launch.ctas; first += together) {
    const std::uint64_t ctas = std::min(together, launch.ctas - first);
    if (counts[first >> launch.shift] >= ctas * launch.threads_per_cta) ended += ctas;
  }
  return ended;
}

std::uint64_t CountTable::Ended() {
  if (copying_) {
    if (Real<Fn::cuStreamQuery>(stream_) != CUDA_SUCCESS) return ended_;
    ended_ = 0;
    for (const Launch& launch : launches_) ended_ += EndedOf(launch);
  }
  copying_ = used_ != 0 && Real<Fn::cuMemcpyDtoHAsync_v2>(copy_, counts_, used_ * kCountBytes, stream_) == CUDA_SUCCESS;
  return ended_;
}

// ---- SliceCounts

std::shared_ptr<CountTable> SliceCounts::Begin(const protocol::Client::Ticket& ticket, std::uint64_t context,
                                               bool per_thread, CUstream stream, std::uint64_t done,
                                               std::uint64_t end) {
  if (ticket.launch == 0) return nullptr;
  const OutsideCaptures outside;
  std::shared_ptr<CountTable> table;
  {
    const std::lock_guard lock(mutex_);
    auto& tables = free_[context];
    if (!tables.empty()) {
      table = std::move(tables.back());
      tables.pop_back();
    }
  }
  if (table == nullptr) table = CountTable::Make();
  if (table == nullptr || !table->Clear(per_thread, stream, end - done)) return nullptr;
  const std::lock_guard lock(mutex_);
  slices_.push_back({ticket, context, done, end, done, table});
  if (!std::exchange(looks_, true)) StartThread([this] { Look(); });
  begun_.notify_one();
  return table;
}

void SliceCounts::End(const std::shared_ptr<CountTable>& table, bool over) {
  if (table == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto slice = std::ranges::find(slices_, table, &Slice::table);
  if (slice == slices_.end()) return;
  (over ? free_[slice->context] : lost_).push_back(table);
  slices_.erase(slice);
}

/// The broker hears of the slice's end from whoever has launched it.
void SliceCounts::LookAt(Slice& slice) {
  const std::uint64_t done = std::min(slice.done + slice.table->Ended(), slice.end - 1);
  if (done <= slice.told) return;
  slice.told = done;
  client_.Progress(slice.ticket, done);
}

void SliceCounts::Look() {
  const OutsideCaptures outside;
  CUcontext current = nullptr;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      begun_.wait(lock, [&] { return !slices_.empty(); });
    }
    std::this_thread::sleep_for(kCountsEvery);  // most slices are over by then
    const std::lock_guard lock(mutex_);
    for (Slice& slice : slices_) {
      if (slice.table->context() != current)
        static_cast<void>(Real<Fn::cuCtxSetCurrent>(current = slice.table->context()));
      LookAt(slice);
    }
  }
}

}  // namespace gridloom::api
