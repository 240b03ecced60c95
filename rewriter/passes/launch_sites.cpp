#include "rewriter/passes/launch_sites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "rewriter/passes/aggregate_functions.h"
#include "rewriter/passes/stream_handles.h"
#include "rewriter/passes/thread_memory.h"
#include "rewriter/ptx/defuse.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::Cfg;
using ptx::Function;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;

std::optional<std::uint32_t> WritesNothing(const Function&, std::size_t) { return std::nullopt; }

bool IsBufferCall(const Function& function) {
  return RuntimeCallOf(function.name) == RuntimeCall::kGetBuffer && function.returns.size() == 1 &&
         function.returns[0].bytes() == 8 &&
         std::ranges::equal(function.params, std::initializer_list<std::uint64_t>{8, 12, 12, 4}, {},
                            &ptx::Variable::bytes);
}

std::optional<LaunchKind> KindOf(const Function& function) {
  if (function.name == "cudaLaunchAggGroupV2" && TakesBytes(function, {8})) return LaunchKind::kGroup;
  if (!TakesBytes(function, {8, 8})) return std::nullopt;
  if (function.name.starts_with(kEither)) return LaunchKind::kEither;
  return RuntimeCallOf(function.name) == RuntimeCall::kLaunchBuffer ? std::optional(LaunchKind::kStream) : std::nullopt;
}

bool IsWhole(const Operand& operand) {
  return operand.kind == OperandKind::kRegister && operand.variable != nullptr && operand.element == 0 &&
         operand.variable->vector == 1;
}

bool Mentions(const Operand& operand, const Operand& reg) {
  bool found = false;
  ptx::VisitOperand(operand, [&](const Operand& one) {
    found = found || (one.kind == OperandKind::kRegister && one.variable == reg.variable && one.index == reg.index);
  });
  return found;
}

/// Follows the buffers of one function.
class SiteFinder {
 public:
  explicit SiteFinder(const Cfg& cfg) : cfg_(cfg), memory_(cfg, WritesNothing) {}

  std::vector<LaunchSite> Run() {
    std::vector<LaunchSite> sites;
    for (std::uint32_t at = 0; at < cfg_.instructions().size(); ++at) {
      const Function* const callee = analysis::CalleeOf(At(at));
      const auto kind = callee == nullptr ? std::nullopt : KindOf(*callee);
      if (!kind) continue;
      sites.push_back({.kind = *kind, .launch = &At(at)});
      Follow(at, sites.back());
    }
    return sites;
  }

 private:
  const Instruction& At(std::uint32_t at) const { return *cfg_.instructions()[at].instruction; }

  void Follow(std::uint32_t at, LaunchSite& site) {
    if (cfg_.unresolved_branch() != nullptr) {
      site.why_not = "a branch of the function leads nobody knows where";
      return;
    }
    const Operand* const reg = ArgumentRegister(at, 0);
    const auto call = reg == nullptr ? std::nullopt : ResultOf(*reg);
    if (!call) {
      site.why_not = "its parameter buffer is not simply the one that a call has made";
      return;
    }
    const Buffer& buffer = BufferOf(*call, *reg);
    site.buffer = &At(*call);
    site.child = buffer.child;
    site.why_not = buffer.why_not;
  }

  /// The register whose value is the n-th argument of a call, in any case.
  const Operand* ArgumentRegister(std::uint32_t call, std::size_t number) const {
    const Operand* const argument = ArgumentOf(At(call), number);
    if (argument == nullptr || IsWhole(*argument)) return argument;
    if (argument->kind != OperandKind::kSymbol || argument->variable == nullptr ||
        memory_.CallsWith(*argument->variable).size() != 1)
      return nullptr;
    const Operand* found = nullptr;
    for (const analysis::CfgInstruction& one : cfg_.instructions()) {
      const Instruction& store = *one.instruction;
      if (store.opcode != Opcode::kSt || store.operands.size() < 2) continue;
      const auto place = memory_.Named(store);
      if (!place || place->variable != argument->variable) continue;
      if (found != nullptr || store.guard || place->offset != 0 || ptx::BytesOf(store.type()) != 8 ||
          !IsWhole(store.operands[1]))
        return nullptr;
      found = &store.operands[1];
    }
    return found;
  }

  /// The call whose result the register has in any case: of the last time that it was made.
  std::optional<std::uint32_t> ResultOf(const Operand& reg) const {
    const auto& writers = memory_.Writers(reg);
    if (writers.size() != 1 || At(writers[0]).guard) return std::nullopt;
    std::uint32_t call = writers[0];
    if (At(call).opcode == Opcode::kLd) {
      const auto place = memory_.Named(At(call));
      if (!place || place->offset != 0 || ptx::BytesOf(At(call).type()) != 8) return std::nullopt;
      const auto& calls = memory_.CallsWith(*place->variable);
      if (calls.size() != 1 || !calls[0].result || calls[0].call > call) return std::nullopt;
      if (cfg_.instructions()[calls[0].call].block != cfg_.instructions()[call].block) return std::nullopt;
      call = calls[0].call;
    }
    const Function* const callee = analysis::CalleeOf(At(call));
    return callee != nullptr && IsBufferCall(*callee) && !At(call).guard ? std::optional(call) : std::nullopt;
  }

