#include "rewriter/passes/cta_index.h"

#include <algorithm>
#include <array>
#include <string>

#include "rewriter/analysis/cfg.h"
#include "rewriter/passes/edit.h"
#include "rewriter/ptx/form.h"
#include "rewriter/ptx/special.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {
namespace {

using analysis::NodeId;
using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;
using ptx::ScalarType;
using ptx::Statement;

struct ValueInfo {
  std::string_view special, param;
};
constexpr ValueInfo kValueInfo[] = {
#define X(id, special, param) {special, param},
    GL_CTA_VALUES(X)
#undef X
};
const ValueInfo& Info(CtaValue value) { return kValueInfo[static_cast<std::size_t>(value)]; }
bool Has(const CtaValues& values, CtaValue value) { return values[static_cast<std::size_t>(value)]; }
bool IsWide(CtaValue value) { return value == CtaValue::kGridId; }

template <typename Visit>
void ForEachValue(const CtaValues& values, const Visit& visit) {
  for (std::size_t i = 0; i < kCtaValues; ++i) {
    if (values[i]) visit(static_cast<CtaValue>(i));
  }
}

/// The values an operand itself stands for: one for "%ctaid.y", x, y and z for the vector "%ctaid".
CtaValues ValuesOf(const Operand& operand) {
  CtaValues values;
  if (operand.kind != OperandKind::kSpecial) return values;
  const auto ref = ptx::SpecialFromText(operand.text);
  if (!ref) return values;
  if (ref->special == ptx::Special::kGridid) values.set(static_cast<std::size_t>(CtaValue::kGridId));
  const bool cta = ref->special == ptx::Special::kCtaid;
  if (!cta && ref->special != ptx::Special::kNctaid) return values;
  const std::size_t first = static_cast<std::size_t>(cta ? CtaValue::kCtaX : CtaValue::kGridX);
  for (std::size_t i = 0; i < 3; ++i) {
    if (ref->component == 0 || ref->component == "xyz"[i]) values.set(first + i);
  }
  return values;
}

CtaValues ValuesIn(const Instruction& instruction) {
  CtaValues values;
  for (const Operand& operand : instruction.operands) {
    ptx::VisitOperand(const_cast<Operand&>(operand), [&](const Operand& one) { values |= ValuesOf(one); });
  }
  return values;
}

/// What a call passes on: what its callee needs, or all functions it may reach.
CtaValues PassedBy(const Instruction& call, const analysis::CallGraph& calls, const CtaValueNeeds& needs) {
  const Operand* const target = analysis::CallTargetOf(call);
  if (target == nullptr) return {};
  if (target->kind != OperandKind::kSymbol) return needs.of_pointers();
  if (target->function == nullptr) return {};
  const NodeId node = calls.NodeOf(*target->function);
  return node == analysis::kNoNode ? CtaValues() : needs.of(node);
}

}  // namespace

CtaValues ReadValues(const ptx::Function& function) {
  CtaValues values;
  if (function.body == nullptr) return values;
  ptx::VisitStatements(*function.body, [&](Statement& statement) {
    if (const auto* instruction = std::get_if<Instruction>(&statement)) values |= ValuesIn(*instruction);
  });
  return values;
}

// A fixed point: values only ever join, and the pointers' set flows back into the functions that have it.
CtaValueNeeds::CtaValueNeeds(const ptx::Module& module, const analysis::CallGraph& calls) : needs_(calls.size()) {
  for (NodeId node = 0; node < calls.size(); ++node) needs_[node] = ReadValues(calls.function(node));
  bool changed = true;
  const auto join = [&changed](CtaValues& into, const CtaValues& more) {
    if ((into | more) == into) return;
    into |= more;
    changed = true;
  };
  while (changed) {
    changed = false;
    for (NodeId node = 0; node < calls.size(); ++node) {
      if (calls.IsAddressTaken(node) && !calls.function(node).is_entry) {
        join(pointers_, needs_[node]);
        join(needs_[node], pointers_);
      }
      for (const analysis::CallSite& call : calls.calls(node)) {
        if (call.indirect) join(needs_[node], pointers_);
        for (const NodeId callee : call.callees) join(needs_[node], needs_[callee]);
      }
    }
    // A .calltargets list may name functions whose address is taken nowhere else: they are called as the others are.
    for (NodeId node = 0; node < calls.size(); ++node) {
      for (const analysis::CallSite& call : calls.calls(node)) {
        if (!call.indirect) continue;
        for (const NodeId callee : call.callees) {
          join(pointers_, needs_[callee]);
          join(needs_[callee], pointers_);
        }
      }
    }
  }
}

