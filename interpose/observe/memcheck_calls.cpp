// Calls of the driver interface that memcheck complains of: what they were given, and stream-ordered memory that they
// or the work that they submit use in no order (memory_order.h).
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "interpose/base/log.h"
#include "interpose/objects/graph_plan.h"
#include "interpose/objects/process.h"
#include "interpose/observe/graph_memory_order.h"
#include "interpose/observe/memcheck.h"
#include "sim/exec/program.h"

namespace gridloom::session {

using namespace cuda;

void MemcheckLog::CallFailed(const char* call, const char* status) {
  BadCall(call, std::string("answered ") + status, StackHere());
}

void MemcheckLog::BadCall(const char* call, const std::string& what, HostStackPtr stack) {
  if (!on_ || finished_.load() || !filter_.Wants("call", call)) return;
  const Call bad{call, what, 1, std::move(stack)};
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(calls_, [&](const Call& c) { return c.call == call && c.what == what; });
    if (known != calls_.end()) {
      ++known->times;
      return;
    }
    if (calls_.size() >= limit_) return;
    calls_.push_back(bad);
  }
  LogText("gridloom: error: " + bad.call + ": " + what + HostStack::Text("called", bad.stack) + "\n");
  Journal("call", Json(bad));
}

void MemcheckLog::BadFree(const char* call, Context& context, std::uint64_t pointer) {
  if (!on_) return;
  const exec::DeviceMemory& memory = context.device().memory();
  const auto live = memory.Find(pointer);
  const auto freed = live ? live : memory.FindFreed(pointer);
  // What a stream has still to free is there, and not the program's any more.
  if (freed && freed->base == pointer && (!live || live->kind == exec::MemoryKind::kPool))
    return BadCall(call, "double free of " + exec::NameAllocation(*freed), StackHere());
  BadCall(call,
          "free of " + exec::HexAddress(pointer) +
              ", which is no pointer that an allocation gave: " + exec::DescribePlace(memory, pointer, 1),
          StackHere());
}

namespace {

exec::MemcheckAccess AccessOf(std::uint64_t bytes, bool write) {
  exec::MemcheckAccess access;
  access.kind = write ? exec::AccessKind::kWrite : exec::AccessKind::kRead;
  access.bytes = bytes;
  return access;
}

constexpr const char* kCopyOrFill = "copy or fill";

}  // namespace

void MemcheckLog::BadRange(Context& context, std::uint64_t pointer, std::uint64_t bytes, bool write) {
  if (!on_) return;
  const exec::DeviceMemory& memory = context.device().memory();
  const auto kind = memory.FindFreed(pointer) ? exec::MemcheckKind::kUseAfterFree : exec::MemcheckKind::kOutOfBounds;
  BadCall(kCopyOrFill,
          exec::DescribeAccess(kind, AccessOf(bytes, write), exec::Space::kGlobal) + ", address " +
              exec::HexAddress(pointer) + ": " + exec::DescribePlace(memory, pointer, bytes),
          StackHere());
}

void MemcheckLog::CheckRange(Context& context, std::uint64_t pointer, std::uint64_t bytes, bool write) {
  if (!on_) return;
  const auto allocation = context.device().memory().Find(pointer);
  if (!allocation) return;
  std::uint64_t base = allocation->base, size = allocation->bytes;
  std::string name = exec::NameAllocation(*allocation);
  switch (allocation->kind) {
    case exec::MemoryKind::kPinned: break;
    case exec::MemoryKind::kModule: {
      const exec::GlobalInfo* variable = nullptr;
      for (const exec::GlobalInfo& one : exec::VariablesIn(*allocation))
        if (one.address <= pointer && (!variable || one.address > variable->address)) variable = &one;
      if (!variable) return;
      base = variable->address;
      size = variable->bytes;
      name = exec::NameVariable(variable->name, size);
      break;
    }
    default: return;  // what is not there is refused
  }
  if (pointer - base <= size && bytes <= size - (pointer - base)) return;
  BadCall(kCopyOrFill,
          exec::DescribeAccess(exec::MemcheckKind::kOutOfBounds, AccessOf(bytes, write), exec::Space::kGlobal) +
              ", address " + exec::HexAddress(pointer) + ": " + exec::DescribeMiss(pointer, bytes, base, size, name),
          StackHere());
}

// ---------------------------------------------------------------------------------------------------------------------
// Stream-ordered memory
// ---------------------------------------------------------------------------------------------------------------------

namespace {

bool WaitsForValue(const BatchOp& batch) {
  return std::ranges::any_of(batch.items, [](const CUstreamBatchMemOpParams& item) {
    return item.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || item.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  });
}

/// What comes behind it may come behind anything: a value that anybody writes, or what a host function waits for.
bool MayWaitForOthers(const Operation& operation) {
  if (std::holds_alternative<HostOp>(operation)) return true;
  const auto* const batch = std::get_if<BatchOp>(&operation);
  return batch != nullptr && WaitsForValue(*batch);
}

}  // namespace

