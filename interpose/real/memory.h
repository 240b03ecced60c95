// Memory limits on a real GPU that a broker shares (--connect, --device real): what the program allocates is counted as
// it passes through to the real driver, and refused beyond what the broker allows the tenant. Not counted: what the
// driver takes for itself (contexts, modules, local memory, unused memory of pools), graphs' allocation nodes, sparse
// arrays, and what other processes share with this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"
#include "sim/exec/extent.h"

namespace gridloom::session {
class BrokerLink;
}

namespace gridloom::api {

/// The calls that RealMemory has to see, with what they do.
enum class MemoryRole : std::uint8_t { kNone, kAllocate, kFree, kMap, kUnmap, kRetain, kEndContext, kInfo };

constexpr MemoryRole MemoryRoleOf(Fn fn) {
  switch (fn) {
    case Fn::cuMemAlloc_v2:
    case Fn::cuMemAllocPitch_v2:
    case Fn::cuMemAllocManaged:
    case Fn::cuMemAllocAsync:
    case Fn::cuMemAllocFromPoolAsync:
    case Fn::cuMemCreate:
    case Fn::cuArrayCreate_v2:
    case Fn::cuArray3DCreate_v2:
    case Fn::cuMipmappedArrayCreate: return MemoryRole::kAllocate;
    case Fn::cuMemFree_v2:
    case Fn::cuMemFreeAsync:
    case Fn::cuMemRelease:
    case Fn::cuArrayDestroy:
    case Fn::cuMipmappedArrayDestroy: return MemoryRole::kFree;
    case Fn::cuMemMap: return MemoryRole::kMap;
    case Fn::cuMemUnmap: return MemoryRole::kUnmap;
    case Fn::cuMemRetainAllocationHandle: return MemoryRole::kRetain;
    case Fn::cuCtxDestroy:
    case Fn::cuCtxDestroy_v2:
    case Fn::cuDevicePrimaryCtxReset:
    case Fn::cuDevicePrimaryCtxReset_v2:
    case Fn::cuDevicePrimaryCtxRelease:
    case Fn::cuDevicePrimaryCtxRelease_v2: return MemoryRole::kEndContext;
    case Fn::cuMemGetInfo_v2: return MemoryRole::kInfo;
    default: return MemoryRole::kNone;
  }
}

/// Bytes of device memory that a call allocates; 0: none, or not known. Of a pitched allocation at most.
std::uint64_t BytesOfArray(const cuda::CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels);
template <Fn F, typename... Args>
std::uint64_t BytesAllocated(Args... args) {
  constexpr std::uint64_t kMostPitchAlignment = 512;
  const auto all = std::tie(args...);
  if constexpr (F == Fn::cuMemAllocPitch_v2) {
    const exec::Extent bytes = exec::Extent(std::get<2>(all)).RoundedUp(kMostPitchAlignment) * std::get<3>(all);
    return bytes.fits() ? bytes.value() : ~std::uint64_t{0};
  } else if constexpr (F == Fn::cuMemCreate) {
    const cuda::CUmemAllocationProp* const prop = std::get<2>(all);
    return prop != nullptr && prop->location.type == cuda::CU_MEM_LOCATION_TYPE_DEVICE ? std::get<1>(all) : 0;
  } else if constexpr (F == Fn::cuArrayCreate_v2) {
    const cuda::CUDA_ARRAY_DESCRIPTOR* const d = std::get<1>(all);
    return d == nullptr ? 0
                        : BytesOfArray({.width = d->width,
                                        .height = d->height,
                                        .depth = 0,
                                        .format = d->format,
                                        .num_channels = d->num_channels,
                                        .flags = 0},
                                       1);
  } else if constexpr (F == Fn::cuArray3DCreate_v2) {
    return std::get<1>(all) == nullptr ? 0 : BytesOfArray(*std::get<1>(all), 1);
  } else if constexpr (F == Fn::cuMipmappedArrayCreate) {
    return std::get<1>(all) == nullptr ? 0 : BytesOfArray(*std::get<1>(all), std::get<2>(all));
  } else {
    return std::get<1>(all);
  }
}

/// Never destroyed: threads of the program may free until the very end. All functions may be called from any thread; no
/// lock is held while the real driver is called.
class RealMemory {
 public:
  /// `link` limits this process.
  explicit RealMemory(session::BrokerLink& link) : link_(link) {}

