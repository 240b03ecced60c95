#include "interpose/observe/work_memory.h"

#include <algorithm>
#include <cstring>

#include "interpose/objects/device.h"
#include "interpose/objects/graph_plan.h"
#include "sim/exec/program.h"

namespace gridloom::session {

using trace::HostAction;

namespace {

/// Pinned host memory lies in the range of device addresses, too.
bool IsHosts(exec::MemoryKind kind) {
  return kind == exec::MemoryKind::kPinned || kind == exec::MemoryKind::kRegistered;
}

bool OnDevice(const exec::DeviceMemory& memory, std::uint64_t address) {
  const auto allocation = memory.Find(address);
  return allocation && !IsHosts(allocation->kind);
}
bool OnDevice(const exec::DeviceMemory& memory, const std::byte* pointer, const std::shared_ptr<Array>& array) {
  return array != nullptr || OnDevice(memory, reinterpret_cast<std::uint64_t>(pointer));
}

/// Bytes from the first to the last one of rows.
std::uint64_t Span(std::uint64_t width, std::uint64_t height, std::uint64_t depth, std::uint64_t pitch,
                   std::uint64_t slice) {
  return (depth - 1) * slice + (height - 1) * pitch + width;
}

/// Whether a __constant__ variable lies there.
bool HasConstant(const exec::DeviceMemory& memory, std::uint64_t address, std::uint64_t span) {
  const auto allocation = memory.Find(address);
  if (!allocation) return false;
  return std::ranges::any_of(exec::VariablesIn(*allocation), [&](const exec::GlobalInfo& variable) {
    return variable.constant && variable.address < address + span && address < variable.address + variable.bytes;
  });
}

}  // namespace

void DescribeCopy(const exec::DeviceMemory& memory, const CopyOp& op, HostAction& action) {
  const bool from = OnDevice(memory, op.src, op.src_array), to = OnDevice(memory, op.dst, op.dst_array);
  action.bytes = std::uint64_t{op.width} * op.height * op.depth;
  if (action.bytes == 0 || (!from && !to)) return;  // takes the device no time
  action.kind = from && to ? HostAction::Kind::kCopyOnDevice
                : from     ? HostAction::Kind::kCopyToHost
                           : HostAction::Kind::kCopyToDevice;
  const auto source = reinterpret_cast<std::uint64_t>(op.src), target = reinterpret_cast<std::uint64_t>(op.dst);
  const std::uint64_t source_span = Span(op.width, op.height, op.depth, op.src_pitch, op.src_slice);
  const std::uint64_t target_span = Span(op.width, op.height, op.depth, op.dst_pitch, op.dst_slice);
  action.address = to ? target : source;
  action.span = to ? target_span : source_span;
  if (from && to) {
    action.source = source;
    action.source_span = source_span;
  }
  action.special = op.src_array != nullptr || op.dst_array != nullptr ||
                   (from && HasConstant(memory, source, source_span)) ||
                   (to && HasConstant(memory, target, target_span));
}

HostReuse::Memory HostMemoryOf(const exec::DeviceMemory& memory, const Operation& operation, const HostAction& action) {
  const auto* const copy = std::get_if<CopyOp>(&operation);
  if (copy == nullptr || !action.over_pcie()) return {};
  const bool in = action.kind == HostAction::Kind::kCopyToDevice;
  const auto place = reinterpret_cast<std::uint64_t>(in ? copy->src : copy->dst);
  const auto allocation = memory.Find(place);
  if (!allocation || !IsHosts(allocation->kind)) return {};
  const std::size_t pitch = in ? copy->src_pitch : copy->dst_pitch, slice = in ? copy->src_slice : copy->dst_slice;
  return {.begin = place, .bytes = Span(copy->width, copy->height, copy->depth, pitch, slice)};
}

void AddCopied(const exec::DeviceMemory& memory, const Operation& operation, CopiedBytes& copied) {
  const auto* const copy = std::get_if<CopyOp>(&operation);
  if (copy == nullptr) return;
  HostAction action;
  DescribeCopy(memory, *copy, action);
  if (action.kind == HostAction::Kind::kCopyToDevice) copied.to_device += action.bytes;
  if (action.kind == HostAction::Kind::kCopyToHost) copied.to_host += action.bytes;
}

void AddCopied(const exec::DeviceMemory& memory, const GraphPlan& plan, CopiedBytes& copied) {
  for (const GraphPlan::Node& node : plan.nodes) {
    if (node.child != nullptr) AddCopied(memory, *node.child, copied);
    if (node.enabled) AddCopied(memory, node.operation, copied);
  }
}

void DescribeFill(const exec::DeviceMemory& memory, const FillOp& op, HostAction& action) {
  const std::uint64_t row = std::uint64_t{op.params.width} * op.params.element_size;
  action.bytes = row * op.params.height;
  if (action.bytes == 0) return;
  action.kind = HostAction::Kind::kFill;
  action.address = op.params.dst;
  action.span = Span(row, op.params.height, 1, op.params.pitch, 0);
  action.special = HasConstant(memory, action.address, action.span);
}

bool WritesHostMemory(const exec::DeviceMemory& memory, const Operation& operation) {
  if (const auto* copy = std::get_if<CopyOp>(&operation))
    return copy->width != 0 && copy->height != 0 && copy->depth != 0 && !OnDevice(memory, copy->dst, copy->dst_array);
  if (const auto* fill = std::get_if<FillOp>(&operation)) return !OnDevice(memory, fill->params.dst);
  return false;
}

bool PointsInto(const exec::DeviceMemory& memory, const KernelOp& op, std::initializer_list<exec::MemoryKind> kinds) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= op.params.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, op.params.data() + at, sizeof word);
    const auto allocation = word != 0 ? memory.Find(word) : std::nullopt;
    if (allocation && std::ranges::find(kinds, allocation->kind) != kinds.end()) return true;
  }
  return false;
}

bool ReachesHostMemory(const exec::DeviceMemory& memory, const KernelOp& op) {
  using exec::MemoryKind;
  return std::ranges::any_of(op.bound.program->globals(), &exec::GlobalInfo::managed) ||
         PointsInto(memory, op, {MemoryKind::kManaged, MemoryKind::kPinned, MemoryKind::kRegistered});
}

}  // namespace gridloom::session
