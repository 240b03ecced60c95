#include "rewriter/passes/task_code.h"

#include <algorithm>
#include <cstddef>

#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/uniformity.h"
#include "rewriter/passes/edit.h"
#include "rewriter/ptx/special.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes::task {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::ScalarType;
using ptx::Special;
using ptx::Statement;
using ptx::StateSpace;

namespace {

bool IsBarrier(const Instruction& instruction) {
  if (instruction.opcode != Opcode::kBar && instruction.opcode != Opcode::kBarrier) return false;
  return std::ranges::none_of(instruction.modifiers,
                              [](const ptx::Modifier& one) { return one.text == "warp" || one.text == "cluster"; });
}

bool IsClusterBarrier(const Instruction& instruction) {
  return instruction.opcode == Opcode::kBarrier &&
         std::ranges::any_of(instruction.modifiers, [](const ptx::Modifier& one) { return one.text == "cluster"; });
}

/// Lanes of the warp do it together.
bool ExchangesLanes(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kShfl:
    case Opcode::kVote:
    case Opcode::kMatch:
    case Opcode::kRedux: return true;
    default: return false;
  }
}

/// Where a barrier's number stands: behind the predicate's or counter's destination of bar.red.
std::size_t NumberAt(const Instruction& barrier) {
  const bool reduces =
      std::ranges::any_of(barrier.modifiers, [](const ptx::Modifier& one) { return one.text == "red"; });
  return reduces ? 1 : 0;
}

bool Is(const Instruction& instruction, std::string_view modifier) {
  return std::ranges::any_of(instruction.modifiers, [&](const ptx::Modifier& one) { return one.text == modifier; });
}

std::optional<std::string> WhyNotBarrier(const Instruction& barrier) {
  const std::size_t at = NumberAt(barrier);
  if (Is(barrier, "arrive")) return "a part of its threads waits for another (" + barrier.FullName() + ")";
  if (at >= barrier.operands.size()) return "its barrier has no number";
  const Operand& number = barrier.operands[at];
  if (number.kind != OperandKind::kInt) return "the number of its barrier is computed (" + barrier.FullName() + ")";
  if (number.int_literal.value != 0)
    return "it waits at barrier " + std::to_string(number.int_literal.value) + ", not at barrier 0 alone";
  const std::size_t left = barrier.operands.size() - at - 1;
  if (left > (Is(barrier, "red") ? 1u : 0u))
    return "a part of its threads waits for each other (" + barrier.FullName() + " with a count)";
  return std::nullopt;
}

