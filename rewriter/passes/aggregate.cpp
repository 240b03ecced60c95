#include "rewriter/passes/aggregate.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/aggregate_functions.h"
#include "rewriter/passes/edit.h"
#include "rewriter/passes/stream_handles.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::NodeId;
using ptx::Function;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Statement;

/// Functions of the system that wait for nobody's launches.
bool WaitsForNothing(std::string_view name) {
  static constexpr std::array kNames = {"vprintf", "malloc", "free", "__assertfail", "__nanosleep"};
  return std::ranges::find(kNames, name) != kNames.end() || IsOfRuntime(name) || name.starts_with("gridloom_") ||
         name.starts_with("__nv_");
}

bool IsWait(std::string_view name) {
  return IsOfRuntime(name) && name.find("DeviceSynchronize") != std::string_view::npos;
}

std::string_view WhyInOrder(std::uint64_t handle) {
  switch (handle) {
    case 0: return "the launch goes into the NULL stream of its block, whose launches are in order";
    case 1:
    case 2: return "the launch goes into a default stream, whose launches are in order";
    case 3: return "the launch is a tail launch, which waits for its parent";
    default: return "the launch goes into a stream that is none";
  }
}

/// What becomes of a function.
struct Aggregation {
  std::set<const Instruction*> drop;                         ///< calls, and what passes their arguments
  std::set<const Instruction*> succeed;                      ///< loads of the results of calls that are dropped
  std::set<const ptx::Variable*> undeclare;                  ///< .param variables of calls that are dropped
  std::map<const Instruction*, const MadeStream*> set_none;  ///< calls that made a stream whose handle is looked at
  std::map<const Instruction*, AddedFunction> call_instead;
  bool empty() const { return drop.empty() && call_instead.empty(); }
};

/// Decides about the launches of a function.
class Planner {
 public:
  explicit Planner(const Function& function) : function_(function), cfg_(function), handles_(cfg_) {}

  /// `why_not`: nothing of the function may be aggregated, for that reason; `why_not_launch`: of one launch.
  void Decide(const std::string& why_not, const WhyNotLaunch& why_not_launch) {
    for (const StreamUse& use : handles_.uses()) {
      if (use.call != RuntimeCall::kDestroyStream && why_not_launch)
        Keep(use, why_not_launch(function_, At(use.instruction)));
    }
    for (const StreamUse& use : handles_.uses()) {
      if (use.call == RuntimeCall::kDestroyStream) continue;
      PlaceReport place{.function = std::string(function_.name), .loc = At(use.instruction).loc};
      const auto kept = kept_launches_.find(use.instruction);
      if (!why_not.empty()) place.reason = why_not;
      else if (kept != kept_launches_.end()) place.reason = kept->second;
      else DecideLaunch(use, place);
      places_.push_back(std::move(place));
    }
    if (!why_not.empty()) return;
    for (const StreamUse& use : handles_.uses()) {
      if (use.call == RuntimeCall::kDestroyStream) DecideDestroy(use);
    }
    for (std::size_t i = 0; i < handles_.made().size(); ++i) {
      const MadeStream& made = handles_.made()[i];
      if (!IsDropped(i)) continue;
      DropCall(made.instruction);
      if (looked_at_.contains(i)) plan_.set_none[&At(made.instruction)] = &made;
    }
  }

  const std::vector<PlaceReport>& places() const { return places_; }
  const Aggregation& plan() const { return plan_; }

 private:
  const Instruction& At(std::uint32_t instruction) const { return *cfg_.instructions()[instruction].instruction; }
  bool IsDropped(std::size_t made) const { return !handles_.made()[made].refused() && !kept_streams_.contains(made); }
  bool IsNone(const StreamSource& source) const {
    return source.kind == StreamSource::Kind::kMade && IsDropped(source.made);
  }

  /// A launch that stays as it is needs its stream.
  void Keep(const StreamUse& launch, std::string why) {
    if (why.empty()) return;
    kept_launches_.emplace(launch.instruction, std::move(why));
    for (const StreamSource& source : launch.sources) {
      if (source.kind == StreamSource::Kind::kMade) kept_streams_.insert(source.made);
    }
  }

