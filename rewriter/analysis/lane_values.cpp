#include "rewriter/analysis/lane_values.h"

#include <algorithm>
#include <optional>
#include <span>

#include "rewriter/ptx/special.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::analysis {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Special;

namespace {

constexpr std::uint64_t kLanes = 32;

bool IsSameInCta(Special special) {
  switch (special) {
    case Special::kCtaid:
    case Special::kNctaid:
    case Special::kNtid:
    case Special::kGridid:
    case Special::kClusterid:
    case Special::kNclusterid:
    case Special::kClusterCtaid:
    case Special::kClusterNctaid:
    case Special::kClusterCtarank:
    case Special::kClusterNctarank:
    case Special::kNwarpid:
    case Special::kNsmid:
    case Special::kSmid:
    case Special::kEnvreg:
    case Special::kTotalSmemSize:
    case Special::kDynamicSmemSize:
    case Special::kWarpSz: return true;
    default: return false;
  }
}

bool IsMultiple(std::optional<std::uint64_t> number) { return number && *number % kLanes == 0; }
/// The last of the lanes of a warp: what is not above it is in that warp or before it.
bool IsLastOfWarp(std::optional<std::uint64_t> number) { return number && *number % kLanes == kLanes - 1; }
bool ShiftsLanesOut(std::optional<std::uint64_t> number) { return number && *number >= 5; }
bool IsFullMask(std::optional<std::uint64_t> number) { return number && (*number & 0xFFFFFFFF) == 0xFFFFFFFF; }

/// The operands that an instruction with one destination reads.
std::span<const Operand> Sources(const Instruction& instruction) { return std::span(instruction.operands).subspan(1); }

bool IsBelow(const Instruction& compare) { return compare.Has(Mod::kLt) || compare.Has(Mod::kLo); }
bool IsAtLeast(const Instruction& compare) { return compare.Has(Mod::kGe) || compare.Has(Mod::kHs); }
bool IsAbove(const Instruction& compare) { return compare.Has(Mod::kGt) || compare.Has(Mod::kHi); }
bool IsAtMost(const Instruction& compare) { return compare.Has(Mod::kLe) || compare.Has(Mod::kLs); }

/// 32 u + lane < 32 v says that u < v, whatever the lane.
bool ComparesWarps(const Instruction& compare, const OperandFacts& facts) {
  const auto in = Sources(compare);
  if (in.size() < 2) return false;
  const LaneValue a = facts.value(in[0]), b = facts.value(in[1]);
  if (a == LaneValue::kThread && b == LaneValue::kThread) return true;
  if (a != LaneValue::kThread && b != LaneValue::kThread) return false;  // only the third operand is a thread's index
  const bool turned = b == LaneValue::kThread;
  const LaneValue bound = turned ? a : b;
  const bool splits_before = turned ? IsAbove(compare) || IsAtMost(compare) : IsBelow(compare) || IsAtLeast(compare);
  const bool splits_behind = turned ? IsBelow(compare) || IsAtLeast(compare) : IsAbove(compare) || IsAtMost(compare);
  return (splits_before && bound == LaneValue::kAligned) ||
         (splits_behind && IsLastOfWarp(facts.number(in[turned ? 0 : 1])));
}

bool IsWholeNumber(const Instruction& instruction) {
  for (std::size_t n = 0; n < 2; ++n) {
    const ptx::ScalarType type = instruction.type(n);
    if (type != ptx::ScalarType::kNone && (ptx::IsFloat(type) || ptx::Info(type).lanes != 1)) return false;
  }
  return !instruction.Has(Mod::kSat);
}

bool IsUnsigned(const Instruction& instruction) {
  const ptx::ScalarType type = instruction.type();
  return type == ptx::ScalarType::kU16 || type == ptx::ScalarType::kU32 || type == ptx::ScalarType::kU64;
}

/// One of the operands is a thread's index.
LaneValue ResultOfThread(const Instruction& instruction, const OperandFacts& facts) {
  using enum LaneValue;
  if (!IsWholeNumber(instruction) || instruction.operands.size() < 2) return kDiffers;
  const bool compares = instruction.opcode == Opcode::kSetp || instruction.opcode == Opcode::kSet;
  if (compares) return ComparesWarps(instruction, facts) ? kSame : kDiffers;
  if (instruction.operands[0].kind != OperandKind::kRegister) return kDiffers;
  const auto in = Sources(instruction);
  const LaneValue a = facts.value(in[0]), b = in.size() > 1 ? facts.value(in[1]) : kSame;
  const auto either = [&](LaneValue one, LaneValue other) {
    return (a == one && b == other) || (a == other && b == one);
  };
  switch (instruction.opcode) {
    case Opcode::kMov:
    case Opcode::kCvt: return in.size() == 1 ? a : kDiffers;
    case Opcode::kAdd:
    case Opcode::kOr:
    case Opcode::kXor: return either(kThread, kAligned) ? kThread : kDiffers;
    case Opcode::kSub: return a == kThread && b == kAligned ? kThread : kDiffers;
    case Opcode::kAnd:
      if (either(kThread, kAligned)) return kAligned;
      return (a == kThread && IsLastOfWarp(facts.number(in[1]))) || (b == kThread && IsLastOfWarp(facts.number(in[0])))
                 ? kThread
                 : kDiffers;
    case Opcode::kShr: return a == kThread && ShiftsLanesOut(facts.number(in[1])) ? kSame : kDiffers;
    case Opcode::kBfe:
      return a == kThread && ShiftsLanesOut(facts.number(in[1])) && in.size() == 3 && IsSame(facts.value(in[2]))
                 ? kSame
                 : kDiffers;
    case Opcode::kDiv:
      return a == kThread && IsUnsigned(instruction) && IsMultiple(facts.number(in[1])) && *facts.number(in[1]) != 0
                 ? kSame
                 : kDiffers;
    case Opcode::kRem:
      return a == kThread && IsUnsigned(instruction) && IsMultiple(facts.number(in[1])) && *facts.number(in[1]) != 0
                 ? kThread
                 : kDiffers;
    case Opcode::kMad: {
      const bool row = IsSame(a) && IsSame(b) && (a == kAligned || b == kAligned) && !instruction.Has(Mod::kHi);
      return row && in.size() == 3 && facts.value(in[2]) == kThread ? kThread : kDiffers;
    }
    default: return kDiffers;
  }
}

/// All operands are the same for all.
LaneValue ResultOfSame(const Instruction& instruction, const OperandFacts& facts) {
  using enum LaneValue;
  if (!IsWholeNumber(instruction) || instruction.operands.size() < 2 ||
      instruction.operands[0].kind != OperandKind::kRegister)
    return kSame;
  const auto in = Sources(instruction);
  const auto aligned = [&](std::size_t n) { return n < in.size() && facts.value(in[n]) == kAligned; };
  bool multiple = false;
  switch (instruction.opcode) {
    case Opcode::kMov:
    case Opcode::kCvt: multiple = in.size() == 1 && aligned(0); break;
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kOr:
    case Opcode::kXor: multiple = aligned(0) && aligned(1); break;
    case Opcode::kAnd: multiple = aligned(0) || aligned(1); break;
    case Opcode::kMul: multiple = !instruction.Has(Mod::kHi) && (aligned(0) || aligned(1)); break;
    case Opcode::kMad: multiple = !instruction.Has(Mod::kHi) && (aligned(0) || aligned(1)) && aligned(2); break;
    case Opcode::kShl: multiple = aligned(0) || (in.size() > 1 && ShiftsLanesOut(facts.number(in[1]))); break;
    default: break;
  }
  return multiple ? kAligned : kSame;
}

}  // namespace