std::optional<std::string> WhyNotSpecial(std::string_view text) {
  const auto ref = ptx::SpecialFromText(text);
  if (!ref) return std::nullopt;
  switch (ref->special) {
    case Special::kGridid:
    case Special::kClusterid:
    case Special::kNclusterid:
    case Special::kClusterCtaid:
    case Special::kClusterNctaid:
    case Special::kClusterCtarank:
    case Special::kClusterNctarank:
    case Special::kIsExplicitCluster:
    case Special::kWarpid:
    case Special::kNwarpid:
    case Special::kTotalSmemSize:
    case Special::kAggrSmemSize:
    case Special::kReservedSmemOffset:
    case Special::kReservedSmemOffsetBegin:
    case Special::kReservedSmemOffsetCap:
    case Special::kReservedSmemOffsetEnd: return "it asks for its real place (" + std::string(text) + ")";
    case Special::kEnvreg:
      if (ref->index == 1 || ref->index == 2) return "it synchronises the whole grid (" + std::string(text) + ")";
      return std::nullopt;
    case Special::kTid:
    case Special::kNtid:
    case Special::kCtaid:
    case Special::kNctaid:
      if (ref->component == 0) return "it reads a whole vector (" + std::string(text) + ")";
      return std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<std::string> WhyNotTask(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kUnknown: return "instruction " + instruction.FullName() + " is not known";
    case Opcode::kGriddepcontrol: return "the end of the grid controls the start of another (griddepcontrol)";
    case Opcode::kClusterlaunchcontrol: return "it cancels CTAs of its grid (clusterlaunchcontrol)";
    default: break;
  }
  if (IsClusterBarrier(instruction)) return "it waits for its cluster (" + instruction.FullName() + ")";
  if (instruction.info().cls == ptx::OpClass::kBarrier && !IsBarrier(instruction) && !Is(instruction, "warp")) {
    return "it uses " + instruction.FullName();
  }
  if (instruction.Has(ptx::Trait::kWarpGroup)) return "its warps work in groups (" + instruction.FullName() + ")";
  if (IsBarrier(instruction)) return WhyNotBarrier(instruction);
  std::optional<std::string> reason;
  for (const Operand& operand : instruction.operands) {
    ptx::VisitOperand(operand, [&](const Operand& one) {
      if (!reason && one.kind == OperandKind::kSpecial) reason = WhyNotSpecial(one.text);
    });
  }
  return reason;
}

/// Each is copied and edited with all names of the module at hand.
constexpr std::size_t kMostFunctions = 200;

/// One run over what a kernel may execute.
class Examination {
 public:
  Examination(const analysis::CallGraph& calls, const ptx::Function& kernel) : calls_(calls), kernel_(kernel) {}

  Finding Run() {
    for (const std::string_view directive : {"reqnctapercluster", "explicitcluster"}) {
      if (kernel_.FindDirective(directive) != nullptr)
        return Refuse("it is launched in clusters (." + std::string(directive) + ")", kernel_.loc);
    }
    if (calls_.IsAddressTaken(calls_.NodeOf(kernel_))) return Refuse("device code launches it", kernel_.loc);
    const std::vector<analysis::NodeId> reachable = calls_.Reachable(calls_.NodeOf(kernel_));
    if (reachable.size() > kMostFunctions)
      return Refuse("it calls more than " + std::to_string(kMostFunctions) + " functions", kernel_.loc);
    for (const analysis::NodeId node : reachable) {
      const ptx::Function& function = calls_.function(node);
      for (const analysis::CallSite& call : calls_.calls(node)) {
        if (call.indirect) return Refuse("it calls through a pointer", call.instruction->loc);
        if (call.unknown_target)
          return Refuse("it calls a function that the module does not have", call.instruction->loc);
      }
      if (function.body == nullptr) {
        if (function.name.starts_with("cuda") || function.name.starts_with("__cudaCDP"))
          return Refuse("it launches grids or orders their work (" + std::string(function.name) + ")", kernel_.loc);
        continue;
      }
      if (!ExamineFunction(function)) return Finding{.refusal = refusal_, .needs = {}};
    }
    if (barriers_) needs_.barrier = counting_ ? Barrier::kCounting : Barrier::kNamed;
    if (counting_ && reduces_)
      return Refuse("it reduces at a barrier that some of its threads may not come to", reduces_->loc);
    return {.refusal = {}, .needs = std::move(needs_)};
  }

 private:
  static Finding Refuse(std::string reason, SourceLoc loc) {
    return {.refusal = Refusal{std::move(reason), loc}, .needs = {}};
  }

  bool ExamineFunction(const ptx::Function& function) {
    const analysis::Cfg cfg(function);
    const analysis::Uniformity uniformity(cfg);
    for (const analysis::CfgInstruction& at : cfg.instructions()) {
      const Instruction& instruction = *at.instruction;
      if (auto reason = WhyNotTask(instruction)) {
        refusal_ = Refusal{std::move(*reason), instruction.loc};
        return false;
      }
      // Threads that ended do not come to it: all others are then fewer than the hardware's barrier waits for.
      const bool apart = !function.is_entry || instruction.guard || !uniformity.IsUniform(at.block);
      if (IsBarrier(instruction)) {
        barriers_ = true;
        counting_ |= apart;
        if (Is(instruction, "red")) reduces_ = &instruction, needs_.full_warps = true;
      }
      if (ExchangesLanes(instruction)) {
        needs_.full_warps = true;
        // Lanes that have ended are not waited for by a kernel; those of a task wait behind it, for the others.
        if (apart && WarpsCome(cfg, at)) {
          needs_.full_rows = true;
        } else if (apart) {
          refusal_ =
              Refusal{"lanes exchange values where some of its threads may not come (" + instruction.FullName() + ")",
                      instruction.loc};
          return false;
        }
      }
    }
    return true;
  }

  /// Whether all lanes of a warp come to it, or none: a condition that is one of warps ("if (threadIdx.x < 32) …"),
  /// where rows are whole warps.
  static bool WarpsCome(const analysis::Cfg& cfg, const analysis::CfgInstruction& at) {
    if (!cfg.function().is_entry) return false;
    const analysis::Uniformity uniformity(cfg, analysis::Scope::kWarp);
    return uniformity.IsUniform(at.block) && uniformity.IsGuardUniform(*at.instruction);
  }

  const analysis::CallGraph& calls_;
  const ptx::Function& kernel_;
  Needs needs_;
  std::optional<Refusal> refusal_;
  bool barriers_ = false, counting_ = false;
  const Instruction* reduces_ = nullptr;
};

/// Rewrites one function.
class TaskRewriter {
 public:
  TaskRewriter(ptx::Module& module, ptx::Function& function, bool is_kernel, const Needs& needs,
               const Placement& shared, const std::map<std::string, ptx::Function*, std::less<>>& copies)
      : editor_(module, function), is_kernel_(is_kernel), needs_(needs), shared_(shared), copies_(copies) {
    warp_ = editor_.NewRegister(ScalarType::kU32, "warp_at");
    if (!is_kernel_) return;
    // The kernel's own parameters, behind which stands the record's address.
    const ptx::ParamLayout layout = ptx::LayoutParams(function);
    for (std::size_t i = 0; i + 1 < function.params.size(); ++i) params_[&function.params[i]] = layout.offsets[i];
  }

  void Run() {
    EditStatements(*editor_.function().body, [this](Statement& statement, Replacement& replacement) {
      if (auto* instruction = std::get_if<Instruction>(&statement)) Rewrite(*instruction, replacement);
    });
    std::vector<Statement>& statements = editor_.function().body->statements;
    if (is_kernel_ && needs_.barrier == Barrier::kCounting) {
      // The end of the body is an end of the thread, too.
      for (Statement& line : Leave(editor_.function().body->end_loc)) statements.push_back(std::move(line));
    }
    InsertAtEntry(
        *editor_.function().body,
        editor_.Text("ld.param.u32 " + warp_ + ", [" + std::string(kWarpParam) + "];", editor_.function().loc));
  }

 private:
  std::string Field(std::size_t offset) const { return "[" + warp_ + "+" + std::to_string(offset) + "]"; }
  std::string Load(const std::string& to, std::size_t offset) const {
    return "ld.shared.u32 " + to + ", " + Field(offset) + ";\n";
  }
  std::string Fresh(ScalarType type, std::string_view hint) { return editor_.NewRegister(type, hint); }
  void Emit(Replacement& replacement, const std::string& text, SourceLoc loc) {
    for (Statement& statement : editor_.Text(text, loc)) replacement.before.push_back(std::move(statement));
  }

  void Rewrite(Instruction& instruction, Replacement& replacement) {
    if (IsBarrier(instruction)) return RewriteBarrier(instruction, replacement);
    if (is_kernel_ && (instruction.Has(ptx::Trait::kExits) || instruction.Has(ptx::Trait::kReturns)))
      return RewriteEnd(instruction, replacement);
    if (instruction.Has(ptx::Trait::kCalls)) RewriteCall(instruction, replacement);
    const bool reads_param = is_kernel_ && instruction.space() == StateSpace::kParam && ReadsKernelParam(instruction);
    for (Operand& operand : instruction.operands) ReplaceOperand(operand, instruction, replacement);
    if (reads_param) {
      for (ptx::Modifier& modifier : instruction.modifiers) {
        if (modifier.mod == Mod::kSpace || modifier.text.starts_with("param")) modifier = {Mod::kSpace, "global"};
      }
    }
  }

  /// A load of a parameter of the kernel's, or a conversion of its address: by name, or through a register, which can
  /// hold no other one.
  bool ReadsKernelParam(const Instruction& instruction) const {
    if (instruction.opcode != Opcode::kLd && instruction.opcode != Opcode::kCvta) return false;
    bool kernels = true;
    for (const Operand& operand : instruction.operands) {
      ptx::VisitOperand(operand, [&](const Operand& one) {
        if (one.kind == OperandKind::kSymbol && one.variable != nullptr && !IsKernelParam(*one.variable))
          kernels = false;
      });
    }
    return kernels;
  }
  bool IsKernelParam(const ptx::Variable& variable) const { return params_.contains(&variable); }

  void ReplaceOperand(Operand& operand, const Instruction& instruction, Replacement& replacement) {
    ptx::VisitOperand(operand, [&](Operand& one) {
      std::string name;
      if (one.kind == OperandKind::kSpecial) name = SpecialValue(one.text, instruction, replacement);
      else if (one.kind == OperandKind::kSymbol && one.variable != nullptr &&
               one.variable->space == StateSpace::kShared)
        name = SharedAddress(one, instruction, replacement);
      else if (one.kind == OperandKind::kSymbol && one.variable != nullptr && IsKernelParam(*one.variable))
        name = ParamAddress(one, instruction.loc, replacement);
      if (name.empty()) return;
      Operand read = RegisterOperand(*editor_.Find(name).variable);
      read.loc = one.loc;
      one = std::move(read);
    });
  }

  std::string SpecialValue(std::string_view text, const Instruction& instruction, Replacement& replacement);
  std::string ThreadNumber(char component, Replacement& replacement, SourceLoc loc);
  std::string SharedAddress(const Operand& symbol, const Instruction& instruction, Replacement& replacement);
  std::string ParamAddress(const Operand& symbol, SourceLoc loc, Replacement& replacement);
  void RewriteBarrier(Instruction& barrier, Replacement& replacement);
  void RewriteEnd(Instruction& end, Replacement& replacement);
  void RewriteCall(Instruction& call, Replacement& replacement);
  std::vector<Statement> Leave(SourceLoc loc);

  FunctionEditor editor_;
  const bool is_kernel_;
  const Needs& needs_;
  const Placement& shared_;
  const std::map<std::string, ptx::Function*, std::less<>>& copies_;
  std::map<const ptx::Variable*, std::uint32_t> params_;  ///< the kernel's own, with their offsets
  std::string warp_;
};

/// Blocks of one row are the rule: what more there is to compute is skipped where it is not needed.
std::string TaskRewriter::ThreadNumber(char component, Replacement& replacement, SourceLoc loc) {
  const std::string to = Fresh(ScalarType::kU32, "tid"), thread = Fresh(ScalarType::kU32, "thread"),
                    size = Fresh(ScalarType::kU32, "row"), more = Fresh(ScalarType::kPred, "more_rows");
  std::string text = Load(thread, offsetof(Warp, first_thread)) + "mov.u32 " + to + ", %laneid;\nadd.u32 " + thread +
                     ", " + thread + ", " + to + ";\n" + Load(size, offsetof(Warp, block_size));
  if (component == 'x') {
    text += "mov.u32 " + to + ", " + thread + ";\nsetp.ge.u32 " + more + ", " + thread + ", " + size + ";\n@" + more +
            " rem.u32 " + to + ", " + thread + ", " + size + ";\n";
  } else {
    const std::string rows = Fresh(ScalarType::kU32, "rows");
    text += "mov.u32 " + to + ", 0;\nsetp.ge.u32 " + more + ", " + thread + ", " + size + ";\n@" + more + " div.u32 " +
            to + ", " + thread + ", " + size + ";\n" + Load(rows, offsetof(Warp, block_size) + 4);
    text += component == 'y' ? "rem.u32 " + to + ", " + to + ", " + rows + ";\n"
                             : "div.u32 " + to + ", " + to + ", " + rows + ";\n";
  }
  Emit(replacement, text, loc);
  return to;
}

std::string TaskRewriter::SpecialValue(std::string_view text, const Instruction& instruction,
                                       Replacement& replacement) {
  const auto ref = ptx::SpecialFromText(text);
  if (!ref) return {};
  const std::uint32_t component = ref->component == 0 ? 0 : static_cast<std::uint32_t>(ref->component - 'x');
  std::size_t field = 0;
  std::string value;
  switch (ref->special) {
    case Special::kTid:
      value = ref->component == 'w' ? "" : ThreadNumber(ref->component, replacement, instruction.loc);
      break;
    case Special::kNtid: field = offsetof(Warp, block_size) + 4 * component; break;
    case Special::kCtaid: field = offsetof(Warp, cta) + 4 * component; break;
    case Special::kNctaid: field = offsetof(Warp, grid) + 4 * component; break;
    case Special::kDynamicSmemSize: field = offsetof(Warp, dynamic_bytes); break;
    default: return {};
  }
  if (value.empty()) {
    value = Fresh(ScalarType::kU32, "place");
    // The fourth component is 0 (ISA 10.1 and following).
    Emit(replacement, ref->component == 'w' ? "mov.u32 " + value + ", 0;" : Load(value, field), instruction.loc);
  }
  if (ptx::BitsOf(instruction.type()) != 16) return value;
  const std::string narrow = Fresh(ScalarType::kU16, "narrow");
  Emit(replacement, "cvt.u16.u32 " + narrow + ", " + value + ";", instruction.loc);
  return narrow;
}

std::string TaskRewriter::SharedAddress(const Operand& symbol, const Instruction& instruction,
                                        Replacement& replacement) {
  const auto place = shared_.find(symbol.variable);
  const std::uint64_t at = place != shared_.end() ? place->second : (needs_.static_bytes + 15) / 16 * 16;
  const std::string address = Fresh(ScalarType::kU32, "shared");
  std::string text = Load(address, offsetof(Warp, shared)) + "add.u32 " + address + ", " + address + ", " +
                     std::to_string(static_cast<std::int64_t>(at) + symbol.offset) + ";\n";
  const bool wide = !instruction.Has(ptx::Trait::kReads | ptx::Trait::kWrites | ptx::Trait::kAtomic) &&
                    ptx::BitsOf(instruction.type()) == 64;
  const std::string result = wide ? Fresh(ScalarType::kU64, "shared_wide") : address;
  if (wide) text += "cvt.u64.u32 " + result + ", " + address + ";\n";
  Emit(replacement, text, instruction.loc);
  return result;
}

std::string TaskRewriter::ParamAddress(const Operand& symbol, SourceLoc loc, Replacement& replacement) {
  const std::string address = Fresh(ScalarType::kU64, "param");
  Emit(replacement,
       "ld.shared.u64 " + address + ", " + Field(offsetof(Warp, params)) + ";\nadd.u64 " + address + ", " + address +
           ", " + std::to_string(std::int64_t{params_.at(symbol.variable)} + symbol.offset) + ";\n",
       loc);
  return address;
}

/// One thread more waits; the one that completes them begins the next round (task_records.h, Slot::word).
constexpr const char* kWait = R"({
  .reg .u32 %slot, %old, %now, %live, %waits, %round;
  .reg .pred %last, %same;
  ld.shared.u32 %slot, [WARP+SLOT];
  membar.cta;
  atom.shared.add.u32 %old, [%slot], 2048;
  and.b32 %live, %old, 2047;
  bfe.u32 %waits, %old, 11, 11;
  add.u32 %waits, %waits, 1;
  shr.u32 %round, %old, 22;
  setp.ne.u32 %last, %waits, %live;
  @%last bra WAIT;
  add.u32 %now, %round, 1;
  shl.b32 %now, %now, 22;
  or.b32 %now, %now, %live;
  st.volatile.shared.u32 [%slot], %now;
  bra DONE;
WAIT:
  ld.volatile.shared.u32 %now, [%slot];
  shr.u32 %now, %now, 22;
  setp.eq.u32 %same, %now, %round;
  @%same bra WAIT;
DONE:
  membar.cta;
})";