  /// Why a launch into that stream is none of a group; empty when it is.
  std::string WhyNot(const StreamSource& source) const {
    switch (source.kind) {
      case StreamSource::Kind::kConstant:
        return source.handle == kForgotten ? "" : std::string(WhyInOrder(source.handle));
      case StreamSource::Kind::kUnknown: return "the launch goes into a stream that " + source.why;
      case StreamSource::Kind::kMade: {
        const MadeStream& made = handles_.made()[source.made];
        if (IsDropped(source.made)) return "";
        if (!made.refused())
          return "the launch shares its stream (line " + std::to_string(At(made.instruction).loc.line) +
                 ") with one that stays";
        return "the launch goes into a stream (line " + std::to_string(At(made.instruction).loc.line) + ") that " +
               made.why_not;
      }
    }
    return "";
  }

  void DecideLaunch(const StreamUse& use, PlaceReport& place) {
    using Kind = StreamSource::Kind;
    bool unknown = false, every = true;
    // Where there are several reasons: what is wrong with a stream that the function makes says most.
    for (const Kind kind : {Kind::kMade, Kind::kUnknown, Kind::kConstant}) {
      for (const StreamSource& source : use.sources) {
        if (source.kind != kind) continue;
        const std::string why = WhyNot(source);
        unknown = unknown || kind == Kind::kUnknown;
        if (why.empty()) place.changed = true;
        else every = false;
        if (place.reason.empty()) place.reason = why;
      }
    }
    if (unknown) place.changed = false;
    if (!place.changed) return;
    const bool of_kernel = use.call == RuntimeCall::kLaunch;
    if (every) {
      plan_.call_instead[&At(use.instruction)] = of_kernel ? AddedFunction::kGroupOfKernel : AddedFunction::kGroup;
      DropArgument(use);
    } else {
      plan_.call_instead[&At(use.instruction)] =
          of_kernel ? AddedFunction::kEitherKernel : AddedFunction::kEitherBuffer;
      LookAt(use);
    }
  }

  void DecideDestroy(const StreamUse& use) {
    const auto is_none = [this](const StreamSource& source) { return IsNone(source); };
    if (std::ranges::none_of(use.sources, is_none)) return;
    if (std::ranges::all_of(use.sources, is_none) && handles_.IsSequence(use.instruction))
      return DropCall(use.instruction);
    plan_.call_instead[&At(use.instruction)] = AddedFunction::kDestroyIfThere;
    LookAt(use);
  }

  void LookAt(const StreamUse& use) {
    for (const StreamSource& source : use.sources) {
      if (IsNone(source)) looked_at_.insert(source.made);
    }
  }

  /// A launch of a group has no stream.
  void DropArgument(const StreamUse& use) {
    const Operand* const argument = ArgumentOf(At(use.instruction), StreamArgumentOf(use.call).number);
    if (argument->kind == OperandKind::kSymbol && argument->variable != nullptr && handles_.IsSequence(use.instruction))
      DropVariable(*argument->variable);
  }

  void DropCall(std::uint32_t call) {
    plan_.drop.insert(&At(call));
    for (const Operand* const list : {ResultsOf(At(call)), ArgumentsOf(At(call))}) {
      for (std::size_t n = 0; list != nullptr && n < list->elements.size(); ++n) {
        const Operand& element = list->elements[n];
        if (element.kind == OperandKind::kSymbol && element.variable != nullptr) DropVariable(*element.variable);
      }
    }
  }

  void DropVariable(const ptx::Variable& variable) {
    plan_.undeclare.insert(&variable);
    for (const analysis::CfgInstruction& at : cfg_.instructions()) {
      bool mentioned = false;
      for (const Operand& operand : at.instruction->operands)
        ptx::VisitOperand(operand, [&](const Operand& one) { mentioned = mentioned || one.variable == &variable; });
      if (!mentioned) continue;
      if (at.instruction->opcode == Opcode::kSt) plan_.drop.insert(at.instruction);
      if (at.instruction->opcode == Opcode::kLd) plan_.succeed.insert(at.instruction);
    }
  }