std::vector<HiddenRole> RolesFor(const CtaValues& values) {
  using enum HiddenRole;
  const bool z = Has(values, CtaValue::kCtaZ), y = z || Has(values, CtaValue::kCtaY),
             x = y || Has(values, CtaValue::kCtaX);
  const std::pair<HiddenRole, bool> wanted[] = {
      {kFirstCtaX, x},
      {kFirstCtaY, y},
      {kFirstCtaZ, z},
      {kGridX, Has(values, CtaValue::kGridX) || Has(values, CtaValue::kCtaX)},
      {kGridY, Has(values, CtaValue::kGridY) || Has(values, CtaValue::kCtaY)},
      {kGridZ, Has(values, CtaValue::kGridZ)},
      {kReciprocalX, x},
      {kShiftX, x},
      {kReciprocalY, y},
      {kShiftY, y},
      {kGridId, Has(values, CtaValue::kGridId)},
  };
  std::vector<HiddenRole> roles;
  for (const auto& [role, is_wanted] : wanted) {
    if (is_wanted) roles.push_back(role);
  }
  return roles;
}

void AppendValueParams(ptx::Module& module, std::deque<ptx::Variable>& params, const CtaValues& values,
                       std::string_view function) {
  ForEachValue(values, [&](CtaValue value) {
    ptx::Variable& param = params.emplace_back();
    param.name = function.empty()
                     ? std::string_view("_")
                     : module.strings.Intern(std::string(function) + "_gl_" + std::string(Info(value).param));
    param.space = ptx::StateSpace::kParam;
    param.type = IsWide(value) ? ScalarType::kB64 : ScalarType::kB32;
  });
}

namespace {

/// Rewrites one function. Registers are made when they are first needed, and shared by all replacements: each is
/// written right before it is read, so that none lives longer than one of them.
class IndexRewriter {
 public:
  IndexRewriter(ptx::Module& module, ptx::Function& function, ValueSource source, const analysis::CallGraph& calls,
                const CtaValueNeeds& needs)
      : editor_(module, function), function_(function), source_(source), calls_(calls), needs_(needs) {}

  void Run() {
    EditStatements(*function_.body, [this](Statement& statement, Replacement& replacement) {
      if (auto* instruction = std::get_if<Instruction>(&statement)) Rewrite(*instruction, replacement);
    });
  }

 private:
  void Rewrite(Instruction& instruction, Replacement& replacement);
  void ReplaceOperands(Instruction& instruction, Replacement& replacement);
  void ReplaceVectorMove(const Instruction& move, Replacement& replacement);
  void PassValues(Instruction& call, const CtaValues& values, Replacement& replacement);

  std::string Compute(CtaValue value, const std::string& to);
  std::string Load(const std::string& to, HiddenRole role);
  std::string Divide(HiddenRole reciprocal, HiddenRole shift);
  std::string Remainder(const std::string& to, HiddenRole divisor);
  std::string ParamName(std::string_view suffix) const;

  void Emit(Replacement& replacement, const std::string& text, SourceLoc loc) {
    for (Statement& statement : editor_.Text(text, loc)) replacement.before.push_back(std::move(statement));
  }
  const std::string& Register(std::string& name, ScalarType type, std::string_view hint) {
    if (name.empty()) name = editor_.NewRegister(type, hint);
    return name;
  }
  const std::string& Value(CtaValue value) {
    return Register(values_[static_cast<std::size_t>(value)], IsWide(value) ? ScalarType::kU64 : ScalarType::kU32,
                    Info(value).param);
  }
  /// Older PTX reads them narrower: 16 bits of %ctaid and %nctaid (1.x), 32 of %gridid (1.x, 2.x). `name` becomes the
  /// narrow register.
  std::string Narrow(CtaValue value, std::string& name) {
    std::string& narrow = narrow_[static_cast<std::size_t>(value)];
    Register(narrow, IsWide(value) ? ScalarType::kU32 : ScalarType::kU16, std::string(Info(value).param) + "_narrow");
    const std::string text = (IsWide(value) ? "cvt.u32.u64 " : "cvt.u16.u32 ") + narrow + ", " + name + ";\n";
    name = narrow;
    return text;
  }
  const std::string& n() { return Register(n_, ScalarType::kU32, "n"); }
  const std::string& q() { return Register(q_, ScalarType::kU32, "q"); }
  const std::string& a() { return Register(a_, ScalarType::kU32, "a"); }

