#include "rewriter/passes/stream_handles.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "rewriter/analysis/liveness.h"
#include "rewriter/passes/handle_flow.h"
#include "rewriter/passes/stream_trace.h"
#include "rewriter/ptx/defuse.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {

using analysis::Cfg;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;

namespace {

constexpr std::uint32_t kHandleBytes = 8;
constexpr std::uint64_t kNonBlocking = 1;  // cudaStreamNonBlocking

struct RuntimeFunction {
  std::string_view name;  ///< without its prefix
  RuntimeCall call;
};
constexpr RuntimeFunction kFunctions[] = {
    {"StreamCreateWithFlags", RuntimeCall::kCreateStream},
    {"StreamDestroy", RuntimeCall::kDestroyStream},
    {"LaunchDevice", RuntimeCall::kLaunch},
    {"LaunchDevice_ptsz", RuntimeCall::kLaunch},
    {"LaunchDeviceV2", RuntimeCall::kLaunchBuffer},
    {"LaunchDeviceV2_ptsz", RuntimeCall::kLaunchBuffer},
    {"GetParameterBufferV2", RuntimeCall::kGetBuffer},
    {"DeviceSynchronize", RuntimeCall::kWait},
    {"DeviceSynchronizeDeprecationAvoidance", RuntimeCall::kWait},
};
constexpr std::string_view kPrefixes[] = {"__cudaCDP2", "__cuda", "cuda"};

/// The name behind the prefix of the library; empty when it has none.
std::string_view Behind(std::string_view function) {
  for (const std::string_view prefix : kPrefixes) {
    if (function.starts_with(prefix)) return function.substr(prefix.size());
  }
  return {};
}

RuntimeCall CallOf(const Instruction& instruction) {
  const ptx::Function* const callee = analysis::CalleeOf(instruction);
  return callee == nullptr ? RuntimeCall::kNone : RuntimeCallOf(callee->name);
}

/// Functions that put a handle where their first argument points to, and do no more with the pointer.
std::optional<std::uint32_t> Written(const ptx::Function& callee, std::size_t argument) {
  const std::string_view name = Behind(callee.name);
  if (argument == 0 && (name == "StreamCreateWithFlags" || name == "EventCreateWithFlags")) return kHandleBytes;
  if (callee.name == "vprintf") return 0;  // it reads its format and arguments
  return std::nullopt;
}

/// Functions that use no stream but those that are looked at, and keep none.
bool KnowsNoStreams(std::string_view function) {
  static constexpr std::array<std::string_view, 12> kOfRuntime = {
      "StreamCreateWithFlags", "StreamDestroy",        "LaunchDevice",      "LaunchDeviceV2",
      "GetParameterBuffer",    "GetParameterBufferV2", "GetLastError",      "PeekAtLastError",
      "GetErrorName",          "GetErrorString",       "LaunchDevice_ptsz", "LaunchDeviceV2_ptsz"};
  static constexpr std::array<std::string_view, 4> kOthers = {"vprintf", "malloc", "free", "__assertfail"};
  return std::ranges::find(kOfRuntime, Behind(function)) != kOfRuntime.end() ||
         std::ranges::find(kOthers, function) != kOthers.end();
}

using Register = HandleFlow::Register;

bool Mentions(const Operand& operand, const Register& reg) {
  bool found = false;
  ptx::VisitOperand(operand, [&](const Operand& one) {
    found = found || (one.kind == OperandKind::kRegister && one.variable == reg.first && one.index == reg.second);
  });
  return found;
}

/// Whether the function is declared as in the runtime library; another function of that name is not the library's.
bool HasSignature(const ptx::Function& function, RuntimeCall call) {
  switch (call) {
    case RuntimeCall::kCreateStream: return TakesBytes(function, {8, 4});
    case RuntimeCall::kDestroyStream: return TakesBytes(function, {8});
    case RuntimeCall::kLaunch: return TakesBytes(function, {8, 8, 12, 12, 4, 8});
    case RuntimeCall::kLaunchBuffer: return TakesBytes(function, {8, 8});
    default: return false;
  }
}

/// Finds a function's launches and streams, and what is to be said against each stream.
class HandleFinder {
 public:
  HandleFinder(const Cfg& cfg, ThreadMemory& memory, const StreamHandles& handles, std::vector<StreamUse>& uses,
               std::vector<MadeStream>& made)
      : cfg_(cfg), memory_(memory), handles_(handles), uses_(uses), made_(made), liveness_(cfg) {}

