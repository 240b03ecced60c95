// The instruction table: base opcodes and their modifiers, each written once. Parser checks, verifier, liveness, the
// lifter and the timing model ask Info(opcode); none keeps a second list.
#pragma once

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

enum class Opcode : std::uint8_t {
  kUnknown,
#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs) name,
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE
};

struct OpcodeInfo {
  std::string_view text;
  OpClass cls;
  std::uint8_t dsts;                ///< leading operands that are written
  std::uint8_t min_srcs, max_srcs;  ///< operands that are read
};

const OpcodeInfo& Info(Opcode opcode);
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
