#include "interpose/launch/make_kernel.h"

#include <algorithm>
#include <cstring>

#include "interpose/base/log.h"
#include "interpose/launch/stages.h"
#include "interpose/objects/device.h"
#include "interpose/objects/green_context.h"
#include "interpose/objects/process.h"
#include "interpose/objects/texture.h"
#include "interpose/objects/tile_kernel.h"

namespace gridloom::session {

using namespace cuda;

namespace {

CUresult Refuse(const Kernel& kernel, CUresult status, const std::string& why) {
  LogFormat(LogLevel::kInfo, "launch of %s refused: %s", kernel.name().c_str(), why.c_str());
  return status;
}

bool Fits(const exec::Dim3& d, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return d.x != 0 && d.y != 0 && d.z != 0 && d.x <= x && d.y <= y && d.z <= z;
}

std::string Text(const exec::Dim3& d) { return Format("(%u,%u,%u)", d.x, d.y, d.z); }

CUresult CheckShape(Context& context, const Kernel& kernel, const exec::KernelInfo& info,
                    const LaunchRequest& request) {
  const sim::DeviceSpec& spec = context.device().spec();
  if (!Fits(request.grid, spec.grid.max_x, spec.grid.max_y, spec.grid.max_z)) {
    return Refuse(kernel, CUDA_ERROR_INVALID_VALUE,
                  "grid " + Text(request.grid) + " is empty or larger than the device allows");
  }
  if (!Fits(request.block, spec.block.max_x, spec.block.max_y, spec.block.max_z) ||
      request.block.count() > spec.block.max_threads) {
    return Refuse(
        kernel, CUDA_ERROR_INVALID_VALUE,
        Format("block %s is empty or larger than %u threads", Text(request.block).c_str(), spec.block.max_threads));
  }
  if (info.max_threads != 0 && request.block.count() > info.max_threads) {
    return Refuse(kernel, CUDA_ERROR_INVALID_VALUE,
                  Format("block %s is larger than this kernel's launch bound of %u threads",
                         Text(request.block).c_str(), info.max_threads));
  }
  if (request.block.count() > MaxThreads(context.device(), info)) {
    return Refuse(kernel, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                  Format("block %s is larger than this kernel's %u threads", Text(request.block).c_str(),
                         MaxThreads(context.device(), info)));
  }
  const std::uint32_t* required = info.required_block;
  if (required[0] != 0 && (request.block.x != required[0] || request.block.y != std::max(required[1], 1u) ||
                           request.block.z != std::max(required[2], 1u))) {
    return Refuse(kernel, CUDA_ERROR_INVALID_VALUE, "the kernel requires another block shape (.reqntid)");
  }
  if (request.dynamic_shared_bytes > DynamicSharedLimit(context.device(), kernel, info)) {
    return Refuse(kernel, CUDA_ERROR_INVALID_VALUE,
                  Format("%u bytes of dynamic shared memory, %u allowed", request.dynamic_shared_bytes,
                         DynamicSharedLimit(context.device(), kernel, info)));
  }
  return CUDA_SUCCESS;
}

CUresult CheckCluster(Context& context, const Kernel& kernel, const exec::KernelInfo& info,
                      const LaunchRequest& request, exec::Dim3* cluster) {
  *cluster = request.cluster;
  const std::uint32_t* required = info.required_cluster;
  if (required[0] != 0) {
    const exec::Dim3 wanted{required[0], std::max(required[1], 1u), std::max(required[2], 1u)};
    if (cluster->x != 0 && (cluster->x != wanted.x || cluster->y != wanted.y || cluster->z != wanted.z)) {
      return Refuse(kernel, CUDA_ERROR_INVALID_CLUSTER_SIZE, "the kernel requires another cluster shape");
    }
    *cluster = wanted;
  } else if (cluster->x == 0) {
    const exec::Dim3 asked{static_cast<std::uint32_t>(kernel.required_cluster[0].load()),
                           static_cast<std::uint32_t>(kernel.required_cluster[1].load()),
                           static_cast<std::uint32_t>(kernel.required_cluster[2].load())};
    *cluster = asked.x != 0 ? exec::Dim3{asked.x, std::max(asked.y, 1u), std::max(asked.z, 1u)} : exec::Dim3{1, 1, 1};
  }
  if (cluster->count() == 1) return CUDA_SUCCESS;
  const auto& limits = context.device().spec().cluster;
  if (cluster->count() == 0 ||
      cluster->count() > (kernel.nonportable_cluster ? limits.max_blocks_nonportable : limits.max_blocks)) {
    return Refuse(kernel, CUDA_ERROR_INVALID_CLUSTER_SIZE,
                  "cluster " + Text(*cluster) + " is larger than the device allows");
  }
  if (request.grid.x % cluster->x != 0 || request.grid.y % cluster->y != 0 || request.grid.z % cluster->z != 0) {
    return Refuse(kernel, CUDA_ERROR_INVALID_CLUSTER_SIZE,
                  "grid " + Text(request.grid) + " is no multiple of cluster " + Text(*cluster));
  }
  return CUDA_SUCCESS;
}

/// The parameters that the program passes; room is left for those behind them.
CUresult CopyParams(const LaunchRequest& request, const Kernel::Bound& bound, ParamBytes* params) {
  const exec::KernelInfo& info = *bound.info;
  const std::uint32_t own_bytes = bound.own_param_bytes();
  params->resize(info.params.bytes);
  if (request.extra != nullptr) {
    const void* buffer = nullptr;
    std::size_t bytes = 0;
    for (void** item = request.extra; reinterpret_cast<std::uintptr_t>(*item) != kLaunchParamEnd; item += 2) {
      const auto key = reinterpret_cast<std::uintptr_t>(item[0]);
      if (key == kLaunchParamBufferPointer) buffer = item[1];
      else if (key == kLaunchParamBufferSize) bytes = *static_cast<const std::size_t*>(item[1]);
      else return CUDA_ERROR_INVALID_VALUE;
    }
    if ((buffer == nullptr && own_bytes != 0) || request.kernel_params != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (bytes < own_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (own_bytes != 0) std::memcpy(params->data(), buffer, own_bytes);
    return CUDA_SUCCESS;
  }
  if (request.block_of_params.data() != nullptr) {
    std::memcpy(params->data(), request.block_of_params.data(),
                std::min<std::size_t>(own_bytes, request.block_of_params.size()));
    return CUDA_SUCCESS;
  }
  if (bound.own_params() == 0) return CUDA_SUCCESS;  // the pointer may lead to nothing
  if (request.kernel_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < bound.own_params(); ++i) {
    if (request.kernel_params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(params->data() + info.params.offsets[i], request.kernel_params[i], info.param_bytes[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace

std::uint32_t MaxThreads(const Device& device, const exec::KernelInfo& info) {
  const std::uint32_t by_registers =
      info.registers == 0 ? ~0u : device.spec().block.registers / info.registers / 32 * 32;
  return std::min({info.max_threads == 0 ? ~0u : info.max_threads, device.spec().block.max_threads, by_registers});
}

std::uint32_t DynamicSharedLimit(const Device& device, const Kernel& kernel, const exec::KernelInfo& info) {
  const int chosen = kernel.max_dynamic_shared.load(std::memory_order_relaxed);
  if (chosen >= 0) return static_cast<std::uint32_t>(chosen);
  const std::uint32_t limit = device.spec().block.shared_bytes;
  return limit > info.static_shared_bytes ? limit - info.static_shared_bytes : 0;
}

std::uint64_t MaxResidentBlocks(Context& context, const GreenContext* green, const exec::KernelInfo& info,
                                exec::Dim3 block, std::uint32_t dynamic_shared_bytes) {
  return std::uint64_t{SmCount(context, green)} *
         context.device().engine().Occupancy(info, static_cast<std::uint32_t>(block.count()), dynamic_shared_bytes,
                                             context.stack_limit());
}

/// The block that a launch means.
exec::Dim3 BlockOf(const exec::KernelInfo& info, const exec::Dim3& asked) {
  const std::uint32_t* const required = info.required_block;
  if (required[0] == 0 || asked.count() != 1 || !IsTileKernel(*info.function)) return asked;
  return {required[0], std::max(required[1], 1u), std::max(required[2], 1u)};
}

CUresult CompleteKernelOp(Context& context, const LaunchRequest& request, KernelOp* op);

CUresult MakeKernelOp(Context& context, const LaunchRequest& request, KernelOp* op) {
  op->kernel = context.process().handles.kernels.Find(reinterpret_cast<CUkernel>(request.function));
  if (op->kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (Context* const owner = op->kernel->owner(); owner != nullptr && owner != &context && !request.from_device) {
    return Refuse(*op->kernel, CUDA_ERROR_INVALID_HANDLE, "the kernel is of another context's module");
  }
  if (!request.from_device) PublishTextureReferences(context);
  if (const auto status = op->kernel->Bind(&context, &op->bound); status != CUDA_SUCCESS) return status;
  const exec::Dim3 block = BlockOf(*op->bound.info, request.block);
  if (block.count() == request.block.count()) return CompleteKernelOp(context, request, op);
  LaunchRequest whole = request;
  whole.block = block;
  return CompleteKernelOp(context, whole, op);
}

/// The rest of MakeKernelOp: of a launch whose kernel and block are known.
CUresult CompleteKernelOp(Context& context, const LaunchRequest& request, KernelOp* op) {
  const exec::KernelInfo& info = *op->bound.info;
  if (const auto status = CheckShape(context, *op->kernel, info, request); status != CUDA_SUCCESS) return status;
  if (const auto status = CheckCluster(context, *op->kernel, info, request, &op->cluster); status != CUDA_SUCCESS)
    return status;
  if (request.cooperative) {
    const std::uint64_t most =
        MaxResidentBlocks(context, request.green, info, request.block, request.dynamic_shared_bytes);
    if (request.grid.count() > most) {
      return Refuse(
          *op->kernel, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
          Format("a cooperative grid of %llu CTAs, %llu fit on the device",
                 static_cast<unsigned long long>(request.grid.count()), static_cast<unsigned long long>(most)));
    }
  }
  if (const auto status = CopyParams(request, op->bound, &op->params); status != CUDA_SUCCESS) return status;
  op->grid = request.grid;
  op->block = request.block;
  op->dynamic_shared_bytes = request.dynamic_shared_bytes;
  op->stack_bytes = context.stack_limit();
  op->cooperative = request.cooperative;
  op->priority = request.priority;
  if (request.green != nullptr) op->green = request.green->shared_from_this();
  return PlanLaunch({.context = context, .request = request, .op = *op});
}

}  // namespace gridloom::session