WorkOriginPtr MemcheckLog::Submitted(const Stream& stream, const Operation& operation) {
  const bool ordered = order_.active();
  if (!ordered && !host_stacks_) return nullptr;
  StreamOrder& order = order_.streams();
  if (const auto* record = std::get_if<EventRecordOp>(&operation)) {
    if (ordered) order.Record(stream, *record->event);
    return nullptr;
  }
  if (const auto* wait = std::get_if<EventWaitOp>(&operation)) {
    if (ordered) order.WaitForEvent(stream, *wait->event);
    return nullptr;
  }
  auto origin = std::make_shared<WorkOrigin>();
  origin->stack = StackHere();
  if (!ordered) return origin;
  origin->place = order.Add(stream);
  if (MayWaitForOthers(operation)) order.WaitForValue(stream);
  if (const auto* free = std::get_if<FreeOp>(&operation)) {
    const exec::DeviceMemory& memory = stream.context().device().memory();
    if (const auto allocation = memory.Find(free->address)) {
      NoteFree(memory, free->address);
      order_.Freed(*origin->place, *allocation);
    }
  }
  return origin;
}

namespace {

/// Calls `visit` with each operation of the graph, and of those in it.
template <typename Visit>
void ForOperations(const GraphPlan& plan, const Visit& visit) {
  for (const GraphPlan::Node& node : plan.nodes) {
    if (node.enabled) visit(node.operation);
    if (node.child) ForOperations(*node.child, visit);
    for (const auto& body : node.bodies)
      if (body) ForOperations(*body, visit);
  }
}

/// A graph as a whole waits for the events that its nodes wait for, and for the launch before. One node of a graph is
/// not told from another.
StreamOrder::Place PlaceOfGraph(StreamOrder& order, const Stream& stream, const GraphPlan& plan,
                                const WorkOrigin* before) {
  if (before != nullptr && before->place) order.WaitForWork(stream, *before->place);
  ForOperations(plan, [&](const Operation& operation) {
    if (const auto* wait = std::get_if<EventWaitOp>(&operation)) order.WaitForEvent(stream, *wait->event);
    if (MayWaitForOthers(operation)) order.WaitForValue(stream);
  });
  StreamOrder::Place place = order.Add(stream);
  ForOperations(plan, [&](const Operation& operation) {
    if (const auto* record = std::get_if<EventRecordOp>(&operation)) order.Record(stream, *record->event);
  });
  return place;
}

}  // namespace

WorkOriginPtr MemcheckLog::Launched(const Stream& stream, const GraphPlan& plan, const WorkOrigin* before) {
  if (!on_) return nullptr;
  auto graph = std::make_shared<GraphMemoryOrder>(plan);
  const bool ordered = order_.active() || !graph->lifetimes().empty();
  if (!ordered && !host_stacks_) return nullptr;
  auto origin = std::make_shared<WorkOrigin>();
  origin->stack = StackHere();
  if (!ordered) return origin;
  origin->place = PlaceOfGraph(order_.streams(), stream, plan, before);
  for (const std::string& wrong : order_.Launched(*origin->place, *graph, stream.context().device().memory()))
    BadCall("cuGraphLaunch", wrong, origin->stack);
  if (!graph->lifetimes().empty()) origin->graph = std::move(graph);
  return origin;
}

void MemcheckLog::NoteStreamAllocation(const Stream& stream, const exec::DeviceMemory& memory, std::uint64_t address) {
  if (!on_) return;
  NoteAllocation(memory, address);
  if (const auto allocation = memory.Find(address)) order_.Allocated(stream, *allocation, memory);
}

void MemcheckLog::HostWaited(const Stream& stream) {
  if (order_.active()) order_.streams().HostSees(stream);
}
void MemcheckLog::HostWaited(const Event& event) {
  if (order_.active()) order_.streams().HostSees(event);
}
void MemcheckLog::TellsHost(const WorkOrigin& origin) {
  if (origin.place) order_.streams().HostSees(*origin.place);
}
void MemcheckLog::LooksAtHost(const WorkOrigin& origin) {
  if (origin.place) order_.streams().LooksAtHost(*origin.place);
}
void MemcheckLog::HostWaitedForAll(const Context& context) {
  if (order_.active()) order_.streams().HostSeesAll(context);
}

std::string MemcheckLog::KernelUses(const WorkOrigin& origin, const exec::Allocation& allocation,
                                    const std::string& kernel) {
  return order_.Use(origin, allocation, "kernel `" + exec::KernelName(kernel) + "`");
}

