#include "interpose/launcher/inspect/lowered.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "sim/lowering/lower.h"
#include "sim/trace/code_table.h"

namespace gridloom::launcher {
namespace {

constexpr const char* kClassNames[] = {
#define TRACE_OP_CLASS(enumerator, name, meaning) #name,
#include "sim/trace/op_classes.def"
#undef TRACE_OP_CLASS
};

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

/// One warp, alone, an instruction a cycle in the order of the block: when the last result is there.
class WarpClock {
 public:
  WarpClock(const lowering::Lowered& lowered, const sim::DeviceSpec& device)
      : lowered_(lowered), target_{.device = device}, ready_(lowered.code.register_count + 1) {}

  std::uint64_t CyclesOf(const trace::BasicBlock& block) {
    std::ranges::fill(ready_, 0);
    std::uint64_t now = 0, end = 0;
    for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
      lowering::Node node;
      node.shape = lowered_.code.instructions[i];
      node.guards = lowered_.traits[i].guards;
      const trace::Instruction& instruction = node.shape;
      const auto first = lowered_.code.operands.begin() + instruction.operands;
      const auto sources = first + instruction.destinations, last = sources + instruction.sources;
      for (auto reg = first; reg != last; ++reg) now = std::max(now, ready_[*reg]);
      const std::uint64_t done = now + target_.LatencyOf(node);
      for (auto reg = first; reg != sources; ++reg) ready_[*reg] = done;
      end = std::max(end, instruction.destinations != 0 ? done : now + 1);
      ++now;
    }
    return end;
  }

 private:
  const lowering::Lowered& lowered_;
  const lowering::Target target_;
  std::vector<std::uint64_t> ready_;  // by register
};

std::string InstructionText(const trace::KernelCode& code, const trace::Instruction& instruction) {
  std::string text = kClassNames[static_cast<std::size_t>(instruction.op)];
  for (int i = 0; i < instruction.destinations + instruction.sources; ++i) {
    text += i == 0 && instruction.destinations != 0 ? " " : i == instruction.destinations ? " <- " : " ";
    text += "r" + std::to_string(code.operands[instruction.operands + static_cast<std::uint32_t>(i)]);
  }
  return text;
}

/// The instructions of a block, with the lines of PTX that they stand for.
std::string BlockText(const trace::KernelCode& code, const lowering::Lowered& lowered, const trace::BasicBlock& block,
                      const std::vector<std::string_view>& lines) {
  std::string text;
  for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
    const std::uint32_t ptx = lowered.ptx[i];
    const std::uint32_t line = ptx == lowering::Lowered::kAdded ? 0 : code.instructions[ptx].line;
    std::string executed = InstructionText(lowered.code, lowered.code.instructions[i]);
    constexpr std::size_t kColumn = 36;
    executed.resize(std::max(executed.size() + 1, kColumn), ' ');
    text += "    " + executed;
    if (line != 0 && line <= lines.size()) text += std::to_string(line) + ": " + std::string(lines[line - 1]);
    text += '\n';
  }
  return text;
}

std::string KernelText(const trace::KernelCode& code, const lowering::Lowered& lowered,
                       const std::vector<std::string_view>& lines, const sim::DeviceSpec& device) {
  std::string text;
  const lowering::Lowered unchanged = lowering::Unchanged(code);
  WarpClock before(unchanged, device), after(lowered, device);
  for (std::size_t b = 0; b < code.blocks.size(); ++b) {
    const trace::BasicBlock &from = code.blocks[b], &to = lowered.code.blocks[b];
    text += "  block " + std::to_string(b) + ": " + std::to_string(from.count) + " of PTX, " +
            std::to_string(before.CyclesOf(from)) + " cycles; " + std::to_string(to.count) + " executed, " +
            std::to_string(after.CyclesOf(to)) + " cycles\n";
    text += BlockText(code, lowered, to, lines);
  }
  for (const lowering::Lowered::Region& region : lowered.regions) {
    const trace::BasicBlock& to = lowered.code.blocks[region.code];
    text += "  as one, blocks";
    for (const auto& part : region.parts)
      text += part.optional ? " [" + std::to_string(part.block) + "]" : " " + std::to_string(part.block);
    text += ": " + std::to_string(to.count) + " executed, " + std::to_string(after.CyclesOf(to)) + " cycles\n" +
            BlockText(code, lowered, to, lines);
  }
  return text;
}

}  // namespace

std::string LoweredText(const InspectReport& report, const InspectView& view, const sim::DeviceSpec& device) {
  sim::DeviceSpec lowering_device = device;
  lowering_device.timing.lowering = sim::Lowering::kFull;
  std::string text;
  for (const ContainerReport& container : report.containers) {
    if (container.module == nullptr) continue;
    const std::vector<std::string_view> lines = LinesOf(container.ptx);
    for (const KernelReport& kernel : container.kernels) {
      const ptx::Function* const function = container.module->FindFunction(kernel.name);
      if (function == nullptr || !function->body || !Wanted(view, kernel.name, kernel.demangled)) continue;
      const trace::KernelCode code = trace::BuildCodeTable(*container.module, *function).code;
      const auto lowered = lowering::Lower(code, lowering_device);
      text += kernel.demangled + " on " + device.id + "\n";
      text += lowered.ok() ? KernelText(code, *lowered, lines, device) : "  " + lowered.error().message + "\n";
    }
  }
  return text;
}

}  // namespace gridloom::launcher
