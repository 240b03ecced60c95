// An opcode of PTX as lowering sees it: made of its text once a kernel (trace::Meanings::texts).
#pragma once

#include <cstdint>
#include <string_view>

namespace gridloom::lowering {

/// What passes know by name. All other operations are kOther: they keep their place among what depends on them, and
/// nothing is known of what they compute.
enum class Base : std::uint8_t {
  kUnknown,  ///< the trace does not say
  kOther,
  kMove,
  kConvertAddress,  ///< cvta
  kAdd,
  kSub,
  kMul,
  kMad,
  kFma,
  kShl,
  kShr,
  kLogic,  ///< and, or, xor, not
  kCompare,
  kSelect,
  kConvert,
  kLoad,
  kStore,
  kAtomic,
  kReduce,  ///< red
  kNegate,  ///< neg, abs
  kBranch,  ///< bra
};

struct Operation {
  Base base = Base::kUnknown;
  bool pure = false;    ///< computes its results from its sources alone, each time the same
  bool wide = false;    ///< a product that is twice as wide as its factors
  bool low = false;     ///< a product's low half, or of a type that has no halves
  bool global = false;  ///< kConvertAddress: of global memory, whose generic addresses are the same
  bool is_float = false, is_signed = false;
  bool rounded = false;         ///< says how it rounds, so that nothing joins it
  bool only_registers = false;  ///< a product of matrices that are in registers
  bool joins_lanes =
      false;               ///< an atomic of integers that lanes with one value may make as one: add, min, max, and, or
  bool sums = false;       ///< of joins_lanes: add, so that what each lane would have found follows from what one found
  bool saturates = false;  ///< or does something else that a plain form does not
  std::uint8_t bits = 0;   ///< of the first type; 0: none
  std::uint8_t from = 0;   ///< kConvert: of the second one
  bool from_float = false, from_signed = false;
  std::uint8_t expansion = 0;  ///< which row of expansions.def, from 1; 0: none
};

/// A row of expansions.def.
struct Expansion {
  std::string_view opcode, type, modifier;
  std::uint32_t least_sm;
  std::string_view steps;  ///< a letter for each instruction
};
/// That of an operation with one.
const Expansion& ExpansionOf(const Operation& operation);

/// "mad.wide.s32".
Operation ParseOperation(std::string_view text);

}  // namespace gridloom::lowering
