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

std::string NameVariable(const GlobalInfo& variable) {
  return "variable `" + DemangledName(variable.name) + "` (" + Bytes(variable.bytes) + ")";
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

std::string GlobalPlace(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address, std::uint32_t bytes) {
  if (heap.Contains(address)) {
    const auto block = heap.FindBefore(address);
    if (!block) return "in the heap of malloc() in kernels, outside of all blocks";
    return DescribeMiss(address, bytes, block->base, block->bytes, NameBlock(*block)) + (block->freed ? ", which has been freed" : "");
  }
  const auto nearest = address < kPageBytes ? std::nullopt : memory.FindNearest(address);
  const bool variables = nearest && nearest->allocation.kind == MemoryKind::kModule;
  if (const auto* const program = variables ? nearest->allocation.OwnerAs<const ProgramImpl>() : nullptr) {
    const GlobalInfo* variable = VariableBefore(*program, address);
    if (!variable || variable->address < nearest->allocation.base) variable = VariableBefore(*program, nearest->allocation.base);
    if (variable && !memory.FindFreed(address))
      return DescribeMiss(address, bytes, variable->address, variable->bytes, NameVariable(*variable));
  }
  return DescribePlace(memory, address, bytes);
}

std::string SharedVariablePlace(const ptx::Module& module, const ptx::Function& kernel, std::uint64_t offset) {
  const SharedLayout layout = LayoutShared(module, kernel);
  const ptx::Variable* best = nullptr;
  std::uint32_t best_offset = 0;
  for (const auto& [variable, at] : layout.offsets) {
    if (at > offset || (best && at < best_offset)) continue;
    if (best && at == best_offset && variable->bytes() == 0) continue;
    best = variable;
    best_offset = at;
  }
  if (!best) return {};
  const std::string name = "shared variable `" + DemangledName(std::string(best->name)) + "`";
  return offset == best_offset ? "the first byte of " + name : Bytes(offset - best_offset) + " into " + name;
}

}  // namespace gridloom::exec