/// A thread ends: when all others wait, they wait no longer.
constexpr const char* kLeave = R"({
  .reg .u32 %slot, %old, %now, %live, %waits;
  .reg .pred %others, %none;
  ld.shared.u32 %slot, [WARP+SLOT];
  membar.cta;
  atom.shared.add.u32 %old, [%slot], 0xFFFFFFFF;
  and.b32 %live, %old, 2047;
  sub.u32 %live, %live, 1;
  bfe.u32 %waits, %old, 11, 11;
  setp.ne.u32 %others, %waits, %live;
  setp.eq.u32 %none, %live, 0;
  or.pred %others, %others, %none;
  @%others bra LEFT;
  shr.u32 %now, %old, 22;
  add.u32 %now, %now, 1;
  shl.b32 %now, %now, 22;
  or.b32 %now, %now, %live;
  st.volatile.shared.u32 [%slot], %now;
LEFT:
})";

std::string WithPlace(std::string text, const std::string& warp) {
  for (const auto& [mark, value] :
       {std::pair<std::string, std::string>{"WARP", warp}, {"SLOT", std::to_string(offsetof(Warp, slot))}}) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
      text.replace(at, mark.size(), value);
  }
  return text;
}

std::vector<Statement> TaskRewriter::Leave(SourceLoc loc) { return editor_.Text(WithPlace(kLeave, warp_), loc); }