LaneValue Join(LaneValue a, LaneValue b) {
  using enum LaneValue;
  if (a == b || b == kUnset) return a;
  if (a == kUnset) return b;
  return IsSame(a) && IsSame(b) ? kSame : kDiffers;
}

LaneValue ValueOfSpecial(std::string_view text, Scope scope) {
  using enum LaneValue;
  const auto special = ptx::SpecialFromText(text);
  if (!special) return kDiffers;
  if (scope == Scope::kWarp) {
    if (special->special == Special::kLaneid) return kThread;
    if (special->special == Special::kTid)
      return special->component == 0 ? kDiffers : special->component == 'x' ? kThread : kSame;
    if (special->special == Special::kNtid && special->component == 'x') return kAligned;
  }
  return IsSameInCta(special->special) ? kSame : kDiffers;
}

LaneValue ResultOf(const Instruction& instruction, bool reads_thread, const OperandFacts& facts) {
  bool threads = reads_thread;
  for (const Operand& operand : instruction.operands) {
    ptx::VisitOperand(operand, [&](const Operand& leaf) {
      threads = threads || (leaf.kind == OperandKind::kSpecial && facts.value(leaf) == LaneValue::kThread);
    });
  }
  return threads ? ResultOfThread(instruction, facts) : ResultOfSame(instruction, facts);
}

bool LanesAgree(const Instruction& exchange, const OperandFacts& facts) {
  const auto is = [&](std::string_view modifier) {
    return std::ranges::any_of(exchange.modifiers, [&](const ptx::Modifier& one) { return one.text == modifier; });
  };
  if (!is("sync") || exchange.operands.size() < 3 || !IsFullMask(facts.number(exchange.operands.back()))) return false;
  if (exchange.opcode == Opcode::kVote || exchange.opcode == Opcode::kRedux) return true;
  if (exchange.opcode != Opcode::kShfl || !is("idx") || exchange.operands.size() != 5) return false;
  return IsSame(facts.value(exchange.operands[2])) && facts.number(exchange.operands[3]) == kLanes - 1;
}

}  // namespace gridloom::analysis