  FunctionEditor editor_;
  ptx::Function& function_;
  const ValueSource source_;
  const analysis::CallGraph& calls_;
  const CtaValueNeeds& needs_;
  std::array<std::string, kCtaValues> values_, narrow_;
  std::string n_, q_, a_;
};

void IndexRewriter::Rewrite(Instruction& instruction, Replacement& replacement) {
  if (source_ != ValueSource::kSpecial && ValuesIn(instruction).any()) ReplaceOperands(instruction, replacement);
  if (const CtaValues passed = PassedBy(instruction, calls_, needs_); passed.any())
    PassValues(instruction, passed, replacement);
}

/// The operand is "%ctaid" whole.
bool IsVector(const Operand& operand) { return ValuesOf(operand).count() == 3; }

void IndexRewriter::ReplaceOperands(Instruction& instruction, Replacement& replacement) {
  // mov.u32 %r1, %ctaid.x: computed right into %r1.
  const bool move = instruction.info().cls == ptx::OpClass::kMove && instruction.operands.size() == 2;
  if (move && IsVector(instruction.operands[1])) return ReplaceVectorMove(instruction, replacement);
  const bool plain = move && !instruction.guard && instruction.operands[0].kind == OperandKind::kRegister &&
                     instruction.operands[0].element == 0 && instruction.operands[0].variable->vector == 1;
  const CtaValues only = move ? ValuesOf(instruction.operands[1]) : CtaValues();
  const ptx::Symbol to = plain ? editor_.Find(instruction.operands[0].text) : ptx::Symbol();
  if (plain && only.count() == 1 && to.variable == instruction.operands[0].variable &&
      to.index == instruction.operands[0].index) {
    CtaValue value{};
    ForEachValue(only, [&](CtaValue one) { value = one; });
    if (ptx::BitsOf(instruction.type()) == (IsWide(value) ? 64u : 32u) &&
        ptx::BitsOf(to.variable->type) == ptx::BitsOf(instruction.type()) && !ptx::IsFloat(to.variable->type)) {
      Emit(replacement, Compute(value, std::string(instruction.operands[0].text)), instruction.loc);
      replacement.drop = true;
      return;
    }
  }
  const ptx::Form* const form = ptx::FormOf(instruction);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const ptx::OperandForm* const wanted = form != nullptr ? form->At(i, instruction.operands.size()) : nullptr;
    const unsigned bits = wanted != nullptr ? ptx::BitsOf(ptx::TypeOf(*wanted, instruction)) : 32;
    ptx::VisitOperand(instruction.operands[i], [&](Operand& operand) {
      ForEachValue(ValuesOf(operand), [&](CtaValue value) {
        std::string name = Value(value);
        std::string text = Compute(value, name);
        if (bits == (IsWide(value) ? 32 : 16)) text += Narrow(value, name);
        Emit(replacement, text, instruction.loc);
        Operand read = RegisterOperand(*editor_.Find(name).variable);
        read.loc = operand.loc;
        operand = std::move(read);
      });
    });
  }
}

// mov.v4.u32 {%r1, %r2, %r3, %r4}, %ctaid;  the fourth is 0 (ISA 10.5, 10.6). The destination may be one vector
//                                           register.
void IndexRewriter::ReplaceVectorMove(const Instruction& move, Replacement& replacement) {
  const Operand& to = move.operands[0];
  const bool half = ptx::BitsOf(move.type()) == 16;
  const std::string type = "mov." + std::string(ptx::Info(move.type()).text);
  const CtaValues values = ValuesOf(move.operands[1]);
  std::array<std::string, 4> from = {"", "", "", "0"};
  std::size_t component = 0;
  ForEachValue(values, [&](CtaValue value) {
    std::string name = Value(value);
    std::string text = Compute(value, name);
    if (half) text += Narrow(value, name);
    Emit(replacement, text, move.loc);
    from[component++] = name;
  });
  const std::size_t count = to.kind == OperandKind::kVector ? to.elements.size() : to.variable->vector;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 4); ++i) {
    if (to.kind == OperandKind::kVector && to.elements[i].kind == OperandKind::kSink) continue;
    // The destination is copied as it is: the name alone would not find one of an inner scope.
    auto made = editor_.Text(type + " " + from[0] + ", " + from[i] + ";", move.loc);
    auto& instruction = std::get<Instruction>(made.front());
    instruction.guard = move.guard;
    if (to.kind == OperandKind::kVector) {
      instruction.operands[0] = to.elements[i];
    } else {
      instruction.operands[0] = to;
      instruction.operands[0].element = "xyzw"[i];
    }
    replacement.before.push_back(std::move(made.front()));
  }
  replacement.drop = true;
}

