#include "sim/exec/runtime/interpreter/check_bytecode.h"

#include <algorithm>
#include <span>
#include <string>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"
#include "sim/exec/runtime/interpreter/frame.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kMostFrameBytes = 256u << 20;
constexpr std::uint64_t kMostCheckSites = 1u << 24;
constexpr std::uint32_t kHelpers = static_cast<std::uint32_t>(Helper::kCount);

bool IsKnown(ByteType type) { return type < ByteType::kCount; }

/// What a step does with its operands.
enum class StepForm : std::uint8_t {
  kNothing,
  kUnary,    ///< a of `type` to dst of `type`
  kBinary,   ///< a and b
  kTernary,  ///< a, b and c
  kCompare,  ///< a and b of `type` to bits
  kClass,    ///< a of `type` to bits
  kSelect,   ///< a and b by the bits of c
  kCast,     ///< a of `from` to dst of `type`
  kOther,
};

StepForm FormOf(ByteCode code) {
  using C = ByteCode;
  if (code >= C::kFShl && code <= C::kFShr) return StepForm::kTernary;
  if (code >= C::kIAbs && code <= C::kReverseBytes) return StepForm::kUnary;
  if (code >= C::kEq && code <= C::kFUno) return StepForm::kCompare;
  if (code >= C::kZExt && code <= C::kSToF) return StepForm::kCast;
  switch (code) {
    case C::kFma: return StepForm::kTernary;
    case C::kCopySign: return StepForm::kBinary;
    case C::kFNeg:
    case C::kFAbs:
    case C::kSqrt:
    case C::kFloor:
    case C::kCeil:
    case C::kTruncate:
    case C::kRint:
    case C::kMove:
    case C::kMerge: return StepForm::kUnary;
    case C::kSelect: return StepForm::kSelect;
    case C::kFClass: return StepForm::kClass;
    case C::kBeginMet:
    case C::kEndMet:
    case C::kGiveWay:
    case C::kExit: return StepForm::kNothing;
    default: return code <= C::kFDiv ? StepForm::kBinary : StepForm::kOther;
  }
}

class FunctionCheck {
 public:
  FunctionCheck(const Bytecode& code, const ByteFunction& function) : code_(code), function_(function) {}

  Status Run() const {
    if (function_.frame_bytes > kMostFrameBytes || function_.blocks.empty())
      return Error{"a frame too large, or no blocks"};
    if (!Typed(function_.parameters, function_.parameter_types, true) ||
        !Typed(function_.results, function_.result_types, true))
      return Error{"parameters or results outside of the frame"};
    for (std::size_t i = 0; i < function_.blocks.size(); ++i)
      if (!BlockIsRight(function_.blocks[i])) return Error{"block " + std::to_string(i) + " is out of bounds"};
    for (std::size_t i = 0; i < function_.steps.size(); ++i)
      if (!StepIsRight(function_.steps[i])) return Error{"step " + std::to_string(i) + " is out of bounds"};
    return {};
  }

 private:
  // --- registers ---

  bool Reads(std::uint32_t operand, std::uint32_t bytes) const {
    if ((operand & kConstantOperand) == 0) return Writes(operand, bytes);
    return IsPlace(operand & ~kConstantOperand, bytes, function_.constants.size());
  }
  bool Writes(std::uint32_t operand, std::uint32_t bytes) const {
    return IsPlace(operand, bytes, function_.frame_bytes);
  }
  bool Reads(std::uint32_t operand, ByteType type) const { return Reads(operand, RegisterBytes(type)); }
  bool Writes(std::uint32_t operand, ByteType type) const { return Writes(operand, RegisterBytes(type)); }
  /// Whether it is an operand, of whatever type.
  bool IsOperand(std::uint32_t operand) const { return Reads(operand, 4); }
  static bool IsPlace(std::uint64_t at, std::uint64_t bytes, std::uint64_t all) {
    return at + bytes <= all && at % (bytes == 4 ? 4 : 64) == 0;
  }

  bool Typed(std::span<const std::uint32_t> operands, std::span<const ByteType> types, bool written) const {
    if (operands.size() != types.size()) return false;
    for (std::size_t i = 0; i < types.size(); ++i)
      if (!IsKnown(types[i]) || !(written ? Writes(operands[i], types[i]) : Reads(operands[i], types[i]))) return false;
    return true;
  }
  bool IsList(std::uint64_t first, std::uint64_t count) const { return first + count <= function_.lists.size(); }
  std::span<const std::uint32_t> List(std::uint32_t first, std::uint32_t count) const {
    return std::span(function_.lists).subspan(first, count);
  }
  template <typename Right>
  bool ListIs(std::uint32_t first, std::uint32_t count, Right right) const {
    return IsList(first, count) && std::ranges::all_of(List(first, count), right);
  }