void TaskRewriter::RewriteBarrier(Instruction& barrier, Replacement& replacement) {
  if (needs_.barrier == Barrier::kCounting) {
    if (barrier.guard) {
      const std::string skip = editor_.NewLabel("no_barrier");
      auto around = editor_.Text("{ bra OVER; OVER: }", barrier.loc);
      auto& block = *std::get<std::unique_ptr<ptx::Block>>(around.front());
      auto& branch = std::get<Instruction>(block.statements.front());
      branch.guard = barrier.guard;
      branch.guard->negated = !branch.guard->negated;
      auto wait = editor_.Text(WithPlace(kWait, warp_), barrier.loc);
      block.statements.insert(block.statements.begin() + 1, std::make_move_iterator(wait.begin()),
                              std::make_move_iterator(wait.end()));
      replacement.before.push_back(std::move(around.front()));
    } else {
      Emit(replacement, WithPlace(kWait, warp_), barrier.loc);
    }
    replacement.drop = true;
    return;
  }
  const std::string number = Fresh(ScalarType::kU32, "barrier"), threads = Fresh(ScalarType::kU32, "threads");
  std::string text = Load(number, offsetof(Warp, barrier_id)) + Load(threads, offsetof(Warp, threads));
  if (!Is(barrier, "red")) {
    // Blocks whose last warp is not full count, too: lanes that are no threads of theirs do not come to the hardware's
    // barrier.
    const std::string counts = Fresh(ScalarType::kPred, "counts");
    Emit(replacement, text + "setp.eq.u32 " + counts + ", " + number + ", 0;\n", barrier.loc);
    auto either = editor_.Text("{ @" + counts + " bra COUNT; bra OVER; COUNT: " + WithPlace(kWait, warp_) + " OVER: }",
                               barrier.loc);
    auto& block = *std::get<std::unique_ptr<ptx::Block>>(either.front());
    Instruction named = barrier;
    named.operands.clear();
    named.operands.push_back(RegisterOperand(*editor_.Find(number).variable));
    named.operands.push_back(RegisterOperand(*editor_.Find(threads).variable));
    block.statements.insert(block.statements.begin() + 1, std::move(named));
    replacement.before.push_back(std::move(either.front()));
    replacement.drop = true;
    return;
  }
  Emit(replacement, text, barrier.loc);
  const std::size_t at = NumberAt(barrier);
  barrier.operands[at] = RegisterOperand(*editor_.Find(number).variable);
  barrier.operands.insert(barrier.operands.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                          RegisterOperand(*editor_.Find(threads).variable));
}

