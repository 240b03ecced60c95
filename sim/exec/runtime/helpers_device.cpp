// The device runtime's system calls: launches from the device, its streams and events, errors, queries (CUDA C++
// Programming Guide, "CUDA Dynamic Parallelism"). One function per row of device_calls.def; each serves one lane.
#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/observe.h"
#include "sim/exec/runtime/parameter_buffers.h"
#include "sim/exec/runtime/printf_output.h"
#include "sim/exec/runtime/program_impl.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kMaxChildParamBytes = 4096;
constexpr unsigned kMaxParameters = 9;

/// The calling lane and its arguments, a dim3 as three of them.
struct Caller {
  Warp& warp;
  std::uint32_t lane, line;
  std::uint64_t imm;  ///< of the helper
  std::uint64_t arg[kMaxParameters];

  Launch& launch() const { return LaunchOf(warp); }
  EngineServices& services() const { return ServicesOf(warp); }
  std::uint32_t word(unsigned n) const { return static_cast<std::uint32_t>(arg[n]); }
  Dim3 dims(unsigned n) const { return {word(n), word(n + 1), word(n + 2)}; }
  std::uint64_t cta() const { return CtaNumber(warp); }
  std::uint64_t thread() const {
    const std::uint32_t* const block = launch().ctx.block;
    return cta() * block[0] * block[1] * block[2] + std::uint64_t{warp.ctx.warp_id} * kWarpSize + lane;
  }
  const KernelInfo* kernel(unsigned n) const {
    return static_cast<const ProgramImpl&>(*launch().program).KernelAt(arg[n]);
  }

  /// Access to the thread's memory; a bad pointer is the kernel's fault and does not return.
  template <typename T>
  void Store(unsigned n, T value) const {
    std::uint8_t* const to = CheckedAddress(warp, lane, line, Space::kGeneric, arg[n], sizeof(T), AccessKind::kWrite);
    LaneAccess access(warp, line);
    access.At(lane);
    std::memcpy(to, &value, sizeof value);
  }
  Dim3 LoadDims(unsigned n) const {
    std::uint32_t words[3];
    LaneAccess access(warp, line);
    for (unsigned i = 0; i < 3; ++i) {
      const std::uint8_t* const from =
          CheckedAddress(warp, lane, line, Space::kGeneric, arg[n] + 4 * i, 4, AccessKind::kRead);
      access.At(lane);
      std::memcpy(&words[i], from, 4);
    }
    return {words[0], words[1], words[2]};
  }
};

std::uint64_t Number(DeviceStatus status) { return static_cast<std::uint64_t>(status); }

// ---------------------------------------------------------------------------------------------------------------------
// Launches
// ---------------------------------------------------------------------------------------------------------------------

std::uint64_t GetParameterBuffer(const Caller& c) {
  if (c.arg[1] > kMaxChildParamBytes || (c.arg[0] & (c.arg[0] - 1)) != 0) return 0;
  return c.services().parameter_buffers->Make({.owner = c.launch().serial, .bytes = c.arg[1]}, c.arg[0]);
}

std::uint64_t GetParameterBufferV2(const Caller& c) {
  const KernelInfo* const kernel = c.kernel(0);
  if (!kernel || kernel->params.bytes > kMaxChildParamBytes) return 0;
  ParameterBuffers::Buffer buffer{.owner = c.launch().serial, .bytes = kernel->params.bytes, .kernel = kernel};
  buffer.grid = c.dims(1);
  buffer.block = c.dims(4);
  buffer.dynamic_shared_bytes = c.word(7);
  constexpr std::uint64_t kAlign = 64;  // as cudaGetParameterBuffer promises
  return c.services().parameter_buffers->Make(buffer, kAlign);
}

/// Launches what `buffer` describes, with the parameters at `address` (0: none). `marks` are those of the launch
/// besides its stream's. The handle of a stream that a program names: each thread has a per-thread stream of its own.
std::uint64_t StreamFor(const Caller& c, std::uint64_t stream) {
  return stream == GridChildren::kPerThreadStream ? GridChildren::StreamOfThread(c.thread()) : stream;
}

