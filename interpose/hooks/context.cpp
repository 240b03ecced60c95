// Contexts: creation, the thread's stack, limits, synchronisation.
#include "hooks/support.h"
#include "interpose/launch/capture.h"

namespace gridloom::hooks {

namespace {

CUresult Create(Process& process, CUcontext* context, unsigned flags, CUdevice ordinal) {
  Device* device = nullptr;
  GL_CU_REQUIRE(context != nullptr && (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
  GL_CU_TRY(FindDevice(process, ordinal, &device));
  if (device->backend() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  Context& made = process.AddContext(*device);
  made.flags = flags;
  session::PushContext(&made);
  *context = made.handle();
  return CUDA_SUCCESS;
}

/// A context that can be made current. A primary one that was destroyed can: it comes back to life.
CUresult FindUsable(Process& process, CUcontext handle, Context** context, session::GreenPtr* green) {
  *context = process.FindContext(handle);
  if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *green = process.FindGreen(handle);
  const bool destroyed = *green != nullptr ? (*green)->destroyed() : (*context)->destroyed() && !(*context)->primary();
  return destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

}  // namespace

CUresult cuCtxCreate_v2(Process& process, CUcontext* context, unsigned flags, CUdevice device) {
  return Create(process, context, flags, device);
}

CUresult cuCtxCreate_v3(Process& process, CUcontext* context, CUexecAffinityParam*, int count, unsigned flags,
                        CUdevice device) {
  if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(process, context, flags, device);
}

CUresult cuCtxCreate_v4(Process& process, CUcontext* context, CUctxCreateParams* params, unsigned flags,
                        CUdevice device) {
  if (params != nullptr && params->num_exec_affinity_params != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (params != nullptr && params->cig_params != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return Create(process, context, flags, device);
}

CUresult cuCtxDestroy_v2(Process& process, CUcontext handle) {
  Context* const context = process.FindContext(handle);
  if (context == nullptr || context->primary()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (session::CurrentContext() == context) session::PopContext();
  context->WaitAll();
  context->Destroy();
  process.ShelveContext(*context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(Process& process, CUcontext handle) {
  Context* context = nullptr;
  session::GreenPtr green;
  GL_CU_TRY(FindUsable(process, handle, &context, &green));
  session::PushContext(context, green.get());
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(Process& process, CUcontext* handle) {
  const CUcontext top = session::CurrentHandle();
  if (session::PopContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Store(handle, top);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(Process& process, CUcontext handle) {
  if (handle == nullptr) {
    session::SetContext(nullptr);
    return CUDA_SUCCESS;
  }
  Context* context = nullptr;
  session::GreenPtr green;
  GL_CU_TRY(FindUsable(process, handle, &context, &green));
  session::SetContext(context, green.get());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(Process& process, CUcontext* handle) {
  GL_CU_REQUIRE(handle != nullptr);
  *handle = session::CurrentHandle();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(Process& process, CUdevice* device, CUcontext handle) {
  GL_CU_REQUIRE(device != nullptr);
  Context* const context = handle == nullptr ? session::CurrentContext() : process.FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device().ordinal();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(Process& process, CUdevice* device) { return cuCtxGetDevice_v2(process, device, nullptr); }

CUresult cuCtxGetApiVersion(Process& process, CUcontext handle, unsigned* version) {
  Context* context = nullptr;
  GL_CU_REQUIRE(version != nullptr);
  GL_CU_TRY(FindContext(process, handle, &context));
  *version = static_cast<unsigned>(context->api_version.load());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(Process& process, CUcontext handle, std::uint64_t* id) {
  Context* context = nullptr;
  session::GreenPtr green;
  GL_CU_REQUIRE(id != nullptr);
  GL_CU_TRY(FindContext(process, handle, &context, &green));
  *id = green != nullptr ? green->id() : context->id();
  return CUDA_SUCCESS;
}

// The usage count of CUDA 3's contexts: attaching and detaching a live context changes nothing that can be seen.
CUresult cuCtxAttach(Process& process, CUcontext* handle, unsigned flags) {
  GL_CU_REQUIRE(handle != nullptr && flags == 0);
  Context* context = nullptr;
  GL_CU_TRY(FindContext(process, nullptr, &context));
  *handle = session::CurrentHandle();
  return CUDA_SUCCESS;
}
CUresult cuCtxDetach(Process& process, CUcontext handle) {
  Context* context = nullptr;
  return FindContext(process, handle, &context);
}

namespace {

/// Waits for the work of a green context alone.
CUresult Synchronize(Context& context, const session::GreenContext& green) {
  const auto streams = session::StreamsOf(context, &green);
  for (const session::StreamPtr& stream : streams) GL_CU_TRY(session::RefuseWhileCapturing(*stream));
  for (const session::StreamPtr& stream : streams) context.Wait(*stream);
  return context.status();
}

}  // namespace

CUresult cuCtxSynchronize_v2(Process& process, CUcontext handle) {
  Context* context = nullptr;
  session::GreenPtr green;
  GL_CU_TRY(FindContext(process, handle, &context, &green));
  if (green != nullptr) return Synchronize(*context, *green);
  GL_CU_TRY(session::RefuseWhileAnyCaptures(*context));
  context->WaitAll();
  return context->status();
}

CUresult cuCtxSynchronize(Process& process) { return cuCtxSynchronize_v2(process, nullptr); }

CUresult cuCtxGetFlags(Process& process, unsigned* flags) {
  GL_CU_REQUIRE(flags != nullptr);
  *flags = ThisContext().flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(Process& process, unsigned flags) {
  GL_CU_REQUIRE((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
  ThisContext().flags = flags;
  return CUDA_SUCCESS;
}

namespace {

/// Whether the device has the memory for all threads that it holds at the same time to have stacks of that size, as a
/// driver gives it to them. Here it is taken when a thread uses it, and whatever else the program has of it.
bool StacksFit(const sim::DeviceSpec& spec, std::size_t stack_bytes) {
  const std::uint64_t threads = std::uint64_t{spec.sm.count} * spec.sm.max_threads;
  return threads == 0 || stack_bytes <= Context::kDefaultStackBytes || stack_bytes <= spec.memory.size_bytes / threads;
}

}  // namespace

CUresult cuCtxSetLimit(Process& process, CUlimit limit, std::size_t value) {
  Context& context = ThisContext();
  GL_CU_REQUIRE(limit >= CU_LIMIT_STACK_SIZE && limit <= CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED);
  switch (limit) {
    case CU_LIMIT_MALLOC_HEAP_SIZE: context.device().engine().set_device_heap_bytes(value); break;
    case CU_LIMIT_STACK_SIZE:
      GL_CU_REQUIRE(value <= context.device().spec().thread.max_local_bytes);
      if (!StacksFit(context.device().spec(), value)) return CUDA_ERROR_OUT_OF_MEMORY;
      value = (value + 15) / 16 * 16;
      break;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      if (context.device().spec().l2.persisting_bytes == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
      value = std::min<std::size_t>(value, context.device().spec().l2.persisting_bytes);
      break;
    case CU_LIMIT_SHMEM_SIZE:
    case CU_LIMIT_CIG_ENABLED:
    case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: return CUDA_ERROR_UNSUPPORTED_LIMIT;
    default: break;
  }
  context.limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(Process& process, std::size_t* value, CUlimit limit) {
  GL_CU_REQUIRE(value != nullptr && limit >= CU_LIMIT_STACK_SIZE && limit <= CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED);
  if (limit == CU_LIMIT_SHMEM_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  // No context shares its GPU with graphics (CIG).
  *value = limit > CU_LIMIT_SHMEM_SIZE ? std::size_t{0} : ThisContext().limits[limit].load();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(Process& process, CUfunc_cache* config) {
  GL_CU_REQUIRE(config != nullptr);
  *config = ThisContext().cache_config;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCacheConfig(Process& process, CUfunc_cache config) {
  GL_CU_REQUIRE(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
  ThisContext().cache_config = config;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetSharedMemConfig(Process& process, CUsharedconfig* config) {
  GL_CU_REQUIRE(config != nullptr);
  // Banks of four bytes since Maxwell, whatever was asked for.
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetSharedMemConfig(Process& process, CUsharedconfig config) {
  GL_CU_REQUIRE(config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
  ThisContext().shared_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(Process& process, int* least, int* greatest) {
  Store(least, 0);
  Store(greatest, -5);
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(Process& process) { return CUDA_SUCCESS; }

CUresult cuCtxEnablePeerAccess(Process& process, CUcontext peer, unsigned flags) {
  GL_CU_REQUIRE(flags == 0);
  Context* context = nullptr;
  GL_CU_TRY(FindContext(process, peer, &context));
  return &context->device() == &ThisContext().device() ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}
CUresult cuCtxDisablePeerAccess(Process& process, CUcontext peer) {
  Context* context = nullptr;
  GL_CU_TRY(FindContext(process, peer, &context));
  return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace gridloom::hooks