void MemcheckLog::CheckUse(Context& context, const WorkOrigin& origin, const void* place, bool write) {
  const auto address = reinterpret_cast<std::uint64_t>(place);
  const auto allocation = context.device().memory().Find(address);
  if (!allocation) return;
  const std::string wrong = order_.Use(origin, *allocation, "a copy or fill");
  if (wrong.empty()) return;
  BadCall(kCopyOrFill,
          std::string(write ? "write to " : "read from ") + exec::NameAllocation(*allocation) + ", " + wrong,
          origin.stack);
}

/// Frees in graphs are looked at when these are launched.
void MemcheckLog::CheckFree(Context& context, const WorkOrigin& origin, std::uint64_t address) {
  const auto allocation = context.device().memory().Find(address);
  if (!allocation || origin.graph) return;
  if (const std::string wrong = order_.CheckFree(*origin.place, *allocation); !wrong.empty())
    BadCall("cuMemFreeAsync", exec::NameAllocation(*allocation) + " is " + wrong, origin.stack);
}

void MemcheckLog::CheckUses(Context& context, const Operation& operation, const WorkOrigin& origin) {
  if (!origin.place) return;
  if (const auto* copy = std::get_if<CopyOp>(&operation)) {
    CheckUse(context, origin, copy->src, false);
    CheckUse(context, origin, copy->dst, true);
  } else if (const auto* fill = std::get_if<FillOp>(&operation)) {
    CheckUse(context, origin, reinterpret_cast<const void*>(fill->params.dst), true);
  } else if (std::holds_alternative<BatchOp>(operation)) {
    TellsHost(origin);  // values that it writes tell who reads them what they come after
  } else if (const auto* free = std::get_if<FreeOp>(&operation)) {
    CheckFree(context, origin, free->address);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// What nobody has written (initcheck)
// ---------------------------------------------------------------------------------------------------------------------

namespace {

std::uint64_t AddressOf(const std::byte* place) { return reinterpret_cast<std::uint64_t>(place); }

/// Calls `row` with where each row of a copy begins, its source first.
template <typename Row>
void ForRows(const CopyOp& copy, Row row) {
  for (std::size_t z = 0; z < copy.depth; ++z) {
    for (std::size_t y = 0; y < copy.height; ++y)
      row(AddressOf(copy.src) + z * copy.src_slice + y * copy.src_pitch,
          AddressOf(copy.dst) + z * copy.dst_slice + y * copy.dst_pitch);
  }
}

bool IsDeviceMemory(const exec::DeviceMemory& memory, std::uint64_t address) {
  const auto allocation = memory.Find(address);
  return allocation && allocation->kind != exec::MemoryKind::kPinned &&
         allocation->kind != exec::MemoryKind::kRegistered;
}

}  // namespace

void MemcheckLog::NoteCopied(const exec::DeviceMemory& memory, const CopyOp& copy, const WorkOrigin* origin) {
  if (copy.width == 0) return;
  const bool to_host = !copy.dst_array && !IsDeviceMemory(memory, AddressOf(copy.dst));
  std::optional<std::uint64_t> unwritten;
  ForRows(copy, [&](std::uint64_t from, std::uint64_t to) {
    if (!copy.dst_array) written_->Copy(memory, to, from, copy.width);
    if (to_host && !unwritten) unwritten = written_->FirstUnwritten(memory, from, copy.width);
  });
  if (!unwritten) return;
  BadCall(kCopyOrFill,
          "copy of " + exec::WithCommas(std::uint64_t{copy.width} * copy.height * copy.depth) +
              " bytes to the host, not all of which somebody has written: " + exec::HexAddress(*unwritten) + ", " +
              exec::DescribePlace(memory, *unwritten, 1),
          origin != nullptr ? origin->stack : nullptr);
}

void MemcheckLog::NoteWritten(Context& context, const Operation& operation, const WorkOrigin* origin) {
  const exec::DeviceMemory& memory = context.device().memory();
  if (const auto* copy = std::get_if<CopyOp>(&operation)) return NoteCopied(memory, *copy, origin);
  if (const auto* fill = std::get_if<FillOp>(&operation)) {
    const CUDA_MEMSET_NODE_PARAMS& p = fill->params;
    for (std::size_t y = 0; y < p.height; ++y) written_->Write(memory, p.dst + y * p.pitch, p.width * p.element_size);
  } else if (const auto* batch = std::get_if<BatchOp>(&operation)) {
    for (const CUstreamBatchMemOpParams& item : batch->items) {
      if (item.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) written_->Write(memory, item.value.address, 4);
      if (item.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) written_->Write(memory, item.value.address, 8);
    }
  }
}

}  // namespace gridloom::session
