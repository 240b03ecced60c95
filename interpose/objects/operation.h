// What a stream or a graph node can do. One description for both: a stream runs it, a capturing stream records it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/base/recycled.h"
#include "interpose/objects/array.h"
#include "interpose/objects/conditional.h"
#include "interpose/objects/context.h"
#include "interpose/objects/launch_plan.h"
#include "interpose/objects/module.h"

namespace gridloom::session {

class Graph;
class GraphMemory;
class MemoryPool;

using ParamBytes = std::vector<std::byte, Recycled<std::byte>>;

/// A kernel launch whose configuration was checked. Made by interpose/launch/launch.cpp and nowhere else.
struct KernelOp {
  std::shared_ptr<Kernel> kernel;
  Kernel::Bound bound;
  exec::Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t stack_bytes = 0;  ///< the context's limit when it was made
  bool cooperative = false;
  ParamBytes params;
  int priority = 0;
  std::shared_ptr<const GreenContext> green;  ///< on whose SMs it runs; null: on the device's
  std::uint64_t stream = 0;                   ///< number of the one it was put into; 0 for a node of a graph
  LaunchPlan plan;                            ///< what stages of its launch have left there
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

/// What the engine is told of the operation's kernel and how it is launched.
exec::LaunchParams LaunchOf(const KernelOp& op);

}  // namespace gridloom::session
