#include "sim/exec/runtime/address_space.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "sim/exec/contract/guard_zone.h"

namespace gridloom::exec {
namespace {

// Far below the stack and the libraries, far above the heap of a position independent executable.
constexpr std::uint64_t kPreferredBase = 0x7000'0000'0000;
constexpr std::uint64_t kSmallestRange = std::uint64_t{1} << 30;
#if defined(__SANITIZE_THREAD__)
constexpr bool kHasRoomForZones = false;
constexpr std::uint64_t kLargestRange = std::uint64_t{1} << 37;  // the tool's own layout leaves no more
#else
constexpr bool kHasRoomForZones = true;
constexpr std::uint64_t kLargestRange = std::uint64_t{1} << 46;
#endif

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/// `zone`: so many bytes of it come before the preferred base.
void* TryReserve(std::uint64_t bytes, std::uint64_t zone) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#if !defined(__SANITIZE_THREAD__)
  void* const hint = reinterpret_cast<void*>(kPreferredBase - zone);
  void* at = mmap(hint, bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == hint) return at;
  if (at != MAP_FAILED) munmap(at, bytes);  // a kernel that does not know the flag
#endif
  return mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
}

std::string Refusal(std::uint64_t bytes, int error) {
  std::string text = "cannot reserve " + std::to_string(bytes >> 20) +
                     " MiB of address space for device memory: " + std::strerror(error);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    text += "; the address space limit (ulimit -v) is " + std::to_string(limit.rlim_cur >> 20) + " MiB";
  return text;
}

}  // namespace

Result<AddressSpace> AddressSpace::Reserve(std::uint64_t bytes) {
  bytes = RoundUp(std::clamp(bytes, kSmallestRange, kLargestRange), kPageBytes);
  if (kHasRoomForZones) {
    void* const at = TryReserve(bytes + 2 * kGuardZone, kGuardZone);
    if (at != MAP_FAILED) return AddressSpace(reinterpret_cast<std::uint64_t>(at) + kGuardZone, bytes, kGuardZone);
  }
  for (;;) {
    void* const at = TryReserve(bytes, 0);
    if (at != MAP_FAILED) return AddressSpace(reinterpret_cast<std::uint64_t>(at), bytes, 0);
    const int error = errno;
    if (bytes <= kSmallestRange) return Error{Refusal(bytes, error)};
    bytes = std::max(RoundUp(bytes / 2, kPageBytes), kSmallestRange);
  }
}

AddressSpace::AddressSpace(std::uint64_t base, std::uint64_t bytes, std::uint64_t zone)
    : base_(base), bytes_(bytes), zone_(zone) {
  free_.Give(base, bytes);
}

AddressSpace::AddressSpace(AddressSpace&& other) noexcept
    : base_(other.base_), bytes_(std::exchange(other.bytes_, 0)), zone_(other.zone_), free_(std::move(other.free_)) {}

AddressSpace::~AddressSpace() {
  if (bytes_ != 0) munmap(reinterpret_cast<void*>(base_ - zone_), bytes_ + 2 * zone_);
}

void ExtentMap::Insert(std::uint64_t address, std::uint64_t bytes) {
  by_address_.emplace(address, bytes);
  by_size_.emplace(bytes, address);
}

void ExtentMap::Cut(std::map<std::uint64_t, std::uint64_t>::iterator extent, std::uint64_t address,
                    std::uint64_t bytes) {
  const auto [start, size] = *extent;
  by_size_.erase({size, start});
  by_address_.erase(extent);
  if (address > start) Insert(start, address - start);
  if (address + bytes < start + size) Insert(address + bytes, start + size - address - bytes);
}

std::uint64_t ExtentMap::Take(std::uint64_t bytes, std::uint64_t align) {
  if (bytes == 0) return 0;
  // Best fit; extents that only just hold the bytes may lack room to align, but one with `align` more never does.
  constexpr int kTries = 16;
  auto it = by_size_.lower_bound({bytes, 0});
  for (int tries = 0; it != by_size_.end(); ++it) {
    const auto [size, start] = *it;
    const std::uint64_t address = RoundUp(start, align);
    if (address - start <= size - bytes) {
      Cut(by_address_.find(start), address, bytes);
      return address;
    }
    if (++tries == kTries) {
      const auto roomy = by_size_.lower_bound({bytes + align, 0});
      if (roomy == by_size_.end()) continue;
      if (roomy->first > it->first) it = std::prev(roomy);
    }
  }
  return 0;
}

bool ExtentMap::TakeAt(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || address + bytes < address) return false;
  auto it = by_address_.upper_bound(address);
  if (it == by_address_.begin()) return false;
  --it;
  if (address + bytes > it->first + it->second) return false;
  Cut(it, address, bytes);
  return true;
}

void ExtentMap::Give(std::uint64_t address, std::uint64_t bytes) {
  const auto next = by_address_.lower_bound(address);
  std::uint64_t start = address, end = address + bytes;
  if (next != by_address_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      start = previous->first;
      by_size_.erase({previous->second, previous->first});
      by_address_.erase(previous);
    }
  }
  if (next != by_address_.end() && next->first == end) {
    end += next->second;
    by_size_.erase({next->second, next->first});
    by_address_.erase(next);
  }
  Insert(start, end - start);
}

}  // namespace gridloom::exec
