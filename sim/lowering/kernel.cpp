#include "sim/lowering/kernel.h"

#include <algorithm>
#include <string_view>

namespace gridloom::lowering {
namespace {

using trace::OpClass;
using trace::Space;

/// Clocks tell the time of their own reading.
bool ReadsClock(const trace::Meanings& meanings, std::span<const Term> sources) {
  return std::ranges::any_of(sources, [&](const Term& term) {
    if (term.kind != Term::Kind::kName) return false;
    const std::string_view name = meanings.texts[term.value];
    return name.starts_with("%clock") || name.starts_with("%globaltimer") || name.starts_with("%pm");
  });
}

/// Special registers that are the same for all lanes of a warp.
bool IsOfWarp(std::string_view name) {
  constexpr std::string_view kOfWarp[] = {"%ctaid",  "%nctaid", "%ntid",  "%warpid",  "%nwarpid",
                                          "%gridid", "%smid",   "%nsmid", "%cluster", "%ncluster"};
  return std::ranges::any_of(kOfWarp, [&](std::string_view start) { return name.starts_with(start); });
}

bool StaysInOrder(const trace::Instruction& shape) {
  return shape.op == OpClass::kBranch || shape.op == OpClass::kControl;
}

Node NodeOf(const trace::KernelCode& code, std::span<const Operation> operations, std::uint32_t at) {
  Node node;
  node.shape = code.instructions[at];
  node.ptx = at;
  node.ordered = StaysInOrder(node.shape);
  if (code.meanings.empty()) {
    const auto first = code.operands.begin() + node.shape.operands;
    const auto last = first + node.shape.destinations + node.shape.sources;
    for (auto reg = first; reg != last; ++reg) {
      if (*reg == 0) continue;
      const bool result = reg - first < node.shape.destinations;
      (result ? node.results : node.sources).push_back({Term::Kind::kRegister, *reg});
    }
    node.flags = trace::Meaning::kPartial;  // nobody says that it is whole
    return node;
  }
  const trace::Meaning& meaning = code.meanings.of[at];
  const auto first = code.meanings.terms.begin() + meaning.terms;
  node.results.assign(first, first + meaning.results);
  node.sources.assign(first + meaning.results, first + meaning.results + meaning.sources);
  node.flags = meaning.flags;
  node.text = meaning.text;
  node.operation = operations[meaning.text];
  if (ReadsClock(code.meanings, node.sources)) {
    node.ordered = true;
    node.operation.pure = false;
  }
  return node;
}

}  // namespace

Kernel KernelOf(const trace::KernelCode& code) {
  Kernel kernel;
  kernel.has_meanings = !code.meanings.empty();
  kernel.registers = kernel.has_meanings ? code.meanings.registers : code.register_count;
  std::vector<Operation> operations;
  for (const std::string& text : code.meanings.texts) operations.push_back(ParseOperation(text));
  for (const std::string& text : code.meanings.texts) {
    kernel.is_special.push_back(text.starts_with('%') && !text.starts_with("%ntid") && !text.starts_with("%nctaid"));
    kernel.differs_by_lane.push_back(text.starts_with('%') && !IsOfWarp(text));
  }
  kernel.blocks.resize(code.blocks.size());
  for (std::size_t b = 0; b < code.blocks.size(); ++b) {
    Block& block = kernel.blocks[b];
    if (kernel.has_meanings) block.next = code.meanings.successors[b];
    block.nodes.reserve(code.blocks[b].count);
    for (std::uint32_t i = 0; i < code.blocks[b].count; ++i) {
      block.nodes.push_back(NodeOf(code, operations, code.blocks[b].first + i));
      if (block.nodes.back().shape.has_access()) block.nodes.back().access = block.accesses++;
    }
  }
  return kernel;
}

std::uint32_t Target::LatencyOf(const Node& node) const {
  const sim::TimingSpec& timing = device.timing;
  const trace::Instruction& instruction = node.shape;
  if (instruction.op != OpClass::kMemory) {
    const std::uint32_t latency = timing.of(instruction.op).latency;
    return node.guards ? std::max(latency, timing.sm.guard_latency) : latency;
  }
  switch (instruction.space) {
    case Space::kShared: return timing.shared.latency;
    case Space::kConstant:
    case Space::kParameter: return timing.constant.latency;
    case Space::kTexture: return std::max(timing.texture.latency, timing.l1.latency);
    default: return (instruction.flags & trace::kAtomic) != 0 ? timing.l2.latency : timing.l1.latency;
  }
}

}  // namespace gridloom::lowering