DeviceStatus LaunchChild(const Caller& c, const ParameterBuffers::Buffer& buffer, std::uint64_t address,
                         std::uint64_t stream, std::uint8_t marks = 0) {
  GridChildren* const children = c.launch().children;
  if (!children) return DeviceStatus::kStartupFailure;
  const std::uint64_t needed = buffer.kernel->params.bytes;
  if (needed > buffer.bytes || (needed != 0 && address == 0)) return DeviceStatus::kInvalidValue;
  LaunchParams launch;
  launch.program = c.launch().program;
  launch.kernel = buffer.kernel;
  launch.grid = buffer.grid;
  launch.block = buffer.block;
  launch.cluster = {0, 0, 0};
  launch.dynamic_shared_bytes = buffer.dynamic_shared_bytes;
  launch.params = {reinterpret_cast<const std::byte*>(address), needed};
  // printf has one buffer for all grids (CUDA C++ Programming Guide, "Formatted Output"): what was printed before a
  // launch stands before anything that the launched grid prints.
  c.services().output->Flush(c.launch().serial);
  std::uint64_t number = 0;
  const DeviceStatus status = children->Launch(launch, c.cta(), stream, number);
  if (status == DeviceStatus::kSuccess && number != 0) {
    const std::uint8_t flags = stream == GridChildren::kTailLaunch        ? RecordedEvent::kTailLaunch
                               : stream == GridChildren::kFireAndForget   ? RecordedEvent::kFireAndForget
                               : stream <= GridChildren::kPerThreadStream ? RecordedEvent::kDefaultStream
                                                                          : std::uint8_t{0};  // a thread's own, too
    RecordEvent(c.warp, c.lane, c.imm,
                {.kind = RecordedEvent::kDeviceLaunch,
                 .flags = static_cast<std::uint8_t>(flags | marks),
                 .data = {number, launch.grid.count(), launch.block.count(), needed}});
  }
  return status;
}

/// The kernel and the buffer are the first arguments; the buffer says no more than where the parameters lie.
std::uint64_t LaunchKernel(const Caller& c, Dim3 grid, Dim3 block, std::uint32_t dynamic_shared_bytes,
                           std::uint64_t stream, std::uint8_t marks = 0) {
  ParameterBuffers& buffers = *c.services().parameter_buffers;
  ParameterBuffers::Buffer buffer;
  if (c.arg[1] != 0) {
    const auto found = buffers.Find(c.arg[1], c.launch().serial);
    if (!found) return Number(DeviceStatus::kInvalidValue);
    buffer = *found;
  }
  buffer.kernel = c.kernel(0);
  buffer.grid = grid;
  buffer.block = block;
  buffer.dynamic_shared_bytes = dynamic_shared_bytes;
  const DeviceStatus status =
      buffer.kernel ? LaunchChild(c, buffer, c.arg[1], stream, marks) : DeviceStatus::kInvalidValue;
  if (c.arg[1] != 0) buffers.Free(c.arg[1]);
  return Number(status);
}

/// The buffer is the first argument.
std::uint64_t LaunchBuffer(const Caller& c, std::uint64_t stream, std::uint8_t marks = 0) {
  ParameterBuffers& buffers = *c.services().parameter_buffers;
  const auto buffer = buffers.Find(c.arg[0], c.launch().serial);
  if (!buffer || !buffer->kernel) return Number(DeviceStatus::kInvalidValue);
  const DeviceStatus status = LaunchChild(c, *buffer, c.arg[0], stream, marks);
  buffers.Free(c.arg[0]);
  return Number(status);
}

std::uint64_t LaunchDevice(const Caller& c) {
  return LaunchKernel(c, c.LoadDims(2), c.LoadDims(3), c.word(4), StreamFor(c, c.arg[5]));
}
std::uint64_t LaunchDeviceV2(const Caller& c) { return LaunchBuffer(c, StreamFor(c, c.arg[1])); }
std::uint64_t LaunchDeviceV2PerThread(const Caller& c) {
  return LaunchBuffer(c,
                      StreamFor(c, c.arg[1] == GridChildren::kBlockStream ? GridChildren::kPerThreadStream : c.arg[1]));
}

/// A group waits for nothing and nothing in its parent waits for it, so that its blocks can join others
/// (docs/passes.md, `aggregate`).
std::uint64_t LaunchGroup(const Caller& c) {
  return LaunchKernel(c, c.dims(2), c.dims(5), c.word(8), GridChildren::kFireAndForget, RecordedEvent::kAggregated);
}
std::uint64_t LaunchGroupV2(const Caller& c) {
  return LaunchBuffer(c, GridChildren::kFireAndForget, RecordedEvent::kAggregated);
}

/// Waits for everything the CTA has launched; other warps and CTAs run meanwhile. Kernels with this call have fibers.
std::uint64_t DeviceSynchronize(const Caller& c) {
  GridChildren* const children = c.launch().children;
  if (!children || children->Idle(c.cta())) return 0;
  children->BeginWait();
  c.warp.line = c.line;
  while (!children->Idle(c.cta())) c.warp.cta->unit->Yield(c.warp);
  children->EndWait();
  return 0;
}