  // --- blocks ---

  bool AreSteps(std::uint32_t first, std::uint32_t last) const {
    return first <= last && last <= function_.steps.size();
  }
  bool EdgeIsRight(const ByteEdge& edge) const {
    return edge.block < function_.blocks.size() && AreSteps(edge.first, edge.last);
  }

  bool BlockIsRight(const ByteBlock& block) const {
    using End = ByteBlock::End;
    if (!AreSteps(block.first, block.last) || !AreSteps(block.after_first, block.after_last)) return false;
    const auto any = [this](std::uint32_t operand) { return IsOperand(operand); };
    switch (block.end) {
      case End::kBranch:
        return Reads(block.condition, ByteType::kI1) && EdgeIsRight(block.edges[0]) && EdgeIsRight(block.edges[1]);
      case End::kMeet:
        return function_.has_meetings && block.count != 0 && block.count <= ByteBlock::kMostMeetInputs &&
               ListIs(block.list, block.count, any) && Reads(function_.lists[block.list], ByteType::kI32) &&
               EdgeIsRight(block.edges[0]);
      case End::kBarrier: return ListIs(block.list, 4, any) && EdgeIsRight(block.edges[0]);
      case End::kJump:
      case End::kDropEnded: return EdgeIsRight(block.edges[0]);
      case End::kReturn:
      case End::kEnded: return true;
    }
    return false;
  }

  // --- steps ---

  bool StepIsRight(const ByteStep& s) const {
    if (s.code >= ByteCode::kCount || !IsKnown(s.type) || !IsKnown(s.from)) return false;
    const auto reads = [&](std::uint32_t operand) { return Reads(operand, s.type); };
    switch (FormOf(s.code)) {
      case StepForm::kNothing: return true;
      case StepForm::kUnary: return reads(s.a) && Writes(s.dst, s.type);
      case StepForm::kBinary: return reads(s.a) && reads(s.b) && Writes(s.dst, s.type);
      case StepForm::kTernary: return reads(s.a) && reads(s.b) && reads(s.c) && Writes(s.dst, s.type);
      case StepForm::kCompare: return reads(s.a) && reads(s.b) && Writes(s.dst, ByteType::kI1);
      case StepForm::kClass: return reads(s.a) && Writes(s.dst, ByteType::kI1);
      case StepForm::kSelect: return reads(s.a) && reads(s.b) && Reads(s.c, ByteType::kI1) && Writes(s.dst, s.type);
      case StepForm::kCast: return Reads(s.a, s.from) && Writes(s.dst, s.type);
      case StepForm::kOther: return OtherIsRight(s);
    }
    return false;
  }

  bool OtherIsRight(const ByteStep& s) const {
    using B = ByteType;
    const std::uint32_t whole = BytesOf(s.from), part = BytesOf(s.type);
    switch (s.code) {
      case ByteCode::kJoin:
        return whole != 0 && part != 0 && std::uint64_t{s.c} * whole <= part && Writes(s.dst, s.type) &&
               ListIs(s.b, s.c, [&](std::uint32_t operand) { return Reads(operand, s.from); });
      case ByteCode::kPart:
        return whole > 1 && part != 0 && part <= 8 && s.imm < whole / part && Reads(s.a, s.from) &&
               Writes(s.dst, s.type);
      case ByteCode::kSpecial: return SpecialIsRight(s);
      case ByteCode::kParam: return part != 0 && Reads(s.a, B::kI64) && Writes(s.dst, s.type);
      case ByteCode::kSymbol: return Writes(s.dst, B::kI64);
      case ByteCode::kToGeneric:
      case ByteCode::kFromGeneric: return Reads(s.a, B::kI64) && Writes(s.dst, B::kI64);
      case ByteCode::kIsSpace: return Reads(s.a, B::kI64) && Writes(s.dst, B::kI1);
      case ByteCode::kLoad:
      case ByteCode::kStore:
      case ByteCode::kCheckedLoad:
      case ByteCode::kCheckedStore: {
        const bool load = s.code == ByteCode::kLoad || s.code == ByteCode::kCheckedLoad;
        return part != 0 && s.c != 0 && s.c <= 128 && CheckSiteOf(s) <= kMostCheckSites && Reads(s.a, B::kI64) &&
               ListIs(s.b, s.c,
                      [&](std::uint32_t operand) { return load ? Writes(operand, s.type) : Reads(operand, s.type); });
      }
      case ByteCode::kAtomic:
      case ByteCode::kCheckedAtomic:
        return CheckSiteOf(s) <= kMostCheckSites && Reads(s.a, B::kI64) && Reads(s.b, s.type) && Reads(s.c, s.type) &&
               (s.dst == kNoRegister || Writes(s.dst, s.type));
      case ByteCode::kBallot: return Reads(s.a, B::kI1) && Writes(s.dst, B::kI32);
      case ByteCode::kActiveMask: return Writes(s.dst, B::kI32);
      case ByteCode::kShuffle:
        return Reads(s.a, B::kI32) && Reads(s.b, B::kI32) && Reads(s.c, B::kI1) && Writes(s.dst, B::kI32);
      case ByteCode::kMet:
        return function_.has_meetings && s.imm < 2 && (s.type == B::kI1 || part == 4) && Reads(s.a, s.type) &&
               Writes(s.dst, s.type);
      case ByteCode::kHelper:
        return s.a < kHelpers && BitsAreRight(s) &&
               ListIs(s.b, s.c, [this](std::uint32_t operand) { return IsOperand(operand); });
      case ByteCode::kCall:
        return s.a < code_.functions.size() && IsList(s.b, s.c) && s.imm <= s.c &&
               Calls(code_.functions[s.a], List(s.b, s.c).first(s.imm), List(s.b, s.c).subspan(s.imm));
      case ByteCode::kIndirectCall: return IndirectCallIsRight(s);
      default: return false;
    }
  }

