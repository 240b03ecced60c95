// Whether work uses stream-ordered memory (cudaMallocAsync, allocation nodes of graphs) between its allocation and its
// free, in the order that the program's calls give: streams, events, what the host waits for, dependencies of nodes.
// Whatever has run first (memcheck, docs/memcheck.md#streams). Begins with the first such allocation; programs without
// pay nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interpose/base/host_stack.h"
#include "interpose/observe/stream_order.h"

namespace gridloom::exec {
struct Allocation;
class DeviceMemory;
}  // namespace gridloom::exec

namespace gridloom::session {

class GraphMemoryOrder;

/// Where a grid, a copy or a fill comes from.
struct WorkOrigin {
  HostStackPtr stack;  ///< of the call that submitted it or launched its graph; null unless wanted
  /// The operation's own place or that of its graph; none before there is stream-ordered memory.
  std::optional<StreamOrder::Place> place;
  std::shared_ptr<const GraphMemoryOrder> graph;  ///< that it is a node of; null: of none
  std::uint32_t node = 0;                         ///< in `graph`, or the node whose child graph it is in
};
using WorkOriginPtr = std::shared_ptr<const WorkOrigin>;

class MemoryOrder {
 public:
  /// There is, or was, stream-ordered memory.
  bool active() const { return active_.load(std::memory_order_acquire); }
  StreamOrder& streams() { return streams_; }

  /// cudaMallocAsync.
  void Allocated(const Stream& stream, const exec::Allocation& allocation, const exec::DeviceMemory& memory);
  /// cudaFreeAsync.
  void Freed(const StreamOrder::Place& place, const exec::Allocation& allocation);
  /// Its turn has come. What is wrong with it, in words; empty: nothing.
  std::string CheckFree(const StreamOrder::Place& place, const exec::Allocation& allocation);
  /// A graph that allocates or frees memory is launched. The same of what it frees.
  std::vector<std::string> Launched(const StreamOrder::Place& place, const GraphMemoryOrder& graph,
                                    const exec::DeviceMemory& memory);
  /// Work uses memory: `who` names it. What is wrong with that; empty: nothing.
  std::string Use(const WorkOrigin& origin, const exec::Allocation& allocation, const std::string& who);

 private:
  struct LastUse {
    StreamOrder::Place place;
    std::string who;
  };
  struct Record {
    const exec::DeviceMemory* memory = nullptr;  ///< lives as long as its device
    std::uint64_t id = 0;                        ///< of the allocation: in `memory` alone
    std::optional<StreamOrder::Place> allocated, freed;
    std::map<std::uint64_t, LastUse> uses;  ///< by stream
  };
  Record& Renew(const exec::Allocation& allocation, const exec::DeviceMemory& memory);
  Record* FindLocked(const exec::Allocation& allocation);
  std::string CheckFreeLocked(const StreamOrder::Place& place, const exec::Allocation& allocation);
  void ForgetFreed();

  std::atomic<bool> active_{false};
  StreamOrder streams_;
  std::mutex mutex_;
  std::map<std::uint64_t, Record> records_;  ///< by the allocation's address: devices have none in common
  std::size_t most_ = 1024;                  ///< with so many, those of memory that is freed go
};

}  // namespace gridloom::session
