// What is known of the values that one register has in the threads of a CTA, or of a warp: what the analysis of
// uniformity computes with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "rewriter/ptx/ir.h"

namespace gridloom::analysis {

/// The threads that are compared.
enum class Scope : std::uint8_t {
  kCta,
  /// The lanes of each warp, all of which take part; blocks whose rows are whole warps, so that the lanes of a warp
  /// differ in %tid.x alone, whose five lowest bits are the lane.
  kWarp,
};

/// Each says less than the ones above it, but for kThread, which the two in the middle do not include.
enum class LaneValue : std::uint8_t {
  kUnset,    ///< nothing gives it a value, as far as has been looked
  kAligned,  ///< the same in all, and a multiple of 32
  kSame,     ///< the same in all
  kThread,   ///< 32 times something that is the same in all, plus the lane: a thread's index
  kDiffers,  ///< nothing is known
};

/// What is known of a value that is one or the other.
LaneValue Join(LaneValue a, LaneValue b);
inline bool IsSame(LaneValue value) { return value <= LaneValue::kSame; }

/// The value of a special register.
LaneValue ValueOfSpecial(std::string_view text, Scope scope);

/// What is known of an operand, in all threads.
struct OperandFacts {
  std::function<LaneValue(const ptx::Operand&)> value;
  std::function<std::optional<std::uint64_t>(const ptx::Operand&)> number;  ///< a literal, or a register that holds one
};

/// The value of the results of an instruction whose results follow from its operands alone. `reads_thread`: a register
/// that it reads is kThread; none differs.
LaneValue ResultOf(const ptx::Instruction& instruction, bool reads_thread, const OperandFacts& facts);

/// Whether all lanes of a warp get the same from each other: a vote, a reduction, one lane's value. Where all of them
/// come to it.
bool LanesAgree(const ptx::Instruction& exchange, const OperandFacts& facts);

}  // namespace gridloom::analysis
