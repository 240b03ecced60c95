#include "interpose/observe/memory_order.h"

#include <algorithm>

#include "interpose/observe/graph_memory_order.h"
#include "sim/exec/device_memory.h"
#include "sim/exec/memcheck.h"

namespace gridloom::session {

void MemoryOrder::Allocated(const Stream& stream, const exec::Allocation& allocation,
                            const exec::DeviceMemory& memory) {
  active_.store(true, std::memory_order_release);
  StreamOrder::Place place = streams_.Add(stream);
  const std::lock_guard lock(mutex_);
  Renew(allocation, memory).allocated = std::move(place);
}

MemoryOrder::Record& MemoryOrder::Renew(const exec::Allocation& allocation, const exec::DeviceMemory& memory) {
  if (records_.size() >= most_) ForgetFreed();
  Record& record = records_[allocation.base];
  record = {};
  record.memory = &memory;
  record.id = allocation.id;
  return record;
}

MemoryOrder::Record* MemoryOrder::FindLocked(const exec::Allocation& allocation) {
  const auto found = records_.find(allocation.base);
  return found != records_.end() && found->second.id == allocation.id ? &found->second : nullptr;
}

void MemoryOrder::ForgetFreed() {
  std::erase_if(records_, [](const auto& entry) {
    const auto allocation = entry.second.memory->Find(entry.first);
    return !allocation || allocation->id != entry.second.id;
  });
  most_ = std::max<std::size_t>(1024, 2 * records_.size());
}

void MemoryOrder::Freed(const StreamOrder::Place& place, const exec::Allocation& allocation) {
  const std::lock_guard lock(mutex_);
  if (Record* const record = FindLocked(allocation)) record->freed = place;
}

std::string MemoryOrder::CheckFree(const StreamOrder::Place& place, const exec::Allocation& allocation) {
  const std::lock_guard lock(mutex_);
  return CheckFreeLocked(place, allocation);
}

std::string MemoryOrder::CheckFreeLocked(const StreamOrder::Place& place, const exec::Allocation& allocation) {
  Record* const known = FindLocked(allocation);
  if (known == nullptr) return {};
  Record& record = *known;
  if (record.allocated && !streams_.IsBefore(*record.allocated, place))
    return "freed in " + place.name + ", which nothing orders behind its allocation in " + record.allocated->name;
  for (const auto& [stream, use] : record.uses) {
    if (!streams_.IsBefore(use.place, place))
      return "freed in " + place.name + ", which nothing orders behind " + use.who + " in " + use.place.name;
  }
  return {};
}

std::vector<std::string> MemoryOrder::Launched(const StreamOrder::Place& place, const GraphMemoryOrder& graph,
                                               const exec::DeviceMemory& memory) {
  std::vector<std::string> wrong;
  if (!graph.lifetimes().empty()) active_.store(true, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  for (const auto& [address, lifetime] : graph.lifetimes()) {
    const auto allocation = memory.Find(address);
    if (!allocation) continue;
    if (lifetime.allocates) {
      Record& record = Renew(*allocation, memory);
      record.allocated = place;
      if (lifetime.frees) record.freed = place;
    } else if (Record* const record = FindLocked(*allocation)) {
      record->freed = place;
      if (const std::string text = CheckFreeLocked(place, *allocation); !text.empty())
        wrong.push_back(exec::NameAllocation(*allocation) + ": " + text);
    }
  }
  return wrong;
}

namespace {

/// What is wrong with the use by a node of the graph that allocates or frees the memory.
std::string WrongInGraph(const GraphMemoryOrder::Lifetime& lifetime, std::uint32_t node) {
  if (lifetime.allocates && !lifetime.after_allocation[node])
    return "which no dependency of the graph orders before this node";
  if (!lifetime.frees || lifetime.before_free[node]) return {};
  return lifetime.after_free[node] ? "which the graph frees before this node"
                                   : "which the graph frees, in no order with this node";
}

}  // namespace

std::string MemoryOrder::Use(const WorkOrigin& origin, const exec::Allocation& allocation, const std::string& who) {
  if (!origin.place) return {};
  const StreamOrder::Place& place = *origin.place;
  const std::lock_guard lock(mutex_);
  Record* const known = FindLocked(allocation);
  if (known == nullptr) return {};
  Record& record = *known;
  const auto* const in_graph = origin.graph ? origin.graph->Find(allocation.base) : nullptr;
  if (in_graph) {
    if (std::string wrong = WrongInGraph(*in_graph, origin.node); !wrong.empty()) return wrong;
    if (in_graph->allocates) return {};
  }
  if (record.allocated && !streams_.IsBefore(*record.allocated, place))
    return "whose allocation in " + record.allocated->name + " nothing orders before this in " + place.name;
  if (!in_graph && record.freed && !streams_.IsBefore(place, *record.freed)) {
    if (streams_.IsBefore(*record.freed, place)) return "which has been freed in " + record.freed->name;
    return "which is freed in " + record.freed->name + ", in no order with this in " + place.name;
  }
  LastUse& last = record.uses[place.stream];
  if (last.place.number <= place.number) last = {place, who};
  return {};
}

}  // namespace gridloom::session