void TaskRewriter::RewriteEnd(Instruction& end, Replacement& replacement) {
  if (needs_.barrier == Barrier::kCounting) {
    auto leave = Leave(end.loc);
    if (end.guard) {
      auto around = editor_.Text("{ bra OVER; ret; OVER: }", end.loc);
      auto& block = *std::get<std::unique_ptr<ptx::Block>>(around.front());
      auto& branch = std::get<Instruction>(block.statements.front());
      branch.guard = end.guard;
      branch.guard->negated = !branch.guard->negated;
      block.statements.insert(block.statements.begin() + 1, std::make_move_iterator(leave.begin()),
                              std::make_move_iterator(leave.end()));
      replacement.before.push_back(std::move(around.front()));
      replacement.drop = true;
      return;
    }
    for (Statement& line : leave) replacement.before.push_back(std::move(line));
  }
  auto made = editor_.Text("ret;", end.loc);
  std::get<Instruction>(made.front()).guard = end.guard;
  replacement.before.push_back(std::move(made.front()));
  replacement.drop = true;
}

void TaskRewriter::RewriteCall(Instruction& call, Replacement& replacement) {
  const ptx::Function* const callee = analysis::CalleeOf(call);
  if (callee == nullptr) return;
  const auto copy = copies_.find(std::string(callee->name));
  if (copy == copies_.end()) return;
  std::size_t at = static_cast<std::size_t>(analysis::CallTargetOf(call) - call.operands.data());
  call.operands[at].function = copy->second;
  call.operands[at].text = copy->second->name;
  if (++at == call.operands.size() || call.operands[at].kind != OperandKind::kList) {
    Operand list;
    list.kind = OperandKind::kList;
    list.loc = call.loc;
    call.operands.insert(call.operands.begin() + static_cast<std::ptrdiff_t>(at), std::move(list));
  }
  const std::string slot = editor_.NewVariable(StateSpace::kParam, ScalarType::kB32, "warp_param");
  Emit(replacement, "st.param.b32 [" + slot + "], " + warp_ + ";", call.loc);
  call.operands[at].elements.push_back(SymbolOperand(*editor_.Find(slot).variable));
}

}  // namespace

