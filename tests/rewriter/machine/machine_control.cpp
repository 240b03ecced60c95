// What the control bits of cubins are like, alone or in programs and libraries: what the rules of
// rewriter/machine/control_rules.h and stalls.h come from.
//
//   machine_control [--arch N] [--every N] FILE…
//
// Prints what breaks a rule; the shortest way from each kind of instruction of fixed latency to a use of its result;
// how often each stall comes with each yield bit; what is kept in the operand cache. --every takes one cubin in N. Ends
// with 1 when a rule is broken.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>

#include "rewriter/machine/control_rules.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/stalls.h"
#include "tests/rewriter/machine/cubins_of.h"

using namespace gridloom;
using namespace gridloom::machine;

namespace {

struct Shortest {
  unsigned cycles = ~0U;
  std::size_t uses = 0;
  std::string example{};
};

std::string BaseOf(std::string_view name) { return std::string(name.substr(0, name.find('.'))); }

class Survey {
 public:
  void AddKernel(const std::string& file, const std::string& kernel, const FlowGraph& flow, unsigned sm) {
    ++kernels_;
    for (const Status& status : {CheckControl(flow), CheckStalls(flow, sm), CheckHints(flow)}) {
      if (status.ok()) continue;
      ++broken_;
      std::printf("broken\tsm_%u\t%s\t%s\t%s\n", sm, file.c_str(), kernel.c_str(), status.error().message.c_str());
    }
    VisitFixedUses(flow, 24, [&](const FixedUse& use) { AddUse(file + " " + kernel, flow, sm, use); });
    const auto all = flow.instructions();
    for (std::uint32_t at = 0; at < all.size(); ++at) {
      const Control& control = all[at].control;
      ++yields_[{sm, control.stall, control.yield}];
      AddKept(flow, sm, at);
    }
  }
  std::size_t broken() const { return broken_; }
  void Print() const {
    for (const auto& [key, found] : shortest_) {
      const auto& [sm, file, name, by] = key;
      std::printf("use\tsm_%u\t%s\t%s\t%s\t%u\t%zu\t%s\n", sm, file.c_str(), name.c_str(), by.c_str(), found.cycles,
                  found.uses, found.example.c_str());
    }
    for (const auto& [key, count] : yields_)
      std::printf("stall\tsm_%u\t%u\tbit %d\t%zu\n", std::get<0>(key), std::get<1>(key), std::get<2>(key), count);
    for (const auto& [key, count] : kept_) std::printf("kept\tsm_%u\t%s\t%zu\n", key.first, key.second.c_str(), count);
    std::fprintf(stderr, "%zu kernels, %zu rules broken\n", kernels_, broken_);
  }

 private:
  void AddUse(const std::string& where, const FlowGraph& flow, unsigned sm, const FixedUse& use) {
    const Instruction& from = flow.instructions()[use.from];
    const Instruction& to = flow.instructions()[use.to];
    const char* const file = use.registers.general.any()      ? "R"
                             : use.registers.predicates.any() ? "P"
                             : use.registers.uniform.any()    ? "UR"
                                                              : "UP";
    const bool guard = to.guard != kTrue && (to.format->uniform_guard ? use.registers.uniform_predicates[to.guard]
                                                                      : use.registers.predicates[to.guard]);
    const std::string by =
        guard ? (to.format->flow != Flow::kNext ? "guard of a branch" : "guard") : BaseOf(to.format->name);
    Shortest& found = shortest_[{sm, file, BaseOf(from.format->name), by}];
    ++found.uses;
    if (use.cycles >= found.cycles) return;
    found.cycles = use.cycles;
    char at[64];
    std::snprintf(at, sizeof at, " 0x%zx 0x%zx%s", use.from * kWordBytes, use.to * kWordBytes,
                  use.jumped ? " jumped" : "");
    found.example = where + at;
  }

  static void Find(const Instruction& instruction, const Operand& operand, std::map<unsigned, unsigned>& slots) {
    for (const Operand& part : operand.parts) Find(instruction, part, slots);
    if (operand.reuse != kNoField && operand.kind == OperandKind::kRegister)
      slots[operand.reuse] = static_cast<unsigned>(instruction.Value(operand.value));
  }
  void AddKept(const FlowGraph& flow, unsigned sm, std::uint32_t at) {
    const auto all = flow.instructions();
    if (all[at].control.reuse == 0) return;
    std::map<unsigned, unsigned> slots;
    for (const Operand& operand : all[at].format->operands) Find(all[at], operand, slots);
    for (unsigned slot = 0; slot < 4; ++slot) {
      if ((all[at].control.reuse >> slot & 1) == 0) continue;
      const auto own = slots.find(slot);
      std::string kind;
      if (own == slots.end())
        kind = "no register in slot " + std::to_string(slot) + " of " + BaseOf(all[at].format->name);
      else if (own->second == kZeroRegister) kind = "RZ";
      else if (flow.UseAt(at).written.general[own->second]) kind = "written by the same";
      else kind = NextOf(flow, at, slot, own->second);
      ++kept_[{sm, kind}];
    }
  }
  static std::string NextOf(const FlowGraph& flow, std::uint32_t at, unsigned slot, unsigned number) {
    for (std::uint32_t next = at + 1, steps = 1; next < flow.instructions().size(); ++next, ++steps) {
      const Instruction& one = flow.instructions()[next];
      std::map<unsigned, unsigned> slots;
      for (const Operand& operand : one.format->operands) Find(one, operand, slots);
      const auto same = slots.find(slot);
      if (same != slots.end() && same->second == number)
        return "read from the same slot after " + std::string(steps < 5 ? std::to_string(steps) : "more");
      if (same != slots.end()) return "another register in the slot";
      if (flow.UseAt(next).written.general[number]) return "written before it is read";
      if (one.format->flow != Flow::kNext) return "a branch before it is read";
    }
    return "nothing behind it";
  }

  std::size_t kernels_ = 0, broken_ = 0;
  std::map<std::tuple<unsigned, std::string, std::string, std::string>, Shortest> shortest_{};
  std::map<std::tuple<unsigned, unsigned, bool>, std::size_t> yields_{};
  std::map<std::pair<unsigned, std::string>, std::size_t> kept_{};
};

}  // namespace

void AddCubin(Survey& survey, const std::string& file, const std::string& bytes) {
  const auto cubin = CubinFile::Read(image::AsBytes(bytes));
  if (!cubin.ok()) return;
  for (const std::string& name : KernelNames(*cubin)) {
    const auto parts = ReadKernelParts(*cubin, name);
    if (!parts.ok()) continue;
    const auto flow = FlowGraph::Build(cubin->sections()[parts->text].data, cubin->sm(), parts->targets);
    if (flow.ok()) survey.AddKernel(file, name, *flow, cubin->sm());
  }
}

int main(int argc, char** argv) {
  Survey survey;
  unsigned sm = 0;
  std::size_t every = 1, seen = 0;
  for (int number = 1; number < argc; ++number) {
    const std::string word = argv[number];
    if (word == "--arch" && number + 1 < argc) sm = static_cast<unsigned>(std::strtoul(argv[++number], nullptr, 10));
    else if (word == "--every" && number + 1 < argc) every = std::strtoul(argv[++number], nullptr, 10);
    else
      VisitCubins(word, sm, [&](const std::string& cubin) {
        if (seen++ % every == 0) AddCubin(survey, word, cubin);
      });
  }
  survey.Print();
  return survey.broken() == 0 ? 0 : 1;
}
