// What the instructions of a kernel compute, beside what they occupy: opcodes, values and constants, and where blocks
// go on. The timing model needs none of it; lowering does (sim/lowering). Traces before version 12 do not have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::trace {

struct KernelCode;

/// One thing that an instruction reads or writes.
struct Term {
  enum class Kind : std::uint8_t {
    kRegister,  ///< `value`: its number, from 1; each register of PTX has one of its own
    kNumber,    ///< `value`: the constant's bits
    kOffset,    ///< a constant that is added to the term before it: the rest of an address
    kName,      ///< `value`: of Meanings::texts: a special register, a variable or a function
  };
  static constexpr Kind kLastKind = Kind::kName;
  Kind kind = Kind::kRegister;
  std::uint64_t value = 0;

  bool operator==(const Term&) const = default;
};

/// What one instruction computes. Its terms are `results` and then `sources` of Meanings::terms, sources in the order
/// of PTX, the guard behind them.
struct Meaning {
  enum Flag : std::uint8_t {
    kGuarded = 1 << 0,  ///< the last source is its guard
    kPartial = 1 << 1,  ///< what it writes may keep its old value, in some lanes or in part
  };
  std::uint32_t text = 0;  ///< of Meanings::texts: the opcode as PTX has it, "mad.wide.s32"; empty: not known
  std::uint32_t terms = 0;
  std::uint8_t results = 0, sources = 0, flags = 0;
};

/// Empty where a trace does not say it.
struct Meanings {
  static constexpr std::size_t kMostTexts = 65536;
  std::vector<Meaning> of;  ///< by instruction of KernelCode
  std::vector<Term> terms;
  std::vector<std::string> texts;  ///< the first one is empty; at most kMostTexts
  std::uint32_t registers = 0;     ///< highest number of a register
  /// By block of KernelCode: which blocks may come next in its function.
  std::vector<std::vector<std::uint32_t>> successors;

  bool empty() const { return of.empty(); }
};

/// Whether they are empty or refer to what is there, and speak of each instruction and block of the code.
Status ValidateMeanings(const KernelCode& code);

}  // namespace gridloom::trace