  struct Buffer {
    const Function* child = nullptr;
    std::string why_not{};
  };

  const Buffer& BufferOf(std::uint32_t call, const Operand& reg) {
    const auto [it, is_new] = buffers_.try_emplace(call);
    Buffer& buffer = it->second;
    if (!is_new) return buffer;
    const Operand* kernel = ArgumentRegister(call, 0);
    for (unsigned depth = 0; kernel != nullptr && kernel->kind == OperandKind::kRegister && depth < 8; ++depth)
      kernel = CopiedFrom(*kernel);
    if (kernel != nullptr && kernel->kind == OperandKind::kSymbol && kernel->function != nullptr &&
        kernel->function->is_entry)
      buffer.child = kernel->function;
    else buffer.why_not = "it is known only when the code runs which kernel is launched";
    if (buffer.why_not.empty()) buffer.why_not = CheckUses(reg);
    return buffer;
  }

  const Operand* CopiedFrom(const Operand& reg) const {
    const auto& writers = memory_.Writers(reg);
    if (writers.size() != 1 || At(writers[0]).opcode != Opcode::kMov || At(writers[0]).guard) return nullptr;
    return &At(writers[0]).operands[1];
  }

  /// Why a buffer may not be other memory: what is done with its address besides stores of parameters and launches.
  std::string CheckUses(const Operand& reg) const {
    std::vector<const Operand*> pointers = {&reg};
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      for (std::uint32_t at = 0; at < cfg_.instructions().size(); ++at) {
        if (std::string why = CheckReader(at, *pointers[i], i == 0, pointers); !why.empty()) return why;
      }
    }
    return "";
  }

  /// `whole`: the register has the buffer's own address, not one that was computed from it.
  std::string CheckReader(std::uint32_t at, const Operand& reg, bool whole,
                          std::vector<const Operand*>& pointers) const {
    const Instruction& instruction = At(at);
    const std::string in_other_ways =
        "its parameter buffer is used in other ways, too (" + instruction.FullName() + ")";
    const ptx::Form* const form = ptx::FormOf(instruction);
    for (std::size_t n = 0; n < instruction.operands.size(); ++n) {
      const Operand& operand = instruction.operands[n];
      const bool reads = ptx::detail::UseOf(instruction, form, n).reads || operand.kind == OperandKind::kAddress;
      if (!reads || !Mentions(operand, reg)) continue;
      switch (instruction.opcode) {
        case Opcode::kLd:
          if (instruction.space() != ptx::StateSpace::kNone) return in_other_ways;
          break;
        case Opcode::kSt:
          if (operand.kind == OperandKind::kAddress ? instruction.space() != ptx::StateSpace::kNone
                                                    : !whole || !Launches(instruction))
            return in_other_ways;
          break;
        case Opcode::kSetp: break;
        case Opcode::kAdd:
        case Opcode::kSub:
        case Opcode::kMov: {
          if (!IsWhole(instruction.operands[0]) || instruction.operands[0].variable->bytes() != 8) return in_other_ways;
          const auto same = [&](const Operand* one) { return Mentions(*one, instruction.operands[0]); };
          if (std::ranges::none_of(pointers, same)) pointers.push_back(&instruction.operands[0]);
          break;
        }
        case Opcode::kCall:
          if (!whole || ArgumentOf(instruction, 0) == nullptr || !IsLaunch(instruction)) return in_other_ways;
          break;
        default: return in_other_ways;
      }
    }
    return "";
  }

  static bool IsLaunch(const Instruction& call) {
    const Function* const callee = analysis::CalleeOf(call);
    return callee != nullptr && KindOf(*callee).has_value();
  }

  /// Whether a store passes the buffer to a launch.
  bool Launches(const Instruction& store) const {
    const auto place = memory_.Named(store);
    if (!place || place->offset != 0 || place->variable->space != ptx::StateSpace::kParam) return false;
    const auto& calls = memory_.CallsWith(*place->variable);
    return calls.size() == 1 && !calls[0].result && calls[0].number == 0 && IsLaunch(At(calls[0].call));
  }

  const Cfg& cfg_;
  const ThreadMemory memory_;
  std::map<std::uint32_t, Buffer> buffers_;  ///< by the call that makes it
};

}  // namespace

bool HasLaunchSites(const Function& function) {
  bool found = false;
  if (function.body == nullptr) return false;
  ptx::VisitStatements(*function.body, [&](const ptx::Statement& statement) {
    const auto* const instruction = std::get_if<Instruction>(&statement);
    const Function* const callee = instruction == nullptr || found ? nullptr : analysis::CalleeOf(*instruction);
    found = found || (callee != nullptr && KindOf(*callee).has_value());
  });
  return found;
}

std::vector<LaunchSite> LaunchSitesOf(const Cfg& cfg) { return SiteFinder(cfg).Run(); }

}  // namespace gridloom::passes