// ---------------------------------------------------------------------------------------------------------------------
// Errors, streams, events
// ---------------------------------------------------------------------------------------------------------------------

std::uint64_t GetLastError(const Caller& c) {
  DeviceErrors& errors = c.launch().device_errors;
  const std::lock_guard lock(errors.mutex);
  const auto it = errors.by_thread.find(c.thread());
  return it == errors.by_thread.end() ? 0 : it->second;
}

void Note(const Caller& c, std::uint32_t error) {
  DeviceErrors& errors = c.launch().device_errors;
  const std::lock_guard lock(errors.mutex);
  if (error == 0) errors.by_thread.erase(c.thread());
  else errors.by_thread[c.thread()] = error;
}

std::uint64_t SetLastError(const Caller& c) {
  Note(c, c.word(0));
  return c.word(0);
}

/// Calls a member of GridChildren that has a 64-bit result, and stores it where the first argument points to.
template <typename Method>
std::uint64_t Create(const Caller& c, Method method) {
  GridChildren* const children = c.launch().children;
  if (!children) return Number(DeviceStatus::kStartupFailure);
  std::uint64_t handle = 0;
  const DeviceStatus status = (children->*method)(&handle);
  if (status == DeviceStatus::kSuccess) c.Store<std::uint64_t>(0, handle);
  return Number(status);
}

template <typename Method, typename... Args>
std::uint64_t Ask(const Caller& c, Method method, Args... args) {
  GridChildren* const children = c.launch().children;
  return Number(children ? (children->*method)(args...) : DeviceStatus::kStartupFailure);
}

std::uint64_t StreamCreate(const Caller& c) {
  const std::uint64_t status = Create(c, &GridChildren::CreateStream);
  if (status == 0) RecordEvent(c.warp, c.lane, c.imm, {.kind = RecordedEvent::kStreamCreate});
  return status;
}
std::uint64_t StreamDestroy(const Caller& c) { return Ask(c, &GridChildren::DestroyStream, c.arg[0]); }
std::uint64_t StreamWaitEvent(const Caller& c) {
  return Ask(c, &GridChildren::WaitEvent, c.arg[1], c.cta(), StreamFor(c, c.arg[0]));
}
std::uint64_t EventCreate(const Caller& c) { return Create(c, &GridChildren::CreateEvent); }
std::uint64_t EventRecord(const Caller& c) {
  return Ask(c, &GridChildren::RecordEvent, c.arg[0], c.cta(), StreamFor(c, c.arg[1]));
}
std::uint64_t EventDestroy(const Caller& c) { return Ask(c, &GridChildren::DestroyEvent, c.arg[0]); }

// ---------------------------------------------------------------------------------------------------------------------
// Queries
// ---------------------------------------------------------------------------------------------------------------------

/// Stores a constant answer.
std::uint64_t Answer(const Caller& c, std::uint32_t value) {
  c.Store<std::uint32_t>(0, value);
  return 0;
}

std::uint64_t GetDevice(const Caller& c) { return Answer(c, 0); }
std::uint64_t GetDeviceCount(const Caller& c) { return Answer(c, 1); }
std::uint64_t GetCacheConfig(const Caller& c) { return Answer(c, 0); }      // no preference
std::uint64_t GetSharedMemConfig(const Caller& c) { return Answer(c, 1); }  // banks of four bytes

std::uint64_t DeviceGetAttribute(const Caller& c) {
  GridChildren* const children = c.launch().children;
  int value = 0;
  if (!children) return Number(DeviceStatus::kStartupFailure);
  const DeviceStatus status = children->Attribute(static_cast<int>(c.word(1)), static_cast<int>(c.word(2)), &value);
  if (status == DeviceStatus::kSuccess) c.Store<std::int32_t>(0, value);
  return Number(status);
}

std::uint64_t GetLimit(const Caller& c) {
  GridChildren* const children = c.launch().children;
  std::uint64_t value = 0;
  if (!children) return Number(DeviceStatus::kStartupFailure);
  const DeviceStatus status = children->Limit(c.word(1), &value);
  if (status == DeviceStatus::kSuccess) c.Store<std::uint64_t>(0, value);
  return Number(status);
}

std::uint32_t StackLimit(const Caller& c) {
  constexpr unsigned kStackSize = 0;  // CU_LIMIT_STACK_SIZE
  std::uint64_t value = 0;
  GridChildren* const children = c.launch().children;
  if (children == nullptr || children->Limit(kStackSize, &value) != DeviceStatus::kSuccess) return 0;
  return static_cast<std::uint32_t>(value);
}

