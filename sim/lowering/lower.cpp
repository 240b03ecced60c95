#include "sim/lowering/lower.h"

#include <algorithm>
#include <utility>

#include "sim/lowering/free_nodes.h"

namespace gridloom::lowering {
namespace {

constexpr Pass kPasses[] = {
#define LOWERING_PASS(name, function, needs, meaning) {#name, meaning, function, needs},
#include "sim/lowering/passes.def"
#undef LOWERING_PASS
};

/// Sets of registers by block are larger in no kernel of a program: what a trace makes up stays as it is.
constexpr std::uint64_t kMostSetWords = std::uint64_t{1} << 22;

bool IsInBounds(const trace::KernelCode& code) {
  const std::uint64_t words = code.meanings.registers / 64 + 1;
  return words * code.blocks.size() <= kMostSetWords;
}

/// A block of which nothing is left takes an issue slot: events and turns of loops need an instruction to be at.
Node Nothing() {
  Node node;
  node.ptx = Lowered::kAdded;
  return node;
}

bool IsFloatAtomic(const trace::Instruction& shape, const Operation& operation) {
  return shape.op == trace::OpClass::kMemory && (shape.flags & trace::kAtomic) != 0 && operation.is_float;
}

/// Where events of a block's instructions happen: at the instruction itself, or at the last one before it that is left,
/// but not before that of an earlier instruction.
void PlaceEvents(const trace::BasicBlock& from, const trace::BasicBlock& to, Lowered& lowered) {
  std::vector<std::uint32_t> own(from.count, to.first);
  for (std::uint32_t i = to.first; i < to.first + to.count; ++i) {
    if (lowered.ptx[i] != Lowered::kAdded) own[lowered.ptx[i] - from.first] = i;
  }
  std::uint32_t last = to.first;
  for (std::uint32_t i = 0; i < from.count; ++i) lowered.place[from.first + i] = last = std::max(last, own[i]);
}

Lowered Write(Kernel kernel, const trace::KernelCode& code) {
  Lowered lowered;
  lowered.code.name = code.name;
  RemoveFree(kernel);
  lowered.place.resize(code.instructions.size());
  for (std::size_t b = 0; b < kernel.blocks.size(); ++b) {
    Block& block = kernel.blocks[b];
    const bool of_trace = b < code.blocks.size();
    if (block.nodes.empty() && (!of_trace || code.blocks[b].count != 0)) block.nodes.push_back(Nothing());
    lowered.code.blocks.push_back(
        {static_cast<std::uint32_t>(lowered.code.instructions.size()), static_cast<std::uint32_t>(block.nodes.size())});
    for (const Node& node : block.nodes) {
      lowered.code.instructions.push_back(node.shape);
      lowered.access.push_back(node.access);
      lowered.part.push_back(node.part);
      lowered.traits.push_back({.one_lane = node.one_lane,
                                .whole_warp = node.whole_warp,
                                .guards = node.guards,
                                .float_atomic = IsFloatAtomic(node.shape, node.operation),
                                .reads_operands = node.reads_operands});
      lowered.ptx.push_back(node.ptx);
    }
    if (of_trace) PlaceEvents(code.blocks[b], lowered.code.blocks.back(), lowered);
  }
  for (const Region& region : kernel.regions) {
    if (region.code == 0) continue;
    Lowered::Region& written = lowered.regions.emplace_back();
    for (const Region::Part& part : region.parts) written.parts.push_back({part.block, part.optional});
    written.next = region.next;
    written.code = region.code;
  }
  AssignRegisters(kernel, lowered.code);
  return lowered;
}

}  // namespace

std::span<const Pass> Passes() { return kPasses; }

Lowered Unchanged(const trace::KernelCode& code) {
  Lowered lowered;
  lowered.code = {.name = code.name,
                  .instructions = code.instructions,
                  .operands = code.operands,
                  .blocks = code.blocks,
                  .register_count = code.register_count};
  lowered.access.resize(code.instructions.size());
  lowered.part.resize(code.instructions.size());
  lowered.traits.resize(code.instructions.size());
  for (std::size_t i = 0; i < code.meanings.of.size(); ++i) {
    if ((code.instructions[i].flags & trace::kAtomic) == 0) continue;
    const Operation operation = ParseOperation(code.meanings.texts[code.meanings.of[i].text]);
    lowered.traits[i].float_atomic = IsFloatAtomic(code.instructions[i], operation);
  }
  for (const trace::BasicBlock& block : code.blocks) {
    std::uint32_t access = 0;
    for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
      lowered.access[i] = access;
      access += code.instructions[i].has_access() ? 1 : 0;
    }
  }
  for (std::uint32_t i = 0; i < code.instructions.size(); ++i) lowered.ptx.push_back(i);
  lowered.place = lowered.ptx;
  return lowered;
}

Lowered Lower(const trace::KernelCode& code, const sim::DeviceSpec& device, std::span<const Pass> passes) {
  const std::uint32_t full = device.sm.registers / std::max(device.sm.max_threads, 1u);
  const Target target{.device = device, .budget = std::max(full, code.register_count)};
  Kernel kernel = KernelOf(code);
  for (const Pass& pass : passes) {
    if (kernel.has_meanings || !pass.needs_meanings) pass.run(kernel, target);
  }
  return Write(std::move(kernel), code);
}

Result<Lowered> Lower(const trace::KernelCode& code, const sim::DeviceSpec& device) {
  GL_TRY_STATUS(trace::ValidateCode(code));
  if (device.timing.lowering == sim::Lowering::kNone || !IsInBounds(code)) return Unchanged(code);
  return Lower(code, device, Passes());
}

}  // namespace gridloom::lowering