  void Run() {
    FindLocals();
    for (std::uint32_t i = 0; i < cfg_.instructions().size(); ++i) AddCall(i);
    if (cfg_.unresolved_branch() != nullptr) return GiveUp();
    holders_.resize(made_.size());
    for (std::size_t i = 0; i < made_.size(); ++i) CheckHandle(i);
    // What is said against one stream can be said against another that has its slot.
    for (bool more = true; more;) {
      Trace();
      more = false;
      for (std::size_t i = 0; i < made_.size(); ++i) {
        if (!made_[i].refused()) more = CheckUses(i) || more;
      }
    }
  }

 private:
  const Instruction& At(std::uint32_t instruction) const { return *cfg_.instructions()[instruction].instruction; }

  /// Variables that can be named everywhere in the function.
  void FindLocals() {
    std::map<std::string_view, unsigned> named;
    ptx::VisitStatements(*cfg_.function().body, [&](const ptx::Statement& statement) {
      if (const auto* const variable = std::get_if<ptx::Variable*>(&statement)) ++named[(*variable)->name];
    });
    for (const ptx::Variable& variable : cfg_.function().body->variables) {
      if (variable.space == StateSpace::kLocal && named[variable.name] == 1) locals_.push_back(&variable);
    }
  }

  void AddCall(std::uint32_t at) {
    const Instruction& instruction = At(at);
    const RuntimeCall call = CallOf(instruction);
    const StreamArgument stream = StreamArgumentOf(call);
    const Operand* const arguments = ArgumentsOf(instruction);
    if (stream.arguments == 0 || arguments == nullptr || arguments->elements.size() != stream.arguments) return;
    if (!HasSignature(*analysis::CalleeOf(instruction), call)) return;
    if (call != RuntimeCall::kCreateStream) return uses_.push_back({.instruction = at, .call = call});
    MadeStream made{.instruction = at};
    if (instruction.guard) made.why_not = "is made under a condition";
    else if (!FindSlot(at, made.slot))
      made.why_not = "others may know of, because its handle is not put into a variable of the function";
    else if (!handles_.IsSequence(at)) made.why_not = "is made by a call that shares its arguments with another";
    made_.push_back(std::move(made));
  }

  void GiveUp() {
    const std::string why = "cannot be told, because a branch of the function leads nobody knows where";
    for (MadeStream& made : made_) made.why_not = why;
    for (StreamUse& use : uses_) use.sources = {{.kind = StreamSource::Kind::kUnknown, .why = why}};
  }

  /// Where the call puts the handle: a place that it has in any case.
  bool FindSlot(std::uint32_t call, Place& slot) {
    for (const ptx::Variable* const local : locals_) {
      for (const PlaceAccess& access : memory_.UseOf(*local).accesses) {
        if (access.instruction != call) continue;
        if (slot.variable != nullptr) return false;
        slot = {local, access.offset};
      }
    }
    const Operand* const pointer = ArgumentOf(At(call), 0);
    const bool inside = slot.variable != nullptr && slot.offset >= 0 &&
                        static_cast<std::uint64_t>(slot.offset) + kHandleBytes <= slot.variable->bytes();
    if (!inside || pointer->kind != OperandKind::kSymbol) return inside;
    std::uint32_t stores = 0;
    for (const analysis::CfgInstruction& one : cfg_.instructions()) {
      if (one.instruction->opcode != Opcode::kSt) continue;
      const auto place = memory_.Named(*one.instruction);
      if (place && place->variable == pointer->variable) stores += one.instruction->guard ? 2 : 1;
    }
    return stores == 1;
  }

  // ---- where the handle goes
  void CheckHandle(std::size_t number) {
    MadeStream& made = made_[number];
    if (made.refused()) return;
    if (Flags(made.instruction) != kNonBlocking) {
      made.why_not = "is not made with cudaStreamNonBlocking";
      return;
    }
    const ThreadMemory::Use& use = memory_.UseOf(*made.slot.variable);
    const Instruction* const wild = PointerTo(made.slot, use);
    if (wild != nullptr) {
      made.why_not = "others may know of, because its handle lies where pointers lead to (" + wild->FullName() + ")";
      return;
    }
    std::vector<Register>& holders = holders_[number];
    for (const PlaceAccess& access : use.accesses) CheckAccess(made, access, holders);
    for (std::size_t i = 0; i < holders.size() && !made.refused(); ++i) {
      const Register holder = holders[i];
      for (std::uint32_t at = 0; at < cfg_.instructions().size() && !made.refused(); ++at)
        CheckReader(made, at, holder, holders);
    }
  }

