// A kernel that the model itself runs, instruction by instruction, because what it does depends on simulated time:
// integer PTX, decoded for a machine of warps (resident_warp.h), and the same instructions as the timing model has
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::hardware::resident {

enum class Op : std::uint8_t {
  kMove,
  kAdd,
  kSubtract,
  kMultiply,
  kMultiplyWide,
  kMultiplyAdd,
  kDivide,
  kMinimum,
  kAnd,
  kOr,
  kXor,
  kNot,
  kSelect,       ///< `a` where the predicate `c` holds, else `b`
  kExtractBits,  ///< `c` bits of `a` from bit `b` on
  kShiftLeft,
  kShiftRight,
  kReverse,
  kLeadingZeros,
  kFindHighest,
  kCountOnes,
  kCompare,
  kBallot,
  kParameter,
  kLoad,
  kStore,
  kAtomicAdd,
  kCompareAndSwap,  ///< in global memory, by one lane: the answer comes later
  kBranch,
  kCall,
  kReturn,
  kSleep,
  kNothing,  ///< barriers of the warp and of the block, fences, parameters of calls: what they do to time the timing
             ///< model knows
};

enum class Comparison : std::uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

/// Special registers that such a kernel reads.
enum class Special : std::uint8_t { kLane, kThread, kThreads, kBlock, kLanesBelow };

struct Source {
  enum class Kind : std::uint8_t { kNone, kNarrow, kWide, kPredicate, kImmediate, kSpecial };
  Kind kind = Kind::kNone;
  Special special = Special::kLane;
  std::uint16_t number = 0;  ///< of the register
  std::uint64_t value = 0;
};

struct Step {
  static constexpr std::uint16_t kNoPredicate = 0xFFFF;
  Op op = Op::kNothing;
  Comparison comparison = Comparison::kEqual;
  bool wide = false;       ///< the destination has 64 bits
  bool predicate = false;  ///< it is a predicate
  bool is_signed = false;  ///< it compares signed numbers
  bool shared = false;     ///< of an access: shared memory, else global
  bool negated = false;    ///< its guard
  std::uint8_t bytes = 4;  ///< of an access
  std::uint16_t guard = kNoPredicate;
  std::uint16_t destination = 0;
  std::uint16_t target = 0;  ///< block; kCall: number of the function; kParameter: of the parameter
  std::int64_t offset = 0;   ///< of an access, added to its address, `a`
  Source a{}, b{}, c{};
};

/// Steps that follow each other; block i is block i of the code.
struct ResidentBlock {
  std::uint32_t first = 0, count = 0;
  std::uint16_t next = 0;  ///< where it goes on
  bool meets = false;      ///< begins with a barrier: all lanes that have not ended come to it together
};

struct ResidentCode {
  trace::KernelCode code;
  std::vector<Step> steps;
  std::vector<ResidentBlock> blocks;
  std::uint32_t narrow = 0, wide = 0, predicates = 0;  ///< registers
  std::uint32_t shared_bytes = 0;                      ///< static, up to where dynamic shared memory begins
};

/// Of blocks, by names.
using Numbers = std::map<std::string, std::uint16_t, std::less<>>;

/// Functions named `called`0, `called`1 … are those it may call. `labels` are told the blocks that begin with them.
/// Fails on an instruction that the machine does not know.
Result<ResidentCode> Compile(const ptx::Module& module, const ptx::Function& kernel, const std::string& called,
                             Numbers* labels = nullptr);

}  // namespace gridloom::hardware::resident
