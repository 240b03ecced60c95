// Every entry point that starts a kernel. All of them end in session::Launch or, for graphs, in nodes that
// session::MakeKernelOp made.
#include "interpose/launch/launch.h"

#include <cstring>

#include "hooks/support.h"
#include "interpose/launch/submit.h"
#include "interpose/objects/graph.h"

namespace gridloom::hooks {

using session::LaunchRequest;

namespace {

/// What every entry point asks of `stream`, whose SMs the launch has, and its priority unless an attribute says
/// otherwise; parameters are missing.
LaunchRequest RequestOf(const session::Stream& stream, CUfunction function, exec::Dim3 grid, exec::Dim3 block,
                        std::uint32_t shared_bytes) {
  LaunchRequest request;
  request.function = function;
  request.grid = grid;
  request.block = block;
  request.dynamic_shared_bytes = shared_bytes;
  request.priority = stream.priority();
  request.green = session::GreenOf(stream);
  return request;
}

}  // namespace

CUresult cuLaunchKernel(Process& process, CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream, void** params, void** extra) {
  session::StreamPtr target;
  GL_CU_TRY(FindStream(stream, &target));
  LaunchRequest request = RequestOf(*target, function, {gx, gy, gz}, {bx, by, bz}, shared_bytes);
  request.kernel_params = params;
  request.extra = extra;
  return session::Launch(*target, request);
}

CUresult cuLaunchCooperativeKernel(Process& process, CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
                                   void** params) {
  session::StreamPtr target;
  GL_CU_TRY(FindStream(stream, &target));
  LaunchRequest request = RequestOf(*target, function, {gx, gy, gz}, {bx, by, bz}, shared_bytes);
  request.kernel_params = params;
  request.cooperative = true;
  return session::Launch(*target, request);
}

CUresult cuLaunchKernelEx(Process& process, const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
  GL_CU_REQUIRE(config != nullptr && (config->num_attrs == 0 || config->attrs != nullptr));
  session::StreamPtr target;
  GL_CU_TRY(FindStream(config->stream, &target));
  const CUlaunchConfig& shape = *config;
  LaunchRequest request = RequestOf(*target, function, {shape.grid_dim_x, shape.grid_dim_y, shape.grid_dim_z},
                                    {shape.block_dim_x, shape.block_dim_y, shape.block_dim_z}, shape.shared_mem_bytes);
  request.kernel_params = params;
  request.extra = extra;
  std::vector<session::EventPtr> completion;
  for (unsigned i = 0; i < config->num_attrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    const CUlaunchAttributeValue& value = attribute.value;
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: request.cooperative = value.cooperative != 0; break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        request.cluster = {value.cluster_dim.x, value.cluster_dim.y, value.cluster_dim.z};
        break;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY: request.priority = value.priority; break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: {
        const auto event = process.handles.events.Find(value.launch_completion_event.event);
        if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        completion.push_back(event);
        break;
      }
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        if (value.device_updatable_kernel_node.device_updatable != 0) return CUDA_ERROR_NOT_SUPPORTED;
        break;
      // These change when a kernel may start or where its data is cached, never what it computes: running in plain
      // stream order keeps every promise they make.
      default: break;
    }
  }
  GL_CU_TRY(session::Launch(*target, request));
  for (const auto& event : completion) GL_CU_TRY(session::Submit(*target, session::EventRecordOp{event}));
  return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernelMultiDevice(Process& process, CUDA_LAUNCH_PARAMS* list, unsigned count, unsigned) {
  GL_CU_REQUIRE(list != nullptr && count != 0 && count <= process.device_count());
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& p = list[i];
    GL_CU_TRY(cuLaunchCooperativeKernel(process, p.function, p.grid_dim_x, p.grid_dim_y, p.grid_dim_z, p.block_dim_x,
                                        p.block_dim_y, p.block_dim_z, p.shared_mem_bytes, p.stream, p.kernel_params));
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(Process& process, CUgraphExec handle, CUstream stream) {
  const auto exec = process.handles.graph_execs.Find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  session::StreamPtr target;
  GL_CU_TRY(FindStream(stream, &target));
  return session::LaunchGraph(*target, exec);
}

// ---- the launch interface of CUDA 3: block shape and parameters are state of the function

namespace {

CUresult FindFunction(Process& process, CUfunction function, std::shared_ptr<session::Kernel>* kernel) {
  *kernel = process.handles.kernels.Find(reinterpret_cast<CUkernel>(function));
  return *kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

constexpr std::size_t kMostParamBytes = 32764;

CUresult SetParam(Process& process, CUfunction function, int offset, const void* value, std::size_t bytes) {
  GL_CU_REQUIRE(offset >= 0 && value != nullptr && static_cast<std::size_t>(offset) + bytes <= kMostParamBytes);
  std::shared_ptr<session::Kernel> kernel;
  GL_CU_TRY(FindFunction(process, function, &kernel));
  const std::lock_guard lock(kernel->legacy_mutex);
  auto& params = kernel->legacy.params;
  const auto start = static_cast<std::size_t>(offset);
  if (params.size() < start + bytes) params.resize(start + bytes);
  std::memcpy(params.data() + start, value, bytes);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuFuncSetBlockShape(Process& process, CUfunction function, int x, int y, int z) {
  GL_CU_REQUIRE(x > 0 && y > 0 && z > 0);
  std::shared_ptr<session::Kernel> kernel;
  GL_CU_TRY(FindFunction(process, function, &kernel));
  const std::lock_guard lock(kernel->legacy_mutex);
  kernel->legacy.block[0] = static_cast<std::uint32_t>(x);
  kernel->legacy.block[1] = static_cast<std::uint32_t>(y);
  kernel->legacy.block[2] = static_cast<std::uint32_t>(z);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(Process& process, CUfunction function, unsigned bytes) {
  std::shared_ptr<session::Kernel> kernel;
  GL_CU_TRY(FindFunction(process, function, &kernel));
  const std::lock_guard lock(kernel->legacy_mutex);
  kernel->legacy.shared_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult cuParamSetSize(Process& process, CUfunction function, unsigned bytes) {
  GL_CU_REQUIRE(bytes <= kMostParamBytes);
  std::shared_ptr<session::Kernel> kernel;
  GL_CU_TRY(FindFunction(process, function, &kernel));
  const std::lock_guard lock(kernel->legacy_mutex);
  kernel->legacy.params.resize(bytes);
  return CUDA_SUCCESS;
}
CUresult cuParamSeti(Process& process, CUfunction function, int offset, unsigned value) {
  return SetParam(process, function, offset, &value, sizeof(value));
}
CUresult cuParamSetf(Process& process, CUfunction function, int offset, float value) {
  return SetParam(process, function, offset, &value, sizeof(value));
}
CUresult cuParamSetv(Process& process, CUfunction function, int offset, void* value, unsigned bytes) {
  return SetParam(process, function, offset, value, bytes);
}

CUresult cuLaunchGridAsync(Process& process, CUfunction function, int width, int height, CUstream stream) {
  GL_CU_REQUIRE(width > 0 && height > 0);
  std::shared_ptr<session::Kernel> kernel;
  GL_CU_TRY(FindFunction(process, function, &kernel));
  session::StreamPtr target;
  GL_CU_TRY(FindStream(stream, &target));
  session::Kernel::LegacyLaunch state;
  {
    const std::lock_guard lock(kernel->legacy_mutex);
    state = kernel->legacy;
  }
  static constexpr std::byte kNothing[1] = {};
  LaunchRequest request =
      RequestOf(*target, function, {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 1},
                {state.block[0], state.block[1], state.block[2]}, state.shared_bytes);
  request.block_of_params =
      state.params.empty() ? std::span<const std::byte>(kNothing, 0) : std::span<const std::byte>(state.params);
  return session::Launch(*target, request);
}
CUresult cuLaunchGrid(Process& process, CUfunction function, int width, int height) {
  return cuLaunchGridAsync(process, function, width, height, nullptr);
}
CUresult cuLaunch(Process& process, CUfunction function) { return cuLaunchGridAsync(process, function, 1, 1, nullptr); }

CUresult cuLaunchHostFunc(Process& process, CUstream stream, CUhostFn function, void* data) {
  GL_CU_REQUIRE(function != nullptr);
  session::StreamPtr target;
  GL_CU_TRY(FindStream(stream, &target));
  session::HostOp op;
  op.function = function;
  op.data = data;
  return session::Submit(*target, op);
}
// Whether the thread that runs host functions sleeps between them or spins changes nothing that a program sees.
CUresult cuLaunchHostFunc_v2(Process& process, CUstream stream, CUhostFn function, void* data, unsigned sync_mode) {
  constexpr unsigned kSpinWait = 1;
  GL_CU_REQUIRE(sync_mode <= kSpinWait);
  return cuLaunchHostFunc(process, stream, function, data);
}

}  // namespace gridloom::hooks
