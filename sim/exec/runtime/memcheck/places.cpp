#include "sim/exec/runtime/memcheck/places.h"

#include <algorithm>

#include "rewriter/support/demangle.h"
#include "sim/exec/memcheck.h"

namespace gridloom::exec {
namespace {

std::string Bytes(std::uint64_t count) { return WithCommas(count) + (count == 1 ? " byte" : " bytes"); }

std::string NameBlock(const DeviceHeap::Block& block) {
  return "the " + WithCommas(block.bytes) + "-byte block " + HexAddress(block.base) + " made by malloc() in a kernel";
}

}  // namespace

const GlobalInfo* VariableBefore(const ProgramImpl& program, std::uint64_t address) {
  const GlobalInfo* best = nullptr;
  for (const GlobalInfo& variable : program.globals()) {
    if (variable.address <= address && (!best || variable.address > best->address)) best = &variable;
  }
  return best;
}

bool WasFreed(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address) {
  if (memory.FindFreed(address)) return true;
  const auto block = heap.Contains(address) ? heap.FindBefore(address) : std::nullopt;
  return block && block->freed && address - block->base < std::max<std::uint64_t>(block->bytes, 1);
}

std::string GlobalPlace(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address,
                        std::uint32_t bytes) {
  if (heap.Contains(address)) {
    const auto block = heap.FindBefore(address);
    if (!block) return "in the heap of malloc() in kernels, outside of all blocks";
    return DescribeMiss(address, bytes, block->base, block->bytes, NameBlock(*block)) +
           (block->freed ? ", which has been freed" : "");
  }
  const auto nearest = address < kPageBytes ? std::nullopt : memory.FindNearest(address);
  const bool variables = nearest && nearest->allocation.kind == MemoryKind::kModule;
  if (const auto* const program = variables ? nearest->allocation.OwnerAs<const ProgramImpl>() : nullptr) {
    const GlobalInfo* variable = VariableBefore(*program, address);
    if (!variable || variable->address < nearest->allocation.base)
      variable = VariableBefore(*program, nearest->allocation.base);
    if (variable && !memory.FindFreed(address) && IsNear(address, variable->address, variable->bytes))
      return DescribeMiss(address, bytes, variable->address, variable->bytes,
                          NameVariable(variable->name, variable->bytes));
  }
  return DescribePlace(memory, address, bytes);
}

std::uint64_t NearestAllocation(const DeviceMemory& memory, std::uint64_t address) {
  if (address < kPageBytes) return 0;
  if (const auto freed = memory.FindFreed(address)) return freed->id;
  const auto nearest = memory.FindNearest(address);
  return nearest && IsNear(address, nearest->allocation.base, nearest->allocation.bytes) ? nearest->allocation.id : 0;
}

std::string GlobalNeighbour(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address) {
  if (address < kPageBytes) return "null";
  if (heap.Contains(address)) {
    const auto block = heap.FindBefore(address);
    return block ? HexAddress(block->base) : "heap";
  }
  if (const auto freed = memory.FindFreed(address)) return std::to_string(freed->id);
  const auto nearest = memory.FindNearest(address);
  if (!nearest) return {};
  const auto* const program =
      nearest->allocation.kind == MemoryKind::kModule ? nearest->allocation.OwnerAs<const ProgramImpl>() : nullptr;
  const GlobalInfo* const variable = program ? VariableBefore(*program, address) : nullptr;
  return variable ? variable->name : std::to_string(nearest->allocation.id);
}

SharedVariable SharedVariableAt(const ptx::Module& module, const ptx::Function& kernel, std::uint64_t offset) {
  const SharedLayout layout = LayoutShared(module, kernel);
  SharedVariable best;
  for (const auto& [variable, at] : layout.offsets) {
    if (at > offset || (best.variable && at < best.offset)) continue;
    if (best.variable && at == best.offset && variable->bytes() == 0) continue;
    best = {variable, at};
  }
  return best;
}

std::string SharedVariablePlace(const ptx::Module& module, const ptx::Function& kernel, std::uint64_t offset) {
  const SharedVariable best = SharedVariableAt(module, kernel, offset);
  if (!best.variable) return {};
  const std::string name = "shared variable `" + DemangledName(std::string(best.variable->name)) + "`";
  return offset == best.offset ? "the first byte of " + name : Bytes(offset - best.offset) + " into " + name;
}

}  // namespace gridloom::exec
