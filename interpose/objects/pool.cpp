#include "interpose/objects/pool.h"

#include <algorithm>
#include <utility>

#include "interpose/objects/device.h"
#include "sim/exec/extent.h"

namespace gridloom::session {

using namespace cuda;

namespace {

constexpr std::uint64_t kBlockAlign = 512;

/// The pools of blocks that are in use.
struct Owners {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<MemoryPool>> by_address;
};

Owners& TheOwners() {
  static Owners* const owners = new Owners;
  return *owners;
}

}  // namespace

MemoryPool::~MemoryPool() { TrimLocked(0); }

std::uint64_t MemoryPool::Allocate(std::uint64_t bytes) {
  // memcheck: every block is an allocation of its own, as large as asked for, and is gone when it is freed.
  const std::uint64_t exact = device_.memory().remembers_freed() ? bytes : 0;
  const std::uint64_t asked = bytes;  // what counts as used, to the byte (tests/data/gpu/codes.txt)
  const exec::Extent rounded = exec::Extent(bytes).RoundedUp(kBlockAlign);
  if (!rounded.fits()) return 0;
  bytes = rounded.value();
  const std::lock_guard lock(mutex_);
  std::uint64_t address = 0;
  // A cached block serves requests of at least half its size.
  const auto found = cached_.lower_bound(bytes);
  if (found != cached_.end() && found->first <= 2 * bytes) {
    bytes = found->first;
    address = found->second;
    cached_bytes_ -= bytes;
    cached_.erase(found);
  } else {
    if (max_bytes_ != 0 && used_bytes_ + bytes > max_bytes_) return 0;
    if (max_bytes_ != 0 && used_bytes_ + cached_bytes_ + bytes > max_bytes_) TrimLocked(max_bytes_ - bytes);
    address = device_.memory().Allocate(exact != 0 ? exact : bytes, kBlockAlign, kind_, nullptr);
    if (address == 0 && !cached_.empty()) {
      TrimLocked(0);
      address = device_.memory().Allocate(exact != 0 ? exact : bytes, kBlockAlign, kind_, nullptr);
    }
    if (address == 0) return 0;
  }
  used_[address] = {bytes, asked, false};
  used_bytes_ += bytes;
  asked_bytes_ += asked;
  asked_high_ = std::max(asked_high_, asked_bytes_);
  reserved_high_ = std::max(reserved_high_, used_bytes_ + cached_bytes_);
  const std::lock_guard owners_lock(TheOwners().mutex);
  TheOwners().by_address[address] = shared_from_this();
  return address;
}

bool MemoryPool::BeginFree(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(address);
  return found != used_.end() && !std::exchange(found->second.freeing, true);
}

void MemoryPool::CancelFree(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (const auto found = used_.find(address); found != used_.end()) found->second.freeing = false;
}

void MemoryPool::Free(std::uint64_t address) {
  const std::shared_ptr<MemoryPool> self = shared_from_this();  // the block may be the last that keeps it
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(address);
  if (found == used_.end()) return;
  {
    const std::lock_guard owners_lock(TheOwners().mutex);
    TheOwners().by_address.erase(address);
  }
  const Block block = found->second;
  used_bytes_ -= block.bytes;
  asked_bytes_ -= block.asked;
  cached_bytes_ += block.bytes;
  cached_.emplace(block.bytes, address);
  used_.erase(found);
  if (closed_ || device_.memory().remembers_freed()) return TrimLocked(used_bytes_);
  // A driver gives memory above the threshold back at the next synchronisation; doing it only beyond a reserve keeps
  // loops that allocate and free fast.
  constexpr std::uint64_t kReserve = 64u << 20;
  if (used_bytes_ + cached_bytes_ > std::max(release_threshold_, used_bytes_ + kReserve)) {
    TrimLocked(std::max(release_threshold_, used_bytes_));
  }
}

void MemoryPool::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  TrimLocked(used_bytes_);
}

void MemoryPool::Trim(std::uint64_t keep) {
  const std::lock_guard lock(mutex_);
  TrimLocked(keep);
}

void MemoryPool::TrimLocked(std::uint64_t keep) {
  while (!cached_.empty() && used_bytes_ + cached_bytes_ > keep) {
    const auto largest = std::prev(cached_.end());
    device_.memory().Free(largest->second);
    cached_bytes_ -= largest->first;
    cached_.erase(largest);
  }
}

bool MemoryPool::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

CUresult MemoryPool::SetAttribute(CUmemPool_attribute attribute, const void* value) {
  const std::lock_guard lock(mutex_);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      reuse_flags_[attribute - 1] = *static_cast<const int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      release_threshold_ = *static_cast<const std::uint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (*static_cast<const std::uint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      reserved_high_ = used_bytes_ + cached_bytes_;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const std::uint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      asked_high_ = asked_bytes_;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult MemoryPool::GetAttribute(CUmemPool_attribute attribute, void* value) const {
  const std::lock_guard lock(mutex_);
  auto* const wide = static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = reuse_flags_[attribute - 1];
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *wide = release_threshold_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *wide = used_bytes_ + cached_bytes_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *wide = reserved_high_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *wide = asked_bytes_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *wide = asked_high_; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

std::uint64_t MemoryPool::used() const {
  const std::lock_guard lock(mutex_);
  return asked_bytes_;
}
std::uint64_t MemoryPool::used_high() const {
  const std::lock_guard lock(mutex_);
  return asked_high_;
}
std::uint64_t MemoryPool::reserved() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_ + cached_bytes_;
}
std::uint64_t MemoryPool::reserved_high() const {
  const std::lock_guard lock(mutex_);
  return reserved_high_;
}
void MemoryPool::ResetHigh() {
  const std::lock_guard lock(mutex_);
  asked_high_ = asked_bytes_;
  reserved_high_ = used_bytes_ + cached_bytes_;
}

std::shared_ptr<MemoryPool> MemoryPool::Find(std::uint64_t address) {
  const std::lock_guard lock(TheOwners().mutex);
  const auto found = TheOwners().by_address.find(address);
  return found == TheOwners().by_address.end() ? nullptr : found->second;
}

}  // namespace gridloom::session