  /// Of memcheck's helpers that say themselves how large their operands are.
  static bool BitsAreRight(const ByteStep& s) {
    const auto helper = static_cast<Helper>(s.a);
    if (helper != Helper::kLoadedBits && helper != Helper::kStoredBits) return true;
    const std::uint32_t bytes = UnpackImm<ShadowImm>(s.imm).bytes;
    return bytes != 0 && bytes * kWarpSize <= kMostRegisterBytes && s.c > 1 && s.c <= 1 + kMostStoredElements;
  }

  bool SpecialIsRight(const ByteStep& s) const {
    const std::uint64_t where = s.imm >> 8;
    const auto field = [&](std::size_t context, ByteType type) {
      return where + BytesOf(type) <= context && Writes(s.dst, type);
    };
    switch (static_cast<ByteSpecial>(s.imm & 0xff)) {
      case ByteSpecial::kTid: return where < 3 && Writes(s.dst, ByteType::kI32);
      case ByteSpecial::kLane: return Writes(s.dst, ByteType::kI32);
      case ByteSpecial::kWarpWord: return field(sizeof(WarpCtx), ByteType::kI32);
      case ByteSpecial::kCtaWord: return field(sizeof(CtaCtx), ByteType::kI32);
      case ByteSpecial::kLaunchWord: return field(sizeof(LaunchCtx), ByteType::kI32);
      case ByteSpecial::kLaunchLong: return field(sizeof(LaunchCtx), ByteType::kI64);
    }
    return false;
  }

  bool Calls(const ByteFunction& callee, std::span<const std::uint32_t> results,
             std::span<const std::uint32_t> arguments) const {
    return Typed(results, callee.result_types, true) && Typed(arguments, callee.parameter_types, false);
  }

  bool IndirectCallIsRight(const ByteStep& s) const {
    const auto results = static_cast<std::uint32_t>(s.imm), signature = static_cast<std::uint32_t>(s.imm >> 32);
    if (!IsList(s.b, s.c) || results >= s.c) return false;
    const auto list = List(s.b, s.c);
    const auto right = [&](const Bytecode::Pointer& one) {
      return one.signature != signature ||
             Calls(code_.functions[one.function], list.first(results), list.subspan(results + 1));
    };
    return Reads(list[results], ByteType::kI64) && std::ranges::all_of(code_.pointers, right);
  }

  const Bytecode& code_;
  const ByteFunction& function_;
};

}  // namespace

Status CheckBytecode(const Bytecode& code) {
  if (code.functions.empty()) return Error{"bytecode without a function"};
  for (const Bytecode::Pointer& pointer : code.pointers)
    if (pointer.function >= code.functions.size()) return Error{"a pointer to no function"};
  for (std::size_t i = 0; i < code.functions.size(); ++i) {
    const Status status = FunctionCheck(code, code.functions[i]).Run();
    if (!status.ok()) return Error{"function " + std::to_string(i) + " of bytecode: " + status.error().message};
  }
  return {};
}

}  // namespace gridloom::exec
