// What a stream or a graph node can do. One description for both: a stream runs it, a capturing stream records it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/session/array.h"
#include "interpose/session/conditional.h"
#include "interpose/session/context.h"
#include "interpose/session/memory_order.h"
#include "interpose/session/module.h"
#include "interpose/session/recycled.h"

namespace gridloom::trace {
class CtaSink;
}

namespace gridloom::session {

class Graph;
class GraphMemory;
class MemoryPool;
struct TaskKernel;

/// A kernel launch whose configuration was checked. Made by interpose/session/launch.cpp and nowhere else.
using ParamBytes = std::vector<std::byte, Recycled<std::byte>>;

/// Whether host forms of kernels (Kernel::host_form) may run in this process: not where grids are looked at, checked,
/// cut, or shared out.
bool HostFormsRun();

struct KernelOp {
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  exec::Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t stack_bytes = 0;  ///< the context's limit when it was made
  bool cooperative = false;
  bool in_slices = false;  ///< bound.sliced runs it
  ParamBytes params;
  int priority = 0;
  std::shared_ptr<const GreenContext> green;  ///< on whose SMs it runs; null: on the device's
  std::uint64_t stream = 0;                   ///< number of the one it was put into; 0 for a node of a graph
  std::uint64_t work = 0;                     ///< its number in the program's timeline; 0: nobody keeps one
  std::shared_ptr<TaskKernel>
      task;                  ///< it runs as a task of a MasterKernel's (session/narrow_tasks.h); null: as a grid
  std::uint64_t number = 0;  ///< of the task
  WorkOriginPtr origin;      ///< of the call that launched it, or of its parent; null unless memcheck wants it
  std::shared_ptr<trace::CtaSink> ctas;  ///< takes what its CTAs do to the timing model; null: time is not simulated
};

/// Rows of `width` bytes; every address is plain memory, arrays included.
struct CopyOp {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::size_t width = 0, height = 1, depth = 1;
  std::size_t src_pitch = 0, src_slice = 0, dst_pitch = 0, dst_slice = 0;
  std::shared_ptr<Array> src_array, dst_array;  ///< kept alive until the copy is done
  std::shared_ptr<std::byte[]> staged;          ///< copy of a pageable source, see SubmitCopy
  cuda::CUDA_MEMCPY3D described{};              ///< for cuGraphMemcpyNodeGetParams
};

struct FillOp {
  cuda::CUDA_MEMSET_NODE_PARAMS params{};
};

/// Exactly one of the two functions is set.
struct HostOp {
  cuda::CUhostFn function = nullptr;
  cuda::CUstreamCallback callback = nullptr;
  cuda::CUstream stream = nullptr;  ///< what the callback is told
  void* data = nullptr;
};

struct EventRecordOp {
  EventPtr event;
};
struct EventWaitOp {
  EventPtr event;
};

struct AllocOp {
  cuda::CUDA_MEM_ALLOC_NODE_PARAMS params{};  ///< pointer filled when the node is made
  std::shared_ptr<GraphMemory> memory;
};
/// One of the two is set: where the memory is from.
struct FreeOp {
  std::uint64_t address = 0;
  std::shared_ptr<MemoryPool> pool;
  std::shared_ptr<GraphMemory> of_graph;
};

struct BatchOp {
  std::vector<cuda::CUstreamBatchMemOpParams> items;
  unsigned flags = 0;
};

struct ChildOp {
  std::shared_ptr<Graph> graph;
};
struct EmptyOp {};

using Operation = std::variant<EmptyOp, KernelOp, CopyOp, FillOp, HostOp, EventRecordOp, EventWaitOp, AllocOp, FreeOp,
                               BatchOp, ChildOp, ConditionalOp>;

/// Nodes that allocate or free memory keep what they were made with.
inline bool IsMemory(const Operation& operation) {
  return std::holds_alternative<AllocOp>(operation) || std::holds_alternative<FreeOp>(operation);
}

/// Runs the operation on the calling thread. A kernel's fault becomes the context's error; after one, only host
/// callbacks still run (they are told). Event, child and conditional operations are expressed as dependencies and do
/// nothing here. `origin`: where it comes from; null where nobody asks, or where a kernel knows it.
void Run(Context& context, const Operation& operation, const WorkOriginPtr& origin = {});

/// What the engine is told of the operation's kernel and how it is launched.
exec::LaunchParams LaunchOf(const KernelOp& op);

/// How the host waits for an operation it submits.
enum class Waiting : std::uint8_t {
  kNo,      ///< returns at once
  kIfIdle,  ///< runs here when nothing is in the way, else returns at once: for small copies and fills
  kYes,
};

/// Puts an operation into a stream, or into the graph the stream is being captured to. Answers the error of the context
/// when the host waited for the end.
cuda::CUresult Submit(Stream& stream, Operation operation, Waiting waiting = Waiting::kNo);

}  // namespace gridloom::session