  template <Fn F, typename Call, typename... Args>
  cuda::CUresult Run(const Call& call, Args... args) noexcept {
    constexpr MemoryRole kRole = MemoryRoleOf(F);
    const auto all = std::tie(args...);
    if constexpr (kRole == MemoryRole::kAllocate) {
      const std::uint64_t bytes = BytesAllocated<F>(args...);
      if (!Take(bytes)) return cuda::CUDA_ERROR_OUT_OF_MEMORY;
      const cuda::CUresult status = call();
      if (status == cuda::CUDA_SUCCESS) Keep(KeyOf<F>(*std::get<0>(all)), bytes, F != Fn::cuMemCreate);
      else Give(bytes);
      return status;
    } else if constexpr (kRole == MemoryRole::kFree) {
      const Removed removed = Remove(KeyOf<F>(std::get<0>(all)));
      const cuda::CUresult status = call();
      Settle(removed, status == cuda::CUDA_SUCCESS);
      return status;
    } else if constexpr (kRole == MemoryRole::kMap) {
      const cuda::CUresult status = call();
      if (status == cuda::CUDA_SUCCESS) Map(std::get<0>(all), HandleKey(std::get<3>(all)));
      return status;
    } else if constexpr (kRole == MemoryRole::kUnmap) {
      const cuda::CUresult status = call();
      if (status == cuda::CUDA_SUCCESS) Unmap(std::get<0>(all), std::get<1>(all));
      return status;
    } else if constexpr (kRole == MemoryRole::kRetain) {
      const cuda::CUresult status = call();
      if (status == cuda::CUDA_SUCCESS && std::get<0>(all) != nullptr) Retain(HandleKey(*std::get<0>(all)));
      return status;
    } else if constexpr (F == Fn::cuCtxDestroy || F == Fn::cuCtxDestroy_v2) {
      const cuda::CUresult status = call();
      if (status == cuda::CUDA_SUCCESS) EndContext(std::get<0>(all));
      return status;
    } else if constexpr (kRole == MemoryRole::kEndContext) {
      const cuda::CUcontext primary = PrimaryContext(std::get<0>(all));
      const cuda::CUresult status = call();
      if (status == cuda::CUDA_SUCCESS && primary != nullptr && !PrimaryIsActive(std::get<0>(all))) EndContext(primary);
      return status;
    } else {
      static_assert(kRole == MemoryRole::kInfo);
      const cuda::CUresult status = call();
      if (status == cuda::CUDA_SUCCESS) Limit(std::get<0>(all), std::get<1>(all));
      return status;
    }
  }

 private:
  enum class Kind : std::uint8_t { kPointer, kArray, kMipmapped, kHandle };
  using Key = std::pair<Kind, std::uint64_t>;
  struct Allocation {
    std::uint64_t bytes = 0;
    unsigned references = 1;            ///< of a handle: mappings count, too
    cuda::CUcontext context = nullptr;  ///< with which it goes; null: with none
  };
  using Removed = std::optional<std::pair<Key, Allocation>>;

  static Key HandleKey(cuda::CUmemGenericAllocationHandle handle) { return {Kind::kHandle, handle}; }
  /// Handles and pointers are numbers alike.
  template <Fn F>
  static Key KeyOf(std::uint64_t number) {
    return {F == Fn::cuMemCreate || F == Fn::cuMemRelease ? Kind::kHandle : Kind::kPointer, number};
  }
  template <Fn F>
  static Key KeyOf(cuda::CUarray array) {
    return {Kind::kArray, reinterpret_cast<std::uint64_t>(array)};
  }
  template <Fn F>
  static Key KeyOf(cuda::CUmipmappedArray array) {
    return {Kind::kMipmapped, reinterpret_cast<std::uint64_t>(array)};
  }

  /// Counts the bytes as used if the tenant may use so many.
  bool Take(std::uint64_t bytes) noexcept;
  void Give(std::uint64_t bytes) noexcept;
  void Keep(Key key, std::uint64_t bytes, bool of_context) noexcept;
  /// One reference less; what that frees, so that nobody else finds it while the driver frees it.
  Removed Remove(Key key) noexcept;
  void Settle(const Removed& removed, bool freed) noexcept;
  void Map(cuda::CUdeviceptr address, Key handle) noexcept;
  void Unmap(cuda::CUdeviceptr address, std::uint64_t bytes) noexcept;
  void Retain(Key handle) noexcept;
  void EndContext(cuda::CUcontext context) noexcept;
  cuda::CUcontext PrimaryContext(cuda::CUdevice device) noexcept;
  static bool PrimaryIsActive(cuda::CUdevice device) noexcept;
  void Limit(std::size_t* free, std::size_t* total) noexcept;

  session::BrokerLink& link_;
  std::mutex mutex_;  ///< guards what follows
  std::uint64_t used_ = 0;
  std::map<Key, Allocation> allocations_;
  std::map<cuda::CUdeviceptr, Key> mappings_;
};

}  // namespace gridloom::api
