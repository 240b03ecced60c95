// What the values in registers are made of: symbols, and values as polynomials over them (docs/ranges.md).
//
// A symbol is uniform when it has one value in a whole CTA, and then it can be computed by one thread of the CTA:
// special registers, parameters, loads from memory that is the same for the grid, and instructions of uniform operands.
// All others range: over the threads of the CTA, the iterations of a loop, the ways to a join.
//
// The value of a symbol of fewer than 64 bits is that of its register read as a signed number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/analysis/polynomial.h"
#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/special.h"

namespace gridloom::analysis {

/// A condition under which a value is what its polynomial says; see Assumption.
using AssumptionId = std::uint32_t;
/// A loop of one function as it was inlined at one place.
using LoopInstanceId = std::uint32_t;
inline constexpr LoopInstanceId kNoLoopInstance = ~0u;

struct Predicate;

/// What a register holds.
struct Value {
  enum class Kind : std::uint8_t {
    kNumber,  ///< `number` modulo 2^bits, when the assumptions hold
    kData,    ///< depends on loaded data: `because`
  };
  Kind kind = Kind::kNumber;
  std::uint8_t bits = 32;
  Polynomial number;
  std::vector<AssumptionId> assumptions;       ///< sorted
  std::shared_ptr<const Predicate> predicate;  ///< of a comparison: what it compares
  // kData
  std::string because;        ///< "is loaded from global memory"
  SourceLoc loc;              ///< of the instruction that brought the data in
  SymbolId base = kNoSymbol;  ///< the pointer the data was added to, when there is one