/// The attributes are numbered as in cuFuncGetAttribute; sizes are 64 bits wide in cudaFuncAttributes.
std::uint64_t FuncGetAttribute(const Caller& c) {
  const KernelInfo* const kernel = c.kernel(2);
  if (!kernel) return Number(DeviceStatus::kInvalidValue);
  const ptx::Module& module = c.launch().program->module_as_read();
  switch (c.word(1)) {
    case 0: return Answer(c, kernel->max_threads);
    case 1: return c.Store<std::uint64_t>(0, kernel->static_shared_bytes), 0;
    case 2: return c.Store<std::uint64_t>(0, kernel->const_bytes), 0;
    case 3: return c.Store<std::uint64_t>(0, kernel->LocalBytes(StackLimit(c))), 0;
    case 4: return Answer(c, kernel->registers);
    case 5:
    case 6: return Answer(c, kernel->function->target_sm != 0 ? kernel->function->target_sm : module.sm());
    default: return Number(DeviceStatus::kInvalidValue);
  }
}

std::uint64_t MaxActiveBlocksPerMultiprocessor(const Caller& c) {
  const KernelInfo* const kernel = c.kernel(1);
  if (!kernel || c.word(2) == 0) return Number(DeviceStatus::kInvalidValue);
  return Answer(c, c.services().engine->Occupancy(*kernel, c.word(2), c.word(3), StackLimit(c)));
}
std::uint64_t MaxActiveBlocksPerMultiprocessorWithFlags(const Caller& c) { return MaxActiveBlocksPerMultiprocessor(c); }

struct CallInfo {
  std::uint64_t (*function)(const Caller&);
  unsigned bits, inputs;
};

constexpr unsigned InputsOf(const char* params) {
  unsigned count = 0;
  for (; *params != 0; ++params) count += *params == 'd' ? 3 : 1;
  return count;
}

/// Translates as the device runtime library does.
std::uint32_t CudaErrorOf(std::uint64_t status) {
  switch (static_cast<DeviceStatus>(status)) {
    case DeviceStatus::kSuccess: return 0;
    case DeviceStatus::kInvalidValue: return 1;
    case DeviceStatus::kStartupFailure: return 127;
    case DeviceStatus::kInvalidDevice: return 101;
    case DeviceStatus::kOutOfMemory: return 2;
    case DeviceStatus::kDepthExceeded: return 65;
    case DeviceStatus::kOutOfResources: return 701;
    case DeviceStatus::kInvalidConfiguration: return 9;
    case DeviceStatus::kPendingCountExceeded: return 69;
    case DeviceStatus::kUnsupportedLimit: return 215;
  }
  return 999;
}

std::uint64_t NoteError(const Caller& c, std::uint64_t status) {
  const std::uint32_t error = CudaErrorOf(status);
  if (error != 0) Note(c, error);
  return error;
}

constexpr CallInfo kCalls[] = {
#define GL_DEVICE_CALL(name, bits, params) {&name, bits, InputsOf(params)},
#include "sim/exec/contract/device_calls.def"
#undef GL_DEVICE_CALL
};
static_assert(std::ranges::all_of(kCalls, [](const CallInfo& call) { return call.inputs <= kMaxParameters; }));

}  // namespace

void Helper_kDeviceRuntime(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const CallInfo& call = kCalls[imm & 0xff];
  const bool translate = (imm & kDeviceCallByLibrary) != 0 && call.bits == 32;
  auto* const out = static_cast<std::uint64_t*>(args[0]);
  Caller caller{.warp = WarpOf(ctx), .lane = 0, .line = line, .imm = imm, .arg = {}};
  ForEachLane(mask, [&](std::uint32_t lane) {
    caller.lane = lane;
    for (unsigned i = 0; i < call.inputs; ++i) caller.arg[i] = static_cast<const std::uint64_t*>(args[1 + i])[lane];
    out[lane] = call.function(caller);
    if (translate) out[lane] = NoteError(caller, out[lane]);
  });
}

/// Lanes that disagree race; the last one wins.
void Helper_kSetConditional(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm,
                            void* const* args) {
  Warp& warp = WarpOf(ctx);
  GridChildren* const children = LaunchOf(warp).children;
  ForEachLane(mask, [&](std::uint32_t lane) {
    const std::uint64_t handle = static_cast<const std::uint64_t*>(args[0])[lane];
    if (children && children->SetConditional(handle, static_cast<const std::uint32_t*>(args[1])[lane])) return;
    RaiseFault(warp, FaultKind::kIllegalInstruction, lane, 0, line,
               "cudaGraphSetConditional with a handle that no graph has");
  });
}

}  // namespace gridloom::exec
