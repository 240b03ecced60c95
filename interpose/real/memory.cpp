#include "interpose/real/memory.h"

#include <algorithm>

#include "interpose/objects/array.h"
#include "interpose/observe/broker_link.h"
#include "interpose/real/call.h"

namespace gridloom::api {

using namespace cuda;

std::uint64_t BytesOfArray(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
  constexpr unsigned kMostLevels = 32;
  if ((d.flags & (kArray3DSparse | kArray3DDeferredMapping)) != 0) return 0;
  // Formats that we do not know take no more than four bytes a channel; the driver refuses what makes no sense.
  const auto format = session::FormatOf(d.format);
  const std::uint64_t texel =
      std::uint64_t{format ? exec::BytesOf(format->type) : 4} * std::clamp(d.num_channels, 1u, 4u);
  const bool layered = (d.flags & (kArray3DLayered | kArray3DCubemap)) != 0;
  unsigned __int128 bytes = 0;
  for (unsigned level = 0; level < std::clamp(levels, 1u, kMostLevels); ++level) {
    const auto extent = [&](std::uint64_t size) { return std::max<std::uint64_t>(size >> level, 1); };
    unsigned __int128 of_level = static_cast<unsigned __int128>(extent(d.width)) * extent(d.height);
    if (of_level > ~std::uint64_t{0}) return ~std::uint64_t{0};
    of_level *= layered ? std::max<std::uint64_t>(d.depth, 1) : extent(d.depth);
    if (of_level > ~std::uint64_t{0}) return ~std::uint64_t{0};
    bytes += of_level * texel;
  }
  return bytes > ~std::uint64_t{0} ? ~std::uint64_t{0} : static_cast<std::uint64_t>(bytes);
}

bool RealMemory::Take(std::uint64_t bytes) noexcept {
  if (bytes == 0) return true;
  const std::lock_guard lock(mutex_);
  std::uint64_t wanted = 0;
  if (__builtin_add_overflow(used_, bytes, &wanted) || !link_.Quota(wanted)) return false;
  used_ = wanted;
  return true;
}

void RealMemory::Give(std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
  static_cast<void>(link_.Quota(used_));
}

void RealMemory::Keep(Key key, std::uint64_t bytes, bool of_context) noexcept {
  Allocation allocation{.bytes = bytes};
  if (of_context) static_cast<void>(Real<Fn::cuCtxGetCurrent>(&allocation.context));
  try {
    const std::lock_guard lock(mutex_);
    allocations_[key] = allocation;
  } catch (...) {
    Give(bytes);  // no room to remember it: it is not counted
  }
}

RealMemory::Removed RealMemory::Remove(Key key) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(key);
  if (found == allocations_.end() || --found->second.references > 0) return std::nullopt;
  const Removed removed = *found;
  allocations_.erase(found);
  return removed;
}

void RealMemory::Settle(const Removed& removed, bool freed) noexcept {
  if (!removed) return;
  if (freed) return Give(removed->second.bytes);
  try {
    const std::lock_guard lock(mutex_);
    allocations_[removed->first] = {
        .bytes = removed->second.bytes, .references = 1, .context = removed->second.context};
  } catch (...) {
    Give(removed->second.bytes);
  }
}

void RealMemory::Map(CUdeviceptr address, Key handle) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(handle);
    if (found == allocations_.end()) return;
    mappings_[address] = handle;
    ++found->second.references;
  } catch (...) {
  }
}

void RealMemory::Unmap(CUdeviceptr address, std::uint64_t bytes) noexcept {
  std::uint64_t freed = 0;
  {
    const std::lock_guard lock(mutex_);
    auto mapping = mappings_.lower_bound(address);
    while (mapping != mappings_.end() && mapping->first - address < bytes) {
      const auto found = allocations_.find(mapping->second);
      mapping = mappings_.erase(mapping);
      if (found == allocations_.end() || --found->second.references > 0) continue;
      freed += found->second.bytes;
      allocations_.erase(found);
    }
  }
  Give(freed);
}

void RealMemory::Retain(Key handle) noexcept {
  const std::lock_guard lock(mutex_);
  if (const auto found = allocations_.find(handle); found != allocations_.end()) ++found->second.references;
}

void RealMemory::EndContext(CUcontext context) noexcept {
  std::uint64_t freed = 0;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(allocations_, [&](const auto& entry) {
      const bool gone = context != nullptr && entry.second.context == context;
      if (gone) freed += entry.second.bytes;
      return gone;
    });
  }
  Give(freed);
}

bool RealMemory::PrimaryIsActive(CUdevice device) noexcept {
  unsigned flags = 0;
  int active = 0;
  return Real<Fn::cuDevicePrimaryCtxGetState>(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

/// Null when there is none.
CUcontext RealMemory::PrimaryContext(CUdevice device) noexcept {
  CUcontext context = nullptr;
  if (!PrimaryIsActive(device) || Real<Fn::cuDevicePrimaryCtxRetain>(&context, device) != CUDA_SUCCESS) return nullptr;
  static_cast<void>(Real<Fn::cuDevicePrimaryCtxRelease_v2>(device));
  return context;
}

void RealMemory::Limit(std::size_t* free, std::size_t* total) noexcept {
  if (free == nullptr || total == nullptr) return;
  const std::lock_guard lock(mutex_);
  std::uint64_t left = *free, limit = *total;
  link_.MemoryInfo(used_, &left, &limit);
  *free = std::min<std::uint64_t>(*free, left);
  *total = limit;
}

}  // namespace gridloom::api