  const Function& function_;
  const analysis::Cfg cfg_;
  const StreamHandles handles_;
  std::vector<PlaceReport> places_;
  Aggregation plan_;
  std::map<std::uint32_t, std::string> kept_launches_;  ///< why
  std::set<std::size_t> kept_streams_;
  std::set<std::size_t> looked_at_;  ///< streams that are not made, whose handles tell what to do
};

/// Carries out a plan.
class Editor {
 public:
  Editor(ptx::Module& module, Function& function, const Aggregation& plan)
      : module_(module), editor_(module, function), plan_(plan) {}

  void Run() {
    EditStatements(*editor_.function().body, [this](Statement& statement, Replacement& replacement) {
      if (auto* const variable = std::get_if<ptx::Variable*>(&statement))
        replacement.drop = plan_.undeclare.contains(*variable);
      if (auto* const instruction = std::get_if<Instruction>(&statement)) Edit(*instruction, replacement);
    });
  }

 private:
  void Edit(Instruction& instruction, Replacement& replacement) {
    if (plan_.succeed.contains(&instruction)) return Succeed(instruction, instruction.operands[0]);
    if (const auto none = plan_.set_none.find(&instruction); none != plan_.set_none.end())
      replacement.before = SetNone(*none->second, instruction.loc);
    if (plan_.drop.contains(&instruction)) {
      const Operand* const results = ResultsOf(instruction);
      const bool in_register =
          results != nullptr && !results->elements.empty() && results->elements[0].kind == OperandKind::kRegister;
      if (in_register) Succeed(instruction, results->elements[0]);
      else replacement.drop = true;
      return;
    }
    if (const auto other = plan_.call_instead.find(&instruction); other != plan_.call_instead.end())
      CallInstead(instruction, other->second);
  }

  /// The instruction sets what the call would have given to 0, cudaSuccess.
  static void Succeed(Instruction& instruction, Operand to) {
    instruction.opcode = Opcode::kMov;
    instruction.name = "mov";
    instruction.modifiers = {{ptx::Mod::kType, ptx::BitsOf(to.variable->type) == 64 ? "b64" : "b32"}};
    instruction.operands.clear();
    instruction.operands.push_back(std::move(to));
    instruction.operands.push_back(IntOperand(0));
  }

  std::vector<Statement> SetNone(const MadeStream& made, SourceLoc loc) {
    const std::string handle = editor_.NewRegister(ptx::ScalarType::kB64, "no_stream");
    auto statements = editor_.Text(
        "mov.b64 " + handle + ", " + std::to_string(kNoStream) + "U; st.local.b64 [" + handle + "], " + handle + ";",
        loc);
    ptx::AddressOperand& address = *std::get<Instruction>(statements.back()).operands[0].address;
    address.base[0] = SymbolOperand(*made.slot.variable);
    address.offset = made.slot.offset;
    return statements;
  }

  void CallInstead(Instruction& call, AddedFunction which) {
    auto* const target = const_cast<Operand*>(analysis::CallTargetOf(call));
    Function& other = AddFunction(module_, which, *target->function, editor_.function());
    target->function = &other;
    target->text = other.name;
    const bool group = which == AddedFunction::kGroup || which == AddedFunction::kGroupOfKernel;
    if (group) const_cast<Operand*>(ArgumentsOf(call))->elements.pop_back();
  }

  ptx::Module& module_;
  FunctionEditor editor_;
  const Aggregation& plan_;
};

/// One run over one module.
class Aggregator {
 public:
  Aggregator(ptx::Module& module, const WhyNotLaunch& why_not)
      : module_(module), why_not_launch_(why_not), calls_(module) {}

  PassReport Run() {
    PassReport report = StartReport(module_);
    for (const KernelReport& kernel : report.kernels) FindWaits(*module_.FindFunction(kernel.kernel));
    std::vector<Function*> functions;
    for (const ptx::ModuleItem& item : module_.items) {
      auto* const function = std::get_if<Function*>(&item);
      if (function != nullptr && (*function)->body != nullptr && reached_.contains(calls_.NodeOf(**function)))
        functions.push_back(*function);
    }
    for (Function* const function : functions) RunOn(*function);
    for (KernelReport& kernel : report.kernels) Report(kernel);
    return report;
  }