void IndexRewriter::PassValues(Instruction& call, const CtaValues& values, Replacement& replacement) {
  // call (results), function, (arguments), targets: the list of arguments stands right behind the function.
  const Operand* const target = analysis::CallTargetOf(call);
  std::size_t at = static_cast<std::size_t>(target - call.operands.data()) + 1;
  if (at == call.operands.size() || call.operands[at].kind != OperandKind::kList) {
    Operand list;
    list.kind = OperandKind::kList;
    list.loc = call.loc;
    call.operands.insert(call.operands.begin() + static_cast<std::ptrdiff_t>(at), std::move(list));
  }
  ForEachValue(values, [&](CtaValue value) {
    Emit(replacement, Compute(value, Value(value)), call.loc);
    Operand argument = RegisterOperand(*editor_.Find(Value(value)).variable);
    argument.loc = call.loc;
    call.operands[at].elements.push_back(std::move(argument));
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Index rectification (Kernelet, section 4.1): the CTA's number in its slice, plus the first CTA's index, with carries.
// ---------------------------------------------------------------------------------------------------------------------

std::string IndexRewriter::ParamName(std::string_view suffix) const {
  const auto it = std::ranges::find_if(function_.params, [&](const ptx::Variable& param) {
    return param.name.starts_with(std::string(function_.name) + "_gl_" + std::string(suffix)) &&
           param.name.find_first_not_of('_', function_.name.size() + 4 + suffix.size()) == std::string_view::npos;
  });
  return std::string(it->name);
}

std::string IndexRewriter::Load(const std::string& to, HiddenRole role) {
  const auto& info = passes::Info(role);
  return "ld.param.u" + std::to_string(info.bytes * 8) + " " + to + ", [" + ParamName(info.text) + "];\n";
}

/// %q = %n / divisor (slice_range.h, Reciprocal).
std::string IndexRewriter::Divide(HiddenRole reciprocal, HiddenRole shift) {
  return "shl.b32 " + q() + ", " + n() + ", 1;\n" + Load(a(), reciprocal) + "mul.hi.u32 " + q() + ", " + q() + ", " +
         a() + ";\n" + Load(a(), shift) + "shr.u32 " + q() + ", " + q() + ", " + a() + ";\n";
}

/// to = %n - %q * divisor.
std::string IndexRewriter::Remainder(const std::string& to, HiddenRole divisor) {
  return Load(a(), divisor) + "mul.lo.u32 " + q() + ", " + q() + ", " + a() + ";\nsub.u32 " + to + ", " + n() + ", " +
         q() + ";\n";
}

std::string IndexRewriter::Compute(CtaValue value, const std::string& to) {
  using enum HiddenRole;
  const std::string bits = IsWide(value) ? "64 " : "32 ";
  if (source_ == ValueSource::kSpecial) return "mov.u" + bits + to + ", " + std::string(Info(value).special) + ";\n";
  if (source_ == ValueSource::kParameter)
    return "ld.param.u" + bits + to + ", [" + ParamName(Info(value).param) + "];\n";
  switch (value) {
    case CtaValue::kGridX: return Load(to, kGridX);
    case CtaValue::kGridY: return Load(to, kGridY);
    case CtaValue::kGridZ: return Load(to, kGridZ);
    case CtaValue::kGridId: return Load(to, kGridId);
    default: break;
  }
  // They are declared in this order. In which a compiler calls the parts of the sums below is its own choice.
  a();
  q();
  n();
  std::string text = "mov.u32 " + n() + ", %ctaid.x;\n" + Load(a(), kFirstCtaX) + "add.u32 " + n() + ", " + n() + ", " +
                     a() + ";\n" + Divide(kReciprocalX, kShiftX);
  if (value == CtaValue::kCtaX) return text + Remainder(to, kGridX);
  text += Load(a(), kFirstCtaY) + "add.u32 " + n() + ", " + q() + ", " + a() + ";\n" + Divide(kReciprocalY, kShiftY);
  if (value == CtaValue::kCtaY) return text + Remainder(to, kGridY);
  return text + Load(a(), kFirstCtaZ) + "add.u32 " + to + ", " + q() + ", " + a() + ";\n";
}

}  // namespace

void RewriteIndexReads(ptx::Module& module, ptx::Function& function, ValueSource source,
                       const analysis::CallGraph& calls, const CtaValueNeeds& needs) {
  IndexRewriter(module, function, source, calls, needs).Run();
}

}  // namespace gridloom::passes