  /// An instruction that may access the slot through a pointer; null when there is none. One that is computed from
  /// another place is of another variable. If it were not, and loaded the handle, nobody could use what it loaded: the
  /// kernel does with streams only what is known (CheckUses), and calls nothing that could do more.
  const Instruction* PointerTo(const Place& slot, const ThreadMemory::Use& use) const {
    if (!KeepsHandles(use)) {
      const auto wide = std::ranges::find_if(
          use.loose, [](const LooseAccess& access) { return access.writes && access.bytes >= kHandleBytes; });
      return use.wild != nullptr ? use.wild : &At(wide->instruction);
    }
    for (const LooseAccess& access : use.loose) {
      const auto in_slot = [&](std::int64_t offset) {
        return offset >= slot.offset && offset < slot.offset + kHandleBytes;
      };
      if (std::ranges::any_of(access.from, in_slot) || !cfg_.function().is_entry) return &At(access.instruction);
    }
    if (use.loose.empty()) return nullptr;
    for (const analysis::CfgInstruction& at : cfg_.instructions()) {
      if (!at.instruction->Has(ptx::Trait::kCalls)) continue;
      const ptx::Function* const callee = analysis::CalleeOf(*at.instruction);
      if (callee == nullptr || !KnowsNoStreams(callee->name)) return at.instruction;
    }
    return nullptr;
  }

  std::optional<std::uint64_t> Flags(std::uint32_t call) {
    const auto sources = StreamTrace(cfg_, memory_, {}).Argument(call, 1, 4);
    if (sources.size() != 1 || sources[0].kind != StreamSource::Kind::kConstant) return std::nullopt;
    return sources[0].handle;
  }

  void CheckAccess(MadeStream& made, const PlaceAccess& access, std::vector<Register>& holders) {
    if (access.offset >= made.slot.offset + kHandleBytes || access.offset + access.bytes <= made.slot.offset) return;
    const Instruction& instruction = At(access.instruction);
    const bool exact = access.offset == made.slot.offset && access.bytes == kHandleBytes && access.whole;
    if (!exact) made.why_not = "has a handle that is accessed in parts (" + instruction.FullName() + ")";
    else if (access.writes && instruction.opcode != Opcode::kSt && CallOf(instruction) != RuntimeCall::kCreateStream)
      made.why_not = "shares the place of its handle with an event";
    else if (!access.writes) AddHolder(made, instruction, holders);
  }

  void AddHolder(MadeStream& made, const Instruction& instruction, std::vector<Register>& holders) {
    const Operand& to = instruction.operands[0];
    if (to.kind != OperandKind::kRegister || to.variable == nullptr || to.element != 0 || to.variable->vector != 1) {
      made.why_not = "has a handle that is accessed in parts (" + instruction.FullName() + ")";
      return;
    }
    const Register reg{to.variable, to.index};
    if (std::ranges::find(holders, reg) == holders.end()) holders.push_back(reg);
  }

  /// What an instruction that reads the handle out of a register does with it.
  void CheckReader(MadeStream& made, std::uint32_t at, const Register& holder, std::vector<Register>& holders) {
    const Instruction& instruction = At(at);
    const ptx::Form* const form = ptx::FormOf(instruction);
    for (std::size_t n = 0; n < instruction.operands.size() && !made.refused(); ++n) {
      const Operand& operand = instruction.operands[n];
      const bool reads = ptx::detail::UseOf(instruction, form, n).reads || operand.kind == OperandKind::kAddress;
      if (!reads || !Mentions(operand, holder)) continue;
      const bool copies = ptx::BytesOf(instruction.type()) == kHandleBytes && operand.kind == OperandKind::kRegister &&
                          ((instruction.opcode == Opcode::kMov && n == 1) ||
                           (instruction.opcode == Opcode::kSelp && (n == 1 || n == 2)));
      if (copies) AddHolder(made, instruction, holders);
      else if (instruction.Has(ptx::Trait::kCalls)) CheckCall(made, at, holder);
      else if (instruction.opcode == Opcode::kSt && n == 1) CheckStore(made, instruction);
      else made.why_not = "has a handle that is used in other ways, too (" + instruction.FullName() + ")";
    }
  }