Finding Examine(const analysis::CallGraph& calls, const ptx::Function& kernel) {
  return Examination(calls, kernel).Run();
}

Placement PlaceShared(const std::vector<ptx::Function*>& functions, Needs& needs) {
  Placement places;
  for (ptx::Function* const function : functions) {
    ptx::VisitOperands(*function->body, [&](const Operand& one) {
      if (one.kind != OperandKind::kSymbol || one.variable == nullptr || one.variable->space != StateSpace::kShared)
        return;
      const ptx::Variable& variable = *one.variable;
      const std::uint32_t align = variable.alignment();
      needs.alignment = std::max(needs.alignment, align);
      if (places.contains(&variable) || variable.bytes() == 0) return;
      const std::uint32_t at = (needs.static_bytes + align - 1) / align * align;
      places[&variable] = at;
      needs.static_bytes = at + static_cast<std::uint32_t>(variable.bytes());
    });
  }
  return places;
}

void RewriteFunction(ptx::Module& module, ptx::Function& function, bool is_kernel, const Needs& needs,
                     const Placement& shared, const std::map<std::string, ptx::Function*, std::less<>>& copies) {
  TaskRewriter(module, function, is_kernel, needs, shared, copies).Run();
  if (!is_kernel) return;
  while (function.params.size() > 1) function.params.pop_front();  // the last one stays where it is
}

}  // namespace gridloom::passes::task