 private:
  /// Nothing that a kernel reaches is aggregated when the kernel may wait for it.
  void FindWaits(const Function& kernel) {
    const std::vector<NodeId> reachable = calls_.Reachable(calls_.NodeOf(kernel));
    reached_.insert(reachable.begin(), reachable.end());
    const std::string why = WhyMayWait(kernel, reachable);
    if (why.empty()) return;
    for (const NodeId node : reachable) why_not_.emplace(node, why);
  }

  /// Whether what the pass would call is something else in this module.
  bool HasOtherGroups() const {
    const Function* const buffer = module_.FindFunction("cudaLaunchAggGroupV2");
    const Function* const kernel = module_.FindFunction("cudaLaunchAggGroup");
    return (buffer != nullptr && !TakesBytes(*buffer, {8})) ||
           (kernel != nullptr && !TakesBytes(*kernel, {8, 8, 12, 12, 4})) ||
           std::ranges::any_of(module_.functions, [](const Function& function) {
             return function.name.starts_with(kEither) && !TakesBytes(function, {8, 8}) && !TakesBytes(function, {8}) &&
                    !TakesBytes(function, {8, 8, 12, 12, 4, 8});
           });
  }

  std::string WhyMayWait(const Function& kernel, const std::vector<NodeId>& reachable) const {
    if (HasOtherGroups()) return "the module has a function of its own that is named as those which launch groups";
    const std::string name = "kernel " + std::string(kernel.name);
    for (const NodeId node : reachable) {
      const Function& function = calls_.function(node);
      if (IsWait(function.name)) return name + " waits for what it launches (" + PublicName(function.name) + ")";
    }
    for (const NodeId node : reachable) {
      const Function& function = calls_.function(node);
      if (function.body == nullptr && !WaitsForNothing(function.name))
        return name + " calls " + std::string(function.name) +
               ", which is not in the module and may wait for what is launched";
      if (std::ranges::any_of(calls_.calls(node), &analysis::CallSite::unknown_target))
        return name + " calls through a pointer that may lead to what waits for launches";
    }
    return "";
  }

  void RunOn(Function& function) {
    const NodeId node = calls_.NodeOf(function);
    if (IsOfRuntime(function.name) || function.name.starts_with(kEither)) return;
    const auto why = why_not_.find(node);
    Planner planner(function);
    planner.Decide(why == why_not_.end() ? "" : why->second, why_not_launch_);
    places_[node] = planner.places();
    if (!planner.plan().empty()) Editor(module_, function, planner.plan()).Run();
  }

  void Report(KernelReport& kernel) const {
    for (const NodeId node : calls_.Reachable(calls_.NodeOf(*module_.FindFunction(kernel.kernel)))) {
      const auto places = places_.find(node);
      if (places != places_.end())
        kernel.places.insert(kernel.places.end(), places->second.begin(), places->second.end());
    }
    if (kernel.places.empty()) return;
    const bool changed = std::ranges::any_of(kernel.places, &PlaceReport::changed);
    kernel.status = changed ? KernelStatus::kChanged : KernelStatus::kRefused;
    if (changed) return;
    kernel.reason = kernel.places.front().reason;
    kernel.loc = kernel.places.front().loc;
  }

  ptx::Module& module_;
  const WhyNotLaunch& why_not_launch_;
  const analysis::CallGraph calls_;
  std::set<NodeId> reached_;
  std::map<NodeId, std::string> why_not_;
  std::map<NodeId, std::vector<PlaceReport>> places_;
};

}  // namespace

PassReport AggregateLaunches(ptx::Module& module, const WhyNotLaunch& why_not) {
  return Aggregator(module, why_not).Run();
}

Result<PassReport> AggregatePass::Run(ptx::Module& module) const { return AggregateLaunches(module, {}); }

}  // namespace gridloom::passes