  void CheckCall(MadeStream& made, std::uint32_t at, const Register& holder) {
    const Operand* const list = ArgumentsOf(At(at));
    bool argument = false;
    for (std::size_t n = 0; list != nullptr && n < list->elements.size(); ++n) {
      if (!Mentions(list->elements[n], holder)) continue;
      argument = true;
      CheckArgument(made, {.call = at, .number = n});
    }
    if (!argument) made.why_not = "has a handle that is called";
  }

  void CheckStore(MadeStream& made, const Instruction& store) {
    const auto place = memory_.Named(store);
    // Back to where it was, or in a register that elsewhere holds the handle; CheckAccess has seen that it is the whole
    // place.
    if (place == made.slot) return;
    const bool passed = place && place->variable->space == StateSpace::kParam && place->offset == 0 &&
                        !memory_.CallsWith(*place->variable).empty();
    if (!passed) made.why_not = "has a handle that is stored (" + store.FullName() + ")";
    else
      for (const CallArgument& argument : memory_.CallsWith(*place->variable)) CheckArgument(made, argument);
  }

  void CheckArgument(MadeStream& made, const CallArgument& argument) {
    const Instruction& call = At(argument.call);
    const RuntimeCall runtime = CallOf(call);
    const StreamArgument stream = StreamArgumentOf(runtime);
    const bool known = !argument.result && runtime != RuntimeCall::kCreateStream && stream.arguments != 0 &&
                       argument.number == stream.number && ArgumentsOf(call)->elements.size() == stream.arguments;
    if (known || made.refused()) return;
    const ptx::Function* const callee = analysis::CalleeOf(call);
    made.why_not = (callee == nullptr ? std::string("a function") : PublicName(callee->name)) + " gets, too";
  }

  // ---- who uses it
  void Trace() {
    for (StreamUse& use : uses_)
      use.sources =
          StreamTrace(cfg_, memory_, made_).Argument(use.instruction, StreamArgumentOf(use.call).number, kHandleBytes);
  }

  /// True when the stream is to be refused: what it says of the order of two launches, or of a launch and its end,
  /// would be lost.
  bool CheckUses(std::size_t number) {
    MadeStream& made = made_[number];
    std::map<std::uint32_t, std::size_t> launches, all;  // with the numbers of their streams
    const bool loose = !memory_.UseOf(*made.slot.variable).loose.empty();
    for (const StreamUse& use : uses_) {
      const auto unknown = std::ranges::find(use.sources, StreamSource::Kind::kUnknown, &StreamSource::kind);
      if (loose && unknown != use.sources.end())
        made.why_not = "may be the one that another call gets, which " + unknown->why;
      const auto is_made = [&](const StreamSource& source) {
        return source.kind == StreamSource::Kind::kMade && source.made == number;
      };
      if (std::ranges::none_of(use.sources, is_made)) continue;
      all.emplace(use.instruction, StreamArgumentOf(use.call).number);
      if (use.call != RuntimeCall::kDestroyStream) launches.emplace(use.instruction, StreamArgumentOf(use.call).number);
      if (unknown != use.sources.end()) made.why_not = "is used where another one may be, which " + unknown->why;
    }
    if (launches.empty() && !made.refused()) made.why_not = "nothing is launched into";
    const HandleFlow flow(cfg_, memory_, made_, number, holders_[number]);
    for (const auto& [use, argument] : all) {
      if (made.refused()) break;
      const bool launch = launches.contains(use);
      if (flow.Reaches(use, launch ? launches : all))
        made.why_not = launch ? "several launches may go into" : "may be used when it has been destroyed";
    }
    if (!made.refused() && OutlivesNext(number)) made.why_not = "may be used when another has been made in its place";
    return made.refused();
  }

  bool OutlivesNext(std::size_t number) const {
    const auto live = liveness_.LiveBefore(made_[number].instruction);
    return std::ranges::any_of(holders_[number], [&](const Register& holder) {
      const analysis::RegisterId id = liveness_.registers().Find(*holder.first, holder.second);
      return id != analysis::kNoRegister && std::ranges::find(live, id) != live.end();
    });
  }

  const Cfg& cfg_;
  ThreadMemory& memory_;
  const StreamHandles& handles_;
  std::vector<StreamUse>& uses_;
  std::vector<MadeStream>& made_;
  const analysis::Liveness liveness_;
  std::vector<const ptx::Variable*> locals_;
  std::vector<std::vector<Register>> holders_;  ///< by stream: registers that may hold its handle
};

}  // namespace

