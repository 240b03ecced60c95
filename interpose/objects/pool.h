// Stream-ordered memory: pools that keep freed blocks for the next allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "interpose/api/cuda_types.h"
#include "sim/exec/device_memory.h"

namespace gridloom::session {

class Device;

/// A block goes back to the pool when the stream reaches the free, so whatever is handed out is free to use at once.
/// Blocks that are in use keep their pool: one that the program has destroyed goes with the last of them.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  /// `kind`: the pool gives device memory (kPool), managed memory (kManaged) or host memory (kPinned). `max_bytes` 0:
  /// no limit. `place`: where managed memory prefers to be.
  explicit MemoryPool(Device& device, exec::MemoryKind kind, std::uint64_t max_bytes = 0,
                      cuda::CUmemLocationType place = cuda::CU_MEM_LOCATION_TYPE_NONE)
      : device_(device),
        kind_(kind),
        max_bytes_(max_bytes),
        device_access_(kind == exec::MemoryKind::kPool ||
                       (kind == exec::MemoryKind::kManaged && place <= cuda::CU_MEM_LOCATION_TYPE_DEVICE)),
        host_access_(kind == exec::MemoryKind::kPinned ||
                     (kind == exec::MemoryKind::kManaged && place != cuda::CU_MEM_LOCATION_TYPE_DEVICE)) {}
  ~MemoryPool();

  Device& device() const { return device_; }
  exec::MemoryKind kind() const { return kind_; }
  /// Whom the pool lists as having access: at first the place that its memory is at. Managed memory serves everybody
  /// all the same.
  bool device_access() const { return device_access_; }
  bool host_access() const { return host_access_; }
  void GiveDeviceAccess() { device_access_ = true; }
  void GiveHostAccess() { host_access_ = true; }
  cuda::CUmemoryPool handle() { return reinterpret_cast<cuda::CUmemoryPool>(this); }

  /// 0 when memory is exhausted.
  std::uint64_t Allocate(std::uint64_t bytes);
  /// The program gives the block back, once its stream gets there. False when the block is not in use, or was given
  /// back before.
  bool BeginFree(std::uint64_t address);
  /// Takes BeginFree back: the program does not free the block after all.
  void CancelFree(std::uint64_t address);
  /// The stream has come to the place where the program frees the block.
  void Free(std::uint64_t address);
  /// Gives cached blocks back to the device until at most `keep` bytes are held.
  void Trim(std::uint64_t keep);

  cuda::CUresult SetAttribute(cuda::CUmemPool_attribute attribute, const void* value);
  cuda::CUresult GetAttribute(cuda::CUmemPool_attribute attribute, void* value) const;
  /// What the program has in use: what it asked for, in whole granules. `reserved` counts the whole blocks, cached ones
  /// among them.
  std::uint64_t used() const;
  std::uint64_t used_high() const;
  std::uint64_t reserved() const;
  std::uint64_t reserved_high() const;
  void ResetHigh();

  /// The program has destroyed the pool: it keeps no free block any more.
  void Close();
  bool closed() const;
  /// The pool whose live block starts at `address`; null for other memory.
  static std::shared_ptr<MemoryPool> Find(std::uint64_t address);

 private:
  void TrimLocked(std::uint64_t keep);

  Device& device_;
  const exec::MemoryKind kind_;
  const std::uint64_t max_bytes_;
  std::atomic<bool> device_access_, host_access_;
  mutable std::mutex mutex_;
  struct Block {
    std::uint64_t bytes;  ///< a cached block may be larger than what it serves
    std::uint64_t asked;  ///< by the program, in whole granules
    bool freeing;         ///< the program has given it back
  };
  std::unordered_map<std::uint64_t, Block> used_;       ///< by address
  std::multimap<std::uint64_t, std::uint64_t> cached_;  ///< bytes -> address
  std::uint64_t used_bytes_ = 0, cached_bytes_ = 0;     ///< of whole blocks
  std::uint64_t asked_bytes_ = 0;                       ///< what the program has in use of them
  std::uint64_t asked_high_ = 0, reserved_high_ = 0;
  std::uint64_t release_threshold_ = 0;
  bool closed_ = false;
  int reuse_flags_[3] = {1, 1, 1};
};

}  // namespace gridloom::session
