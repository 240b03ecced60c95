// Instructions against the instruction table: modifiers, types, PTX version and target, number of operands.
#include <algorithm>

#include "rewriter/ptx/forms_parse.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier_impl.h"
#include "rewriter/ptx/word_rules.h"

namespace gridloom::ptx {
namespace {

// The state space a load or store of this instruction may not have.
bool IsWritable(StateSpace space) { return space != StateSpace::kConst && space != StateSpace::kParamEntry; }

bool HasSpace(const Instruction& instruction) { return instruction.space() != StateSpace::kNone; }

// What is wrong with an instruction beyond its words and operands, or nothing.

// A scalar video instruction puts its result into a part of c, or combines it with c; and +1 of .po belongs to a sum of
// which nothing is negated (ISA 9.7.20, vadd and vmad).
std::string FaultOfVideo(const Instruction& instruction) {
  const std::span<const Operand> operands = instruction.operands;
  if (instruction.info().cls != OpClass::kVideo || operands.empty()) return "";
  const bool combines = instruction.Has(Mod::kAdd) || instruction.Has(Mod::kMin) || instruction.Has(Mod::kMax);
  const bool is_scalar = !instruction.name.ends_with('2') && !instruction.name.ends_with('4');
  if (is_scalar && combines && !operands.front().selector.empty())
    return "writes a whole register where the result is combined with another";
  const bool negates = std::ranges::find(operands, true, &Operand::minus) != operands.end();
  return instruction.Has(Mod::kPo) && negates ? "has operands without '-' with .po" : "";
}

// A bulk copy names where it goes and then where it comes from; to shared memory it tells a barrier, to global memory
// it is of a group (ISA 9.7.9.25). What is in shared memory of the cluster is no source.
std::string FaultOfBulkCopy(const Instruction& instruction) {
  const bool tells = instruction.Has(Mod::kMbarrierCompleteTxBytes);
  if (instruction.opcode != Opcode::kCp || (!tells && !instruction.Has(Mod::kBulkGroup))) return "";
  const auto& modifiers = instruction.modifiers;
  const auto to = std::ranges::find(modifiers, Mod::kSpace, &Modifier::mod);
  if (to == modifiers.end()) return "";
  const auto from = std::find_if(to + 1, modifiers.end(), [](const Modifier& m) { return m.mod == Mod::kSpace; });
  const bool from_cluster = from != modifiers.end() && from->text == "shared::cluster";
  if ((to->text == "global") != tells && !from_cluster) return "";
  return "does not copy to '." + std::string(to->text) + "' with " +
         (from_cluster ? ".shared::cluster behind it"
          : tells      ? "a barrier"
                       : "a group");
}

// Operands that words of the instruction bring: a cache policy, masks, offsets of im2col.
std::size_t OperandsOfWords(const Instruction& instruction) {
  constexpr std::string_view kBring[] = {"L2::cache_hint", "multicast::cluster", "multicast::cluster::16b", "cp_mask",
                                         "im2col",         "im2col::w",          "im2col::w::128"};
  return static_cast<std::size_t>(std::ranges::count_if(instruction.modifiers, [&](const Modifier& modifier) {
    return std::ranges::find(kBring, modifier.text) != std::end(kBring);
  }));
}

// cp.async copies 4, 8 or 16 bytes, past L1 16 (ISA 9.7.9.25.3.1).
std::string FaultOfCopySize(const Instruction& instruction) {
  const bool past_l1 = HasText(instruction, "cg");
  if (instruction.opcode != Opcode::kCp || (!past_l1 && !HasText(instruction, "ca")) ||
      instruction.operands.size() < 3 || instruction.operands[2].kind != OperandKind::kInt)
    return "";
  const auto bytes = instruction.operands[2].int_literal.value;
  return bytes == 16 || (!past_l1 && (bytes == 4 || bytes == 8)) ? "" : "does not copy so many bytes";
}

/// How many operands an instruction has at most that has no cache policy; SIZE_MAX: its form says so.
std::size_t MostWithoutPolicy(const Instruction& instruction) {
  if (HasText(instruction, "async") || HasText(instruction, "bulk")) return SIZE_MAX;
  switch (instruction.opcode) {
    case Opcode::kAtom: return instruction.Has(Mod::kCas) ? 4 : 3;
    case Opcode::kRed:
    case Opcode::kLd:
    case Opcode::kSt: return 2;
    default: return SIZE_MAX;
  }
}

// A cache policy is the last operand but for a mask of bytes, of 64 bits (ISA 9.7.9.2).
std::string FaultOfPolicy(const Instruction& instruction) {
  const std::size_t behind = HasText(instruction, "cp_mask") ? 2 : 1;
  if (instruction.operands.size() < behind) return "";
  const Operand& last = instruction.operands[instruction.operands.size() - behind];
  const bool is_register = last.kind == OperandKind::kRegister && last.variable != nullptr;
  const bool is_long = is_register && BitsOf(last.variable->type) == 64;
  if (HasText(instruction, "L2::cache_hint"))
    return !is_register || is_long ? "" : "has a cache policy that is not of 64 bits";
  return instruction.operands.size() > MostWithoutPolicy(instruction) || (instruction.opcode == Opcode::kCp && is_long)
             ? "has a cache policy without .L2::cache_hint"
             : "";
}

// A thread sees the phase of its own CTA's barrier alone (ISA 9.7.13.15).
std::string FaultOfRemoteArrival(const Instruction& instruction) {
  const bool is_remote = instruction.opcode == Opcode::kMbarrier && HasText(instruction, "shared::cluster") &&
                         (HasText(instruction, "arrive") || HasText(instruction, "arrive_drop"));
  return is_remote && !instruction.operands.empty() && instruction.operands[0].kind == OperandKind::kRegister
             ? "gives no state of a barrier in .shared::cluster"
             : "";
}

// red.async tells a barrier of its cluster, or is a release to global memory (ISA 9.7.13.7).
std::string FaultOfRedAsync(const Instruction& instruction) {
  if (instruction.opcode != Opcode::kRed || !HasText(instruction, "async")) return "";
  const auto has = [&](std::string_view word) { return HasText(instruction, word); };
  if (has("mbarrier::complete_tx::bytes")) return has("relaxed") && has("cluster") ? "" : "needs .relaxed.cluster";
  if (has("shared") || has("shared::cta") || has("shared::cluster")) return "works on global memory";
  if (has("cta") || has("cluster")) return "needs .gpu or .sys";
  return has("mmio") && !has("sys") ? "needs .sys with .mmio" : "";
}

// There are 16 barriers, and whole warps come to them (ISA 9.7.13.1).
std::string FaultOfBarrier(const Instruction& instruction) {
  const bool counts = instruction.opcode == Opcode::kBar || instruction.opcode == Opcode::kBarrier;
  if (!counts || HasText(instruction, "warp") || HasText(instruction, "cluster")) return "";
  const bool reduces = HasText(instruction, "red");
  const auto constant = [&](std::size_t i) -> const Operand* {
    const std::size_t at = i + (reduces ? 1 : 0);
    const bool is_there = at < instruction.operands.size() && instruction.operands[at].kind == OperandKind::kInt;
    return is_there ? &instruction.operands[at] : nullptr;
  };
  if (const Operand* const number = constant(0); number != nullptr && number->int_literal.value > 15)
    return "has a barrier beyond number 15";
  if (const Operand* const threads = constant(1); threads != nullptr && threads->int_literal.value % 32 != 0)
    return "has a number of threads that is no multiple of 32";
  return "";
}

// Lanes of a warp have gone their own ways since sm_70; who takes part has to be said from PTX 6.4 on (ISA 9.7.9.5).
std::string FaultOfMissingSync(const Instruction& instruction, unsigned ptx, unsigned sm) {
  const bool exchanges = instruction.opcode == Opcode::kVote || instruction.opcode == Opcode::kShfl;
  return exchanges && ptx >= 64 && sm >= 70 && !HasText(instruction, "sync") ? "needs .sync on sm_70 and later" : "";
}

// mma has A in rows and B in columns, but for m8n8k4 of halves, which has all four layouts (ISA 9.7.15).
std::string FaultOfLayouts(const Instruction& instruction) {
  if (instruction.opcode != Opcode::kMma) return "";
  const auto& modifiers = instruction.modifiers;
  const auto is_layout = [](const Modifier& m) { return m.mod == Mod::kRow || m.mod == Mod::kCol; };
  const auto layout = std::ranges::find_if(modifiers, is_layout);
  if (layout == modifiers.end() || layout->mod == Mod::kRow) return "";
  const bool is_m8n8k4 = std::ranges::find(modifiers, "m8n8k4", &Modifier::text) != modifiers.end();
  return is_m8n8k4 && instruction.type(1) == ScalarType::kF16 ? "" : "has '.col' for A, which is '.row'";
}

// wmma of halves has four registers of an accumulator of halves and eight of one of f32 (ISA 9.7.14.4.1).
std::string FaultOfHalves(const Instruction& instruction) {
  if (instruction.opcode != Opcode::kWmma || !HasText(instruction, "mma") || instruction.operands.size() != 4 ||
      instruction.type(1) == ScalarType::kNone || instruction.type(2) != ScalarType::kNone)
    return "";
  const auto fits = [&](std::size_t type, std::size_t operand) {
    const Operand& fragment = instruction.operands[operand];
    const std::size_t registers = instruction.type(type) == ScalarType::kF16 ? 4 : 8;
    return fragment.kind != OperandKind::kVector || fragment.elements.size() == registers;
  };
  return fits(0, 0) && fits(1, 3) ? "" : "has an accumulator of another size";
}

}  // namespace

void Verifier::VerifyInstruction(const Instruction& instruction) {
  VerifyGuard(instruction);
  if (instruction.opcode == Opcode::kUnknown) {
    return UnknownWord(instruction.loc, "unknown instruction '" + std::string(instruction.name) + "'");
  }
  if (!VerifyModifiers(instruction)) return;
  for (const Operand& operand : instruction.operands) {
    if (!VerifyUndefined(operand)) return;
  }
  if (instruction.Has(Trait::kCalls)) return VerifyCall(instruction);
  if (!VerifyComparison(instruction) || !VerifyNoftz(instruction)) return;
  for (const auto& fault_of : {FaultOfVideo, FaultOfBulkCopy, FaultOfCopySize, FaultOfPolicy, FaultOfRemoteArrival,
                               FaultOfRedAsync, FaultOfBarrier, FaultOfLayouts, FaultOfHalves}) {
    const std::string fault = fault_of(instruction);
    if (!fault.empty()) return Error(instruction.loc, "'" + instruction.FullName() + "' " + fault);
  }
  const std::string unsynced = FaultOfMissingSync(instruction, ptx_, target_.sm);
  if (!unsynced.empty()) return Error(instruction.loc, "'" + instruction.FullName() + "' " + unsynced);
  in_doubt_ = ptx_ > kNewestPtx && !strict_;
  VerifyForm(instruction);
  in_doubt_ = false;
}

void Verifier::VerifyForm(const Instruction& instruction) {
  const Form* form = FormOf(instruction);
  if (form == nullptr || !VerifyTypes(instruction, *form)) return;
  CheckNeeds(
      instruction.loc, [&] { return instruction.FullName(); }, NeedsOf(instruction, *form));
  if (VerifyCount(instruction, *form) && VerifySpace(instruction)) VerifyOperands(instruction, *form);
}

// guard := '@' '!'? predicate register
void Verifier::VerifyGuard(const Instruction& instruction) {
  if (!instruction.guard) return;
  const Guard& guard = *instruction.guard;
  if (guard.predicate == nullptr) {
    Error(guard.loc, "undefined predicate '" + std::string(guard.text) + "'");
  } else if (guard.predicate->type != ScalarType::kPred) {
    Error(guard.loc, "expected a predicate after '@', found '" + std::string(guard.text) + "' of type ." +
                         std::string(Info(guard.predicate->type).text));
  }
}

bool Verifier::VerifyModifiers(const Instruction& instruction) {
  if (const Modifier* unknown = UnknownModifierOf(instruction)) {
    UnknownWord(instruction.loc,
                "unknown modifier '." + std::string(unknown->text) + "' of " + std::string(instruction.name));
    return false;
  }
  const std::string wrong = WrongWordsOf(instruction, ptx_);
  if (wrong.empty()) return true;
  const std::string message = "'" + instruction.FullName() + "' " + wrong;
  if (strict_) sink_.Error(instruction.loc, message);
  else sink_.Warning(instruction.loc, message);
  return !strict_;
}

// Bits are compared for equality alone, and what is below or above differs for each kind of number (ISA 9.7.6).
bool Verifier::VerifyComparison(const Instruction& instruction) {
  if (instruction.opcode != Opcode::kSetp && instruction.opcode != Opcode::kSet) return true;
  const ScalarType type = instruction.type(instruction.opcode == Opcode::kSet ? 1 : 0);
  const auto has = [&](std::initializer_list<Mod> mods) {
    return std::ranges::any_of(mods, [&](Mod mod) { return instruction.Has(mod); });
  };
  const bool orders = has({Mod::kLt, Mod::kLe, Mod::kGt, Mod::kGe});
  const bool of_unsigned = has({Mod::kLo, Mod::kLs, Mod::kHi, Mod::kHs});
  const bool of_floats =
      has({Mod::kEqu, Mod::kNeu, Mod::kLtu, Mod::kLeu, Mod::kGtu, Mod::kGeu, Mod::kNum, Mod::kNanCmp});
  const bool fits = IsFloat(type) ? !of_unsigned
                                  : !of_floats && (IsUnsigned(type) || !of_unsigned) &&
                                        (IsUnsigned(type) || IsSigned(type) || !orders);
  if (fits || type == ScalarType::kNone) return true;
  Error(instruction.loc,
        "'" + instruction.FullName() + "': numbers of type ." + std::string(Info(type).text) + " are not compared so");
  return false;
}

// What adds or compares 16-bit numbers in memory keeps subnormal ones, and has to say so.
bool Verifier::VerifyNoftz(const Instruction& instruction) {
  const bool reduces = instruction.opcode == Opcode::kAtom || instruction.opcode == Opcode::kRed ||
                       (instruction.opcode == Opcode::kCp && instruction.Has(Mod::kAdd));
  const ScalarType type = instruction.type();
  const bool is_short = type == ScalarType::kF16 || type == ScalarType::kF16x2 || type == ScalarType::kBF16 ||
                        type == ScalarType::kBF16x2;
  if (!reduces || !is_short || instruction.Has(Mod::kNoftz)) return true;
  Error(instruction.loc, "'" + instruction.FullName() + "' needs .noftz");
  return false;
}

bool Verifier::VerifyTypes(const Instruction& instruction, const Form& form) {
  for (const OperandForm& operand : form.operands) {
    const bool from_modifier = operand.rule == TypeRule::kModifier || operand.rule == TypeRule::kWide;
    if (!from_modifier || TypeOf(operand, instruction) != ScalarType::kNone) continue;
    Error(instruction.loc,
          "'" + instruction.FullName() + "' needs " + (operand.modifier == 0 ? "a type" : "another type"));
    return false;
  }
  for (std::size_t i = 0; i < form.types.size(); ++i) {
    const ScalarType type = instruction.type(i);
    if (type == ScalarType::kNone) {
      Error(instruction.loc, "'" + instruction.FullName() + "' needs " + (i == 0 ? "a type" : "another type"));
      return false;
    }
    if (std::ranges::find(form.types[i], type) != form.types[i].end()) continue;
    Error(instruction.loc, "'" + instruction.FullName() + "': " + std::string(instruction.name) + " has no type ." +
                               std::string(Info(type).text));
    return false;
  }
  return true;
}

bool Verifier::VerifyCount(const Instruction& instruction, const Form& form) {
  const std::size_t most = form.operands.size(), count = instruction.operands.size();
  // The second operation of a video instruction needs its third operand.
  const bool secondary = instruction.info().cls == OpClass::kVideo &&
                         (instruction.Has(Mod::kAdd) || instruction.Has(Mod::kMin) || instruction.Has(Mod::kMax));
  const std::size_t least = secondary ? most : std::min(form.min_operands() + OperandsOfWords(instruction), most);
  if (count >= least && count <= most) return true;
  Error(instruction.loc, "'" + instruction.FullName() + "' takes " + std::to_string(least) +
                             (least != most ? " to " + std::to_string(most) : "") + " operands, found " +
                             std::to_string(count));
  return false;
}

bool Verifier::VerifySpace(const Instruction& instruction) {
  const OpClass cls = instruction.info().cls;
  const StateSpace space = instruction.space();
  const bool writes = cls == OpClass::kStore || cls == OpClass::kAtomic;
  if (writes && HasSpace(instruction) && !IsWritable(space)) {
    Error(instruction.loc,
          "'" + instruction.FullName() + "' cannot write to state space ." + std::string(TextOf(space)));
    return false;
  }
  if (cls == OpClass::kAtomic && (space == StateSpace::kLocal || space == StateSpace::kParam)) {
    Error(instruction.loc, "no atomic operations in state space ." + std::string(TextOf(space)));
    return false;
  }
  return true;
}

void Verifier::VerifyOperands(const Instruction& instruction, const Form& form) {
  const std::size_t count = instruction.operands.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!VerifyOperand(instruction, *form.At(i, count), instruction.operands[i])) return;
  }
}

// Names nobody declares, wherever they stand in the operand.
bool Verifier::VerifyUndefined(const Operand& operand) {
  if (operand.kind == OperandKind::kName && operand.directive == nullptr) {
    const bool is_register = operand.text.starts_with('%');
    if (is_register && ptx_ > kNewestPtx && !strict_) {
      sink_.Warning(operand.loc, "unknown register '" + std::string(operand.text) + "'");
      return false;
    }
    return Fail(operand, std::string("undefined ") + (is_register ? "register" : "name") + " '" +
                             std::string(operand.text) + "'");
  }
  const auto defined = [this](const Operand& inner) { return VerifyUndefined(inner); };
  if (!std::ranges::all_of(operand.elements, defined)) return false;
  if (operand.address == nullptr) return true;
  return std::ranges::all_of(operand.address->base, defined) && std::ranges::all_of(operand.address->elements, defined);
}

}  // namespace gridloom::ptx