bool TakesBytes(const ptx::Function& function, std::initializer_list<std::uint64_t> bytes) {
  const auto is_word = [](const ptx::Variable& result) { return result.bytes() == 4 && result.dims.empty(); };
  return function.returns.size() == 1 && is_word(function.returns[0]) && !function.variadic_param &&
         std::ranges::equal(function.params, bytes, {}, [](const ptx::Variable& param) { return param.bytes(); });
}

bool KeepsHandles(const ThreadMemory::Use& use) {
  return use.wild == nullptr && std::ranges::none_of(use.loose, [](const LooseAccess& access) {
           return access.writes && access.bytes >= kHandleBytes;
         });
}

RuntimeCall RuntimeCallOf(std::string_view function) {
  const std::string_view name = Behind(function);
  const auto* const found = std::ranges::find(kFunctions, name, &RuntimeFunction::name);
  return name.empty() || found == std::end(kFunctions) ? RuntimeCall::kNone : found->call;
}

bool IsOfRuntime(std::string_view function) { return !Behind(function).empty() || function.starts_with("cnp"); }

std::string PublicName(std::string_view function) {
  const std::string_view name = Behind(function);
  return name.empty() ? std::string(function) : "cuda" + std::string(name);
}

StreamArgument StreamArgumentOf(RuntimeCall call) {
  switch (call) {
    case RuntimeCall::kCreateStream: return {.number = 0, .arguments = 2};
    case RuntimeCall::kDestroyStream: return {.number = 0, .arguments = 1};
    case RuntimeCall::kLaunch: return {.number = 5, .arguments = 6};
    case RuntimeCall::kLaunchBuffer: return {.number = 1, .arguments = 2};
    default: return {};
  }
}

StreamHandles::StreamHandles(const Cfg& cfg) : cfg_(cfg), memory_(cfg, Written) {
  const auto calls = [](const analysis::CfgInstruction& at) {
    return StreamArgumentOf(CallOf(*at.instruction)).arguments != 0;
  };
  if (std::ranges::any_of(cfg.instructions(), calls)) HandleFinder(cfg_, memory_, *this, uses_, made_).Run();
}

bool StreamHandles::IsSequence(std::uint32_t call) const {
  const Instruction& instruction = *cfg_.instructions()[call].instruction;
  for (const Operand* const list : {ResultsOf(instruction), ArgumentsOf(instruction)}) {
    const bool results = list != nullptr && list == ResultsOf(instruction);
    for (std::size_t n = 0; list != nullptr && n < list->elements.size(); ++n) {
      const ptx::Variable* const variable = list->elements[n].variable;
      if (list->elements[n].kind != OperandKind::kSymbol || variable == nullptr) continue;
      if (memory_.CallsWith(*variable).size() != 1 || !OnlyPasses(*variable, results)) return false;
    }
  }
  return true;
}

/// Whether values are only stored to the .param variable, or results only loaded from it, besides the calls that it is
/// an operand of.
bool StreamHandles::OnlyPasses(const ptx::Variable& variable, bool result) const {
  const auto is_it = [&](const ptx::Variable& one) { return &one == &variable; };
  const ptx::Function& function = cfg_.function();
  if (std::ranges::any_of(function.params, is_it) || std::ranges::any_of(function.returns, is_it)) return false;
  return std::ranges::all_of(cfg_.instructions(), [&](const analysis::CfgInstruction& at) {
    const Instruction& instruction = *at.instruction;
    if (instruction.Has(ptx::Trait::kCalls)) return true;
    bool in_address = false, elsewhere = false;
    for (const Operand& operand : instruction.operands) {
      ptx::VisitOperand(operand, [&](const Operand& one) {
        if (one.variable == &variable) (operand.kind == OperandKind::kAddress ? in_address : elsewhere) = true;
      });
    }
    if (elsewhere || !in_address) return !elsewhere;
    if (!result) return instruction.opcode == Opcode::kSt;
    const Operand& to = instruction.operands[0];
    const bool whole =
        to.kind == OperandKind::kRegister && to.variable != nullptr && to.element == 0 && to.variable->vector == 1;
    const unsigned bits = whole ? ptx::BitsOf(to.variable->type) : 0;
    return instruction.opcode == Opcode::kLd && (bits == 32 || bits == 64);
  });
}

}  // namespace gridloom::passes
