// Kernels and functions (the same objects): attributes, parameters, occupancy.
#include <algorithm>
#include <limits>

#include "hooks/support.h"
#include "interpose/launch/launch.h"
#include "interpose/objects/module.h"

namespace gridloom::hooks {

using session::Kernel;

namespace {

CUresult FindKernel(Process& process, CUkernel handle, std::shared_ptr<Kernel>* kernel) {
  *kernel = process.handles.kernels.Find(handle);
  return *kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUkernel AsKernel(CUfunction function) { return reinterpret_cast<CUkernel>(function); }

/// The kernel and what the compiler knows of it, in a context that may be null.
CUresult Find(Process& process, CUkernel handle, Context* context, std::shared_ptr<Kernel>* kernel,
              Kernel::Bound* bound) {
  GL_CU_TRY(FindKernel(process, handle, kernel));
  return (*kernel)->Bind(context, bound);
}

std::uint32_t StackLimit(const Context* context) { return context != nullptr ? context->stack_limit() : 0; }

CUresult GetAttribute(Process& process, int* value, CUfunction_attribute attribute, CUkernel handle, Context* context,
                      const Device& device) {
  GL_CU_REQUIRE(value != nullptr);
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  GL_CU_TRY(Find(process, handle, context, &kernel, &bound));
  const exec::KernelInfo& info = *bound.info;
  const ptx::Module& module = bound.program->module_as_read();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(session::MaxThreads(device, info)); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(info.static_shared_bytes); break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(info.const_bytes); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(info.LocalBytes(StackLimit(context))); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = static_cast<int>(info.registers); break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = static_cast<int>(info.function->target_sm != 0 ? info.function->target_sm : module.sm());
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = static_cast<int>(device.compute_capability().sm()); break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(session::DynamicSharedLimit(device, *kernel, info));
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = kernel->shared_carveout; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
      const int axis = attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
      *value = info.required_cluster[0] != 0 ? static_cast<int>(info.required_cluster[axis])
                                             : kernel->required_cluster[axis].load();
      break;
    }
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = kernel->nonportable_cluster; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = kernel->cluster_policy; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult SetAttribute(Process& process, CUfunction_attribute attribute, int value, CUkernel handle, Context* context,
                      const Device& device) {
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  GL_CU_TRY(Find(process, handle, context, &kernel, &bound));
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const auto limit =
          static_cast<std::int64_t>(device.spec().block.shared_optin_bytes) - bound.info->static_shared_bytes;
      GL_CU_REQUIRE(value >= 0 && value <= limit);
      kernel->max_dynamic_shared = value;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      GL_CU_REQUIRE(value >= -1 && value <= 100);
      kernel->shared_carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
      const int axis = attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
      if (bound.info->required_cluster[0] != 0) {
        return value == static_cast<int>(bound.info->required_cluster[axis]) ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
      }
      GL_CU_REQUIRE(value >= 0);
      kernel->required_cluster[axis] = value;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: kernel->nonportable_cluster = value; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: kernel->cluster_policy = value; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ParamInfo(Process& process, CUkernel handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  GL_CU_REQUIRE(offset != nullptr);
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  GL_CU_TRY(Find(process, handle, session::CurrentContext(), &kernel, &bound));
  GL_CU_REQUIRE(index < bound.own_params());
  *offset = bound.info->params.offsets[index];
  Store(size, bound.info->param_bytes[index]);
  return CUDA_SUCCESS;
}

CUresult ParamCount(Process& process, CUkernel handle, std::size_t* count) {
  GL_CU_REQUIRE(count != nullptr);
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  GL_CU_TRY(Find(process, handle, session::CurrentContext(), &kernel, &bound));
  *count = bound.own_params();
  return CUDA_SUCCESS;
}

/// CTAs of a block size that fit on one SM; 0 when the block cannot run at all.
CUresult BlocksPerSm(Process& process, CUfunction function, int block_size, std::size_t dynamic_bytes, int* blocks) {
  GL_CU_REQUIRE(blocks != nullptr && block_size > 0);
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  Context& context = ThisContext();
  GL_CU_TRY(Find(process, AsKernel(function), &context, &kernel, &bound));
  const auto threads = static_cast<std::uint32_t>(block_size);
  *blocks = 0;
  if (threads > session::MaxThreads(context.device(), *bound.info)) return CUDA_SUCCESS;
  if (dynamic_bytes > context.device().spec().sm.shared_bytes) return CUDA_SUCCESS;
  *blocks = static_cast<int>(context.device().engine().Occupancy(
      *bound.info, threads, static_cast<std::uint32_t>(dynamic_bytes), context.stack_limit()));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuKernelGetFunction(Process& process, CUfunction* function, CUkernel handle) {
  GL_CU_REQUIRE(function != nullptr);
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  GL_CU_TRY(Find(process, handle, &ThisContext(), &kernel, &bound));
  *function = kernel->function_handle();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(Process& process, CUlibrary* library, CUkernel handle) {
  GL_CU_REQUIRE(library != nullptr);
  std::shared_ptr<Kernel> kernel;
  GL_CU_TRY(FindKernel(process, handle, &kernel));
  *library = nullptr;
  const auto code = kernel->code();
  process.handles.libraries.ForEach([&](const std::shared_ptr<session::Library>& candidate) {
    if (&candidate->code() == code.get()) *library = reinterpret_cast<CUlibrary>(candidate.get());
  });
  return *library != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetName(Process& process, const char** name, CUkernel handle) {
  GL_CU_REQUIRE(name != nullptr && handle != nullptr);
  std::shared_ptr<Kernel> kernel;
  GL_CU_TRY(FindKernel(process, handle, &kernel));
  *name = kernel->name().c_str();  // lives until the module is unloaded
  return CUDA_SUCCESS;
}
CUresult cuFuncGetName(Process& process, const char** name, CUfunction function) {
  return cuKernelGetName(process, name, AsKernel(function));
}

CUresult cuKernelGetParamInfo(Process& process, CUkernel kernel, std::size_t index, std::size_t* offset,
                              std::size_t* size) {
  return ParamInfo(process, kernel, index, offset, size);
}
CUresult cuFuncGetParamInfo(Process& process, CUfunction function, std::size_t index, std::size_t* offset,
                            std::size_t* size) {
  return ParamInfo(process, AsKernel(function), index, offset, size);
}

CUresult cuKernelGetParamCount(Process& process, CUkernel kernel, std::size_t* count) {
  return ParamCount(process, kernel, count);
}
CUresult cuFuncGetParamCount(Process& process, CUfunction function, std::size_t* count) {
  return ParamCount(process, AsKernel(function), count);
}

CUresult cuKernelGetAttribute(Process& process, int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  return GetAttribute(process, value, attribute, kernel, session::CurrentContext(), *device);
}
CUresult cuFuncGetAttribute(Process& process, int* value, CUfunction_attribute attribute, CUfunction function) {
  return GetAttribute(process, value, attribute, AsKernel(function), &ThisContext(), ThisContext().device());
}
CUresult cuKernelSetAttribute(Process& process, CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  return SetAttribute(process, attribute, value, kernel, session::CurrentContext(), *device);
}
CUresult cuFuncSetAttribute(Process& process, CUfunction function, CUfunction_attribute attribute, int value) {
  return SetAttribute(process, attribute, value, AsKernel(function), &ThisContext(), ThisContext().device());
}

CUresult cuKernelSetCacheConfig(Process& process, CUkernel handle, CUfunc_cache config, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  std::shared_ptr<Kernel> kernel;
  GL_CU_TRY(FindKernel(process, handle, &kernel));
  GL_CU_REQUIRE(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
  kernel->cache_config = config;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(Process& process, CUfunction function, CUfunc_cache config) {
  return cuKernelSetCacheConfig(process, AsKernel(function), config, ThisContext().device().ordinal());
}
CUresult cuFuncSetSharedMemConfig(Process& process, CUfunction function, CUsharedconfig config) {
  std::shared_ptr<Kernel> kernel;
  GL_CU_TRY(FindKernel(process, AsKernel(function), &kernel));
  GL_CU_REQUIRE(config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
  return CUDA_SUCCESS;  // one bank size since Maxwell
}

CUresult cuFuncIsLoaded(Process& process, CUfunctionLoadingState* state, CUfunction function) {
  GL_CU_REQUIRE(state != nullptr);
  std::shared_ptr<Kernel> kernel;
  GL_CU_TRY(FindKernel(process, AsKernel(function), &kernel));
  *state = CU_FUNCTION_LOADING_STATE_LOADED;  // a handle is only given out once the module was read
  return CUDA_SUCCESS;
}
CUresult cuFuncLoad(Process& process, CUfunction function) {
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  return Find(process, AsKernel(function), &ThisContext(), &kernel, &bound);
}

CUresult cuFuncGetModule(Process& process, CUmodule* module, CUfunction function) {
  GL_CU_REQUIRE(module != nullptr);
  std::shared_ptr<Kernel> kernel;
  GL_CU_TRY(FindKernel(process, AsKernel(function), &kernel));
  const auto code = kernel->code();
  *module = nullptr;
  process.handles.modules.ForEach([&](const std::shared_ptr<session::Module>& candidate) {
    if (&candidate->code() == code.get() && &candidate->context() == &ThisContext())
      *module = reinterpret_cast<CUmodule>(candidate.get());
  });
  if (*module != nullptr) return CUDA_SUCCESS;
  std::shared_ptr<session::Library> owner;
  process.handles.libraries.ForEach([&](const std::shared_ptr<session::Library>& candidate) {
    if (&candidate->code() == code.get()) owner = candidate;
  });
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(owner->ModuleIn(ThisContext()).get());
  return CUDA_SUCCESS;
}

// ---- occupancy

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Process& process, int* blocks, CUfunction function,
                                                              int block_size, std::size_t dynamic_bytes,
                                                              unsigned flags) {
  GL_CU_REQUIRE((flags & ~1u) == 0);
  return BlocksPerSm(process, function, block_size, dynamic_bytes, blocks);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(Process& process, int* blocks, CUfunction function, int block_size,
                                                     std::size_t dynamic_bytes) {
  return BlocksPerSm(process, function, block_size, dynamic_bytes, blocks);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(Process& process, int* min_grid, int* block_size,
                                                   CUfunction function, CUoccupancyB2DSize dynamic_of,
                                                   std::size_t dynamic_bytes, int limit, unsigned flags) {
  GL_CU_REQUIRE(min_grid != nullptr && block_size != nullptr && (flags & ~1u) == 0);
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  Context& context = ThisContext();
  GL_CU_TRY(Find(process, AsKernel(function), &context, &kernel, &bound));
  int largest = static_cast<int>(session::MaxThreads(context.device(), *bound.info));
  if (limit > 0) largest = std::min(largest, limit);
  int best_threads = 0, best_block = 0, best_blocks = 0;
  // Largest first: of equal occupancies the largest block wins.
  for (int block = (largest + 31) / 32 * 32; block > 0; block -= 32) {
    const int size = std::min(block, largest);
    int blocks = 0;
    GL_CU_TRY(BlocksPerSm(process, function, size, dynamic_of != nullptr ? dynamic_of(size) : dynamic_bytes, &blocks));
    if (size * blocks > best_threads) {
      best_threads = size * blocks;
      best_block = size;
      best_blocks = blocks;
    }
  }
  *block_size = best_block;
  *min_grid = best_blocks * static_cast<int>(session::SmCount(context, session::CurrentGreen()));
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialBlockSize(Process& process, int* min_grid, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize dynamic_of, std::size_t dynamic_bytes, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(process, min_grid, block_size, function, dynamic_of, dynamic_bytes,
                                                   limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(Process& process, std::size_t* bytes, CUfunction function, int blocks,
                                                 int block_size) {
  GL_CU_REQUIRE(bytes != nullptr && blocks > 0 && block_size > 0);
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  Context& context = ThisContext();
  GL_CU_TRY(Find(process, AsKernel(function), &context, &kernel, &bound));
  const auto& spec = context.device().spec();
  const std::uint32_t taken = bound.info->static_shared_bytes + spec.block.shared_reserved_bytes;
  const std::uint32_t share = spec.sm.shared_bytes / static_cast<std::uint32_t>(blocks) / spec.allocation.shared_bytes *
                              spec.allocation.shared_bytes;
  *bytes = std::min<std::size_t>(share > taken ? share - taken : 0,
                                 session::DynamicSharedLimit(context.device(), *kernel, *bound.info));
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(Process& process, int* size, CUfunction function,
                                            const CUlaunchConfig* config) {
  GL_CU_REQUIRE(size != nullptr && config != nullptr);
  std::shared_ptr<Kernel> kernel;
  GL_CU_TRY(FindKernel(process, AsKernel(function), &kernel));
  const auto& cluster = ThisContext().device().spec().cluster;
  *size = static_cast<int>(kernel->nonportable_cluster ? cluster.max_blocks_nonportable : cluster.max_blocks);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(Process& process, int* clusters, CUfunction function,
                                      const CUlaunchConfig* config) {
  GL_CU_REQUIRE(clusters != nullptr && config != nullptr);
  int blocks = 0;
  GL_CU_TRY(BlocksPerSm(process, function,
                        static_cast<int>(config->block_dim_x * config->block_dim_y * config->block_dim_z),
                        config->shared_mem_bytes, &blocks));
  unsigned size = 1;
  for (unsigned i = 0; i < config->num_attrs; ++i) {
    const auto& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      size = attribute.value.cluster_dim.x * attribute.value.cluster_dim.y * attribute.value.cluster_dim.z;
    }
  }
  GL_CU_REQUIRE(size != 0);
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(config->stream, &stream));
  *clusters =
      blocks * static_cast<int>(session::SmCount(ThisContext(), session::GreenOf(*stream))) / static_cast<int>(size);
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
