#include "sim/exec/runtime/memcheck/async_copies.h"

#include <algorithm>

#include "sim/exec/contract/abi.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kChunkShift = 4;  // bytes of a chunk, as a power of two

}  // namespace

void AsyncCopies::Prepare(std::uint32_t shared_bytes, std::uint32_t warps) {
  threads_.resize(std::size_t{warps} * kWarpSize);
  chunks_.assign((shared_bytes >> kChunkShift) + 1, 0);
  count_ = 1;  // so that all is cleared
  BeginCta();
}

void AsyncCopies::BeginCta() {
  for (Thread& thread : threads_) thread.group = 0;
  if (count_ == 0) return;
  for (Thread& thread : threads_) thread.copies.clear();
  bound_.clear();
  count_ = 0;
  std::ranges::fill(chunks_, 0);
}

AsyncCopies::Thread& AsyncCopies::ThreadOf(std::uint32_t warp, std::uint32_t lane) {
  return threads_[warp * kWarpSize + lane];
}

void AsyncCopies::Count(const Copy& copy, std::uint32_t step) {
  count_ += static_cast<std::int32_t>(step);
  for (std::uint32_t at = copy.begin >> kChunkShift; at <= (copy.end - 1) >> kChunkShift; ++at) chunks_[at] += step;
}

void AsyncCopies::Begin(Copy copy) {
  if (copy.begin >= copy.end || (copy.end - 1) >> kChunkShift >= chunks_.size()) return;
  Thread& thread = ThreadOf(copy.warp, copy.lane);
  copy.group = thread.group;
  Count(copy, 1);
  (copy.mbarrier ? bound_ : thread.copies).push_back(copy);
}

void AsyncCopies::Commit(std::uint32_t warp, std::uint32_t lane) { ++ThreadOf(warp, lane).group; }

std::vector<AsyncCopies::Copy> AsyncCopies::Await(std::uint32_t warp, std::uint32_t lane, std::uint32_t groups,
                                                  bool all) {
  Thread& thread = ThreadOf(warp, lane);
  std::vector<Copy> ended;
  std::erase_if(thread.copies, [&](const Copy& copy) {
    if (!all && std::uint64_t{copy.group} + groups >= thread.group) return false;
    ended.push_back(copy);
    return true;
  });
  for (const Copy& copy : ended) Count(copy, ~0u);
  return ended;
}

void AsyncCopies::Bind(std::uint32_t warp, std::uint32_t lane, const void* mbarrier) {
  std::vector<Copy>& copies = ThreadOf(warp, lane).copies;
  for (Copy& copy : copies) {
    copy.mbarrier = mbarrier;
    bound_.push_back(copy);
  }
  copies.clear();
}

void AsyncCopies::EndPhase(const void* mbarrier) {
  for (Copy& copy : bound_)
    if (copy.mbarrier == mbarrier) copy.landed = true;
}

void AsyncCopies::SeeEnd(const void* mbarrier) {
  std::erase_if(bound_, [&](const Copy& copy) {
    if (copy.mbarrier != mbarrier || !copy.landed) return false;
    Count(copy, ~0u);
    return true;
  });
}

bool AsyncCopies::MayWrite(std::uint64_t begin, std::uint64_t end) const {
  if (empty() || begin >= end) return false;
  const std::uint64_t last = std::min<std::uint64_t>((end - 1) >> kChunkShift, chunks_.size() - 1);
  for (std::uint64_t at = begin >> kChunkShift; at <= last; ++at)
    if (chunks_[at] != 0) return true;
  return false;
}

const AsyncCopies::Copy* AsyncCopies::Find(std::uint32_t begin, std::uint32_t end) const {
  if (!MayWrite(begin, end)) return nullptr;
  const auto overlaps = [&](const Copy& copy) { return copy.begin < end && begin < copy.end; };
  for (const Thread& thread : threads_) {
    const auto found = std::ranges::find_if(thread.copies, overlaps);
    if (found != thread.copies.end()) return &*found;
  }
  const auto found = std::ranges::find_if(bound_, overlaps);
  return found == bound_.end() ? nullptr : &*found;
}

}  // namespace gridloom::exec
