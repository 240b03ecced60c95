// Memory of allocation nodes (CUDA C++ Programming Guide, "Graph Memory Nodes"). An allocation has one address for all
// launches. Who may free it, and when a graph may be launched again, is decided when a call is made, in the order of
// the calls, as a driver does.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "interpose/api/cuda_types.h"

namespace gridloom::session {

class Device;
class MemoryPool;

/// What one allocation node allocates. The address is taken as long as somebody has this: the node, launches that use
/// it, and from the launch that allocates it until it is freed.
class GraphMemory {
 public:
  /// Null when there is no such memory left.
  static std::shared_ptr<GraphMemory> Make(Device& device, std::uint64_t bytes);
  /// Whose address it is; null: no allocation node's.
  static std::shared_ptr<GraphMemory> Find(std::uint64_t address);
  ~GraphMemory();

  std::uint64_t address() const { return address_; }
  /// The program frees it in stream order. False unless a launch has allocated it since it was freed last.
  bool BeginFree();
  /// Takes BeginFree back: the program does not free the memory after all.
  void CancelFree();

 private:
  friend class GraphMemoryUse;
  GraphMemory(std::shared_ptr<MemoryPool> pool, std::uint64_t address) : pool_(std::move(pool)), address_(address) {}

  const std::shared_ptr<MemoryPool> pool_;
  const std::uint64_t address_;
  // Guarded by the one mutex of all graph memory.
  bool freed_by_own_graph_ = false, freed_by_other_graph_ = false;  ///< there is such a node
  std::shared_ptr<GraphMemory> allocated_;  ///< itself while a launch has allocated it and nobody freed it
};

/// What the nodes of one graph, and of graphs inside of it, do with graph memory. The nodes keep the memory.
class GraphMemoryUse {
 public:
  bool any() const { return !allocates_.empty() || !frees_.empty(); }
  /// A node that allocates the memory is added.
  void AddAllocation(GraphMemory& memory) { allocates_.insert(&memory); }
  /// A node that frees it is added. INVALID_VALUE when another node of this graph does so already, or when nodes of the
  /// graph that allocates it and of another one would both do so.
  cuda::CUresult AddFree(GraphMemory& memory);
  void NoteFree(GraphMemory& memory) { frees_.insert(&memory); }
  /// What another one does is part of this one.
  void Add(const GraphMemoryUse& part);

  /// The graph is launched. INVALID_VALUE, and nothing is changed, when what it allocates was not freed since its last
  /// launch, unless `auto_free`, or when what it frees was not allocated.
  cuda::CUresult BeginLaunch(bool auto_free) const;

 private:
  bool Allocates(GraphMemory* memory) const { return allocates_.contains(memory); }
  std::unordered_set<GraphMemory*> allocates_, frees_;
};

}  // namespace gridloom::session