  bool IsData() const { return kind == Kind::kData; }
};
using ValueRef = std::shared_ptr<const Value>;

/// A comparison, or several joined. `left` and `right` are exact: as numbers, not modulo 2^bits.
struct Predicate {
  enum class Kind : std::uint8_t { kLess, kLessEqual, kEqual, kNotEqual, kAnd, kOr, kNot };
  Kind kind = Kind::kLess;
  ValueRef left, right;                   ///< kLess … kNotEqual
  std::shared_ptr<const Predicate> a, b;  ///< kAnd, kOr (null: unknown), kNot (a)
};
using PredicateRef = std::shared_ptr<const Predicate>;

/// The comparisons that hold when `predicate` is `truth`; kinds kLess to kNotEqual only.
std::vector<Predicate> Implied(const PredicateRef& predicate, bool truth);

/// Of a choice, for each alternative: comparisons that hold wherever it is chosen. Their values are not resolved.
using ChosenBy = std::vector<std::vector<Predicate>>;
using ChosenByRef = std::shared_ptr<const ChosenBy>;
/// Of two alternatives, where the first is chosen when the predicate is `truth`; null when nothing is known of it.
ChosenByRef ChosenByTruth(const PredicateRef& predicate, bool truth = true);

/// A number that is not negative where something happens, as far as the assumptions hold.
struct RangeGuard {
  Polynomial number;
  std::vector<AssumptionId> assumptions;
  bool operator==(const RangeGuard&) const = default;
};

enum class SymbolKind : std::uint8_t {
  // Uniform
  kSpecial,    ///< %ctaid, %nctaid, %ntid
  kParam,      ///< kernel parameter, or a part of one: `variable`, `offset`
  kAddress,    ///< address of a module's variable: `variable`
  kOperation,  ///< `instruction` on `operands`, one per register operand that it reads
  kExtension,  ///< low `from_bits` of operands[0], sign- or zero-extended
  kLoad,       ///< `instruction`, a load from the address operands[0]
  // Ranging
  kElsewhere,  ///< address in shared, local or parameter memory: nothing that counts
  kThread,     ///< %tid
  kLane,       ///< %laneid
  kCounter,    ///< completed iterations of `loop`; `tested`: where its condition has held once more
  kChoice,     ///< one of `operands`
  kClamp,      ///< a function of operands, see RangeOp
  kPhi,        ///< value at the head of `loop`: operands[0] on entry, else one of the others. Resolved before use
  kAny,        ///< any value of the register
};

/// Functions that map intervals to intervals. Operands are exact numbers.
enum class RangeOp : std::uint8_t {
  kMin,
  kMax,
  kShiftRight,  ///< floor(a / 2^b); b uniform
  kAndMask,     ///< a & b with a uniform b
  kOr,          ///< a | b; neither is negative
  kXor,         ///< a ^ b; neither is negative
  kDivide,      ///< a / b truncated; b uniform and positive
  kRemainder,   ///< a % b, sign of a; b uniform and positive
  kAbsolute,
  // What a guard says of a symbol, operands[0]: its sum with `rest`, operands[1], times `divisor`, operands[2], is not
  // negative. The lower end of such a range lies above the upper one where no thread passes the guard.
  kAtMost,   ///< operands[0] <= floor(rest / divisor)
  kAtLeast,  ///< operands[0] >= -floor(rest / divisor)
};

struct Symbol {
  SymbolKind kind = SymbolKind::kAny;
  std::uint8_t bits = 32;
  bool uniform = false;
  Interval bounds;  ///< holds whatever a launch passes
  ptx::Special special{};
  char component = 0;
  const ptx::Variable* variable = nullptr;
  std::uint32_t offset = 0;
  ptx::ScalarType type = ptx::ScalarType::kNone;  ///< kParam, kLoad: as loaded
  const ptx::Instruction* instruction = nullptr;
  std::uint32_t result = 0;                        ///< kLoad: which element of a vector load
  bool tested = false;                             ///< kCounter
  bool at_join = false;                            ///< kChoice: made where ways join, not of the rounds of a loop
  std::uint8_t from_bits = 0;                      ///< kExtension
  bool is_signed = false;                          ///< kExtension
  ptx::StateSpace space = ptx::StateSpace::kNone;  ///< kElsewhere, kLoad
  RangeOp op{};
  LoopInstanceId loop = kNoLoopInstance;       ///< kCounter, kPhi
  LoopInstanceId varies_in = kNoLoopInstance;  ///< innermost loop in which another iteration may have another value
  bool is_pointer = false;                     ///< the program says so: cvta, .ptr, a variable's address
  std::uint32_t depth = 0;                     ///< of nested symbols; bounded
  std::vector<ValueRef> operands;
  ChosenByRef chosen_by;  ///< kChoice: null, or as many as operands
  /// kChoice: empty, or for each operand the guards of `chosen_by`, resolved. Where one is negative for all threads of
  /// a CTA, the CTA never chooses the operand.
  std::vector<std::vector<RangeGuard>> chosen_where = {};
};

/// A uniform condition that was true, or false, wherever something happens.
struct UniformCondition {
  SymbolId predicate = kNoSymbol;
  bool truth = true;
  bool operator==(const UniformCondition&) const = default;
};

/// What has to hold at run time so that a range may be believed; checked by the generated code.
struct Assumption {
  enum class Kind : std::uint8_t {
    kInside,     ///< all values of `number` lie in `range`
    kDivisible,  ///< the one value of `number` is a multiple of `range.low`
  };
  Kind kind = Kind::kInside;
  Polynomial number;
  Interval range;
  /// Where one of them is not met, nothing is assumed: no thread of the CTA comes there.
  std::vector<UniformCondition> conditions = {};
};

/// Owns symbols and assumptions; equal ones are one.
class SymbolPool {
 public:
  static constexpr std::uint32_t kMaxDepth = 64;

  const Symbol& operator[](SymbolId id) const { return symbols_[id]; }
  Symbol& at(SymbolId id) { return symbols_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(symbols_.size()); }

  /// One symbol for equal ones: pure functions of their operands.
  SymbolId Share(Symbol symbol);
  /// A symbol of its own: two choices of the same alternatives may choose differently.
  SymbolId Add(Symbol symbol);
  SymbolId Any(unsigned bits, LoopInstanceId varies_in);

  const Assumption& assumption(AssumptionId id) const { return assumptions_[id]; }
  AssumptionId Assume(Assumption assumption);

  bool IsUniform(const Polynomial& number) const;
  bool IsUniform(const Monomial& monomial) const;
  /// The values of a polynomial that hold in any launch.
  Interval BoundsOf(const Polynomial& number) const;
  Interval BoundsOf(const Monomial& monomial) const;
  /// A text that tells symbols and values apart, for sharing.
  std::string KeyOf(const Value& value) const;

 private:
  std::vector<Symbol> symbols_;
  std::map<std::string, SymbolId> shared_;
  std::vector<Assumption> assumptions_;
  std::map<std::string, AssumptionId> assumption_ids_;
};

ValueRef Number(Polynomial number, unsigned bits, std::vector<AssumptionId> assumptions = {});
std::vector<AssumptionId> Union(const std::vector<AssumptionId>& a, const std::vector<AssumptionId>& b);

}  // namespace gridloom::analysis
