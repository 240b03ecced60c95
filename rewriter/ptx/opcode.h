// The instruction table: base opcodes and their modifiers, each written once. Parser checks, verifier, liveness, the
// lifter and the timing model ask Info(opcode); none keeps a second list. A lookup is an index into a constant table.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gridloom::ptx {

/// What an instruction occupies; traits and timing classes derive from it.
enum class OpClass : std::uint8_t {
  kUnknown,
  kAlu,
  kFma,
  kDiv,
  kSfu,
  kMove,
  kConvert,
  kLoad,
  kStore,
  kMem,
  kAtomic,
  kTexture,
  kBarrier,
  kMbarrier,
  kFence,
  kWarp,
  kTensor,
  kVideo,
  kBranch,
  kCall,
  kControl,
};

/// Results follow from operands (and the carry) alone: arithmetic, logic, conversions, moves.
constexpr bool IsArithmetic(OpClass cls) {
  switch (cls) {
    case OpClass::kAlu:
    case OpClass::kFma:
    case OpClass::kDiv:
    case OpClass::kSfu:
    case OpClass::kMove:
    case OpClass::kConvert:
    case OpClass::kVideo: return true;
    default: return false;
  }
}

/// What else a pass, the verifier, a trace or the executor has to know of an opcode. Each is a bit, an opcode has any
/// number of them.
enum class Trait : std::uint32_t {
  // Where control goes on.
  kBranches = 1u << 0,  ///< elsewhere in its function
  kIndirect = 1u << 1,  ///< to one of a list of targets
  kCalls = 1u << 2,
  kReturns = 1u << 3,  ///< behind the call of its function
  kExits = 1u << 4,    ///< nowhere: the thread has ended
  kFaults = 1u << 5,   ///< nowhere: the grid has failed

  // Memory.
  kReads = 1u << 6,   ///< what lies there comes to the destination
  kWrites = 1u << 7,  ///< it changes
  /// The address is read and changed in one step, whether the destination gets the old value (kReads) or not.
  kAtomic = 1u << 8,
  kTyped = 1u << 9,        ///< one address; type and vector say how many bytes a lane accesses there
  kRows = 1u << 10,        ///< one address; a lane names a row of 16 bytes of a matrix in shared memory
  kCopies = 1u << 11,      ///< from one address to another, past the registers
  kHint = 1u << 12,        ///< its address moves no data, it says what to keep near
  kPrefetches = 1u << 13,  ///< a hint to fetch now
  kStrong = 1u << 14,      ///< reads what other CTAs write meanwhile, whatever its modifiers
  kReadOnly = 1u << 15,    ///< reads what nobody writes while the kernel runs
  kQueries = 1u << 16,     ///< asks about a texture or surface, not for its texels
  kMovesStack = 1u << 17,  ///< moves the end of the thread's stack

  // Operands and results.
  kReadsCarry = 1u << 18,  ///< the carry flag is an operand, too
  kMovesBits = 1u << 19,   ///< the result is one of the operands as it is; the type says how wide that is, and no more
  kTakesSpecial = 1u << 20,  ///< special registers may stand for an operand
  kTakesAddress = 1u << 21,  ///< names of variables and functions may stand for an operand

  // Lanes and warps.
  kUnaligned = 1u << 22,  ///< a barrier that lanes of a warp may come to apart, unless it says .aligned
  kWarpGroup = 1u << 23,  ///< done by the four warps of a group together
};

constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

enum class Opcode : std::uint8_t {
  kUnknown,
#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs, traits, semantic) name,
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE
};

struct OpcodeInfo {
  std::string_view text;
  OpClass cls = OpClass::kUnknown;
  std::uint8_t dsts = 0;                    ///< leading operands that are written
  std::uint8_t min_srcs = 0, max_srcs = 0;  ///< operands that are read
  Trait traits{};

  constexpr bool Has(Trait any) const {
    return (static_cast<std::uint32_t>(traits) & static_cast<std::uint32_t>(any)) != 0;
  }
};

/// The table; the row of an opcode is its number.
inline constexpr auto kOpcodeInfo = [] {
  using enum Trait;
  constexpr Trait kNone{};
  return std::to_array<OpcodeInfo>({
      {},
#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs, traits, semantic) \
  {text, OpClass::cls, dsts, min_srcs, max_srcs, traits},
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE
  });
}();
static_assert(std::ranges::is_sorted(kOpcodeInfo, {}, &OpcodeInfo::text));

constexpr const OpcodeInfo& Info(Opcode opcode) { return kOpcodeInfo[static_cast<std::size_t>(opcode)]; }
std::optional<Opcode> OpcodeFromText(std::string_view text);

/// Dot-suffixes with a meaning of their own. Types and state spaces are found by TypeFromText and SpaceFromText; a
/// modifier that is a type has mod kType, one that is a state space kSpace, and what no table knows kOther.
enum class Mod : std::uint16_t {
  kOther,
  kType,
  kSpace,
#define PTX_MODIFIER(name, text) name,
#include "rewriter/ptx/modifiers.def"
#undef PTX_MODIFIER
};

std::string_view TextOf(Mod mod);
/// kOther when unknown. Never returns kType or kSpace: the parser tries types and spaces first.
Mod ModFromText(std::string_view text);

}  // namespace gridloom::ptx
