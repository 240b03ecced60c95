// Whether added code waits for its own results: by scoreboards for what takes as long as it takes, by long stalls for
// the rest (docs/machine-code.md#proof).
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "rewriter/machine/registers.h"

namespace gridloom::machine {

class Waiting {
 public:
  static constexpr unsigned kEnoughStall = 12;         ///< for any register that arithmetic of fixed latency writes
  static constexpr unsigned kEnoughForPredicate = 24;  ///< twice as long as ptxas leaves behind a comparison

  Status Step(const Instruction& instruction) {
    const RegisterUse use = UseOf(instruction);
    for (std::uint8_t board = 0; board < pending_.size(); ++board) {
      RegisterSet& pending = pending_[board];
      if ((instruction.control.wait >> board & 1) != 0) pending = {};
      RegisterSet touched = use.read;
      touched |= use.written;
      if ((pending.general & touched.general).any() || (pending.uniform & touched.uniform).any())
        return Error{"it does not wait for what it uses"};
    }
    for (unsigned number = 0; number < age_.size(); ++number) {
      if (use.read.predicates[number] && age_[number] < kEnoughForPredicate)
        return Error{"it does not wait for a predicate"};
      age_[number] = (use.written.predicates[number] ? 0 : age_[number]) + instruction.control.stall;
    }
    if (instruction.control.read_barrier != kNoBarrier) return Error{"it has a scoreboard for what it reads"};
    const std::string_view name = instruction.format->name;
    const bool variable = name == "S2R" || name == "LDC" || name == "R2UR" || name == "POPC";
    if (!variable) {
      const bool long_enough = instruction.control.stall >= kEnoughStall || instruction.format->flow != Flow::kNext;
      return long_enough ? Status() : Error{"it does not stall for its result"};
    }
    if (instruction.control.write_barrier >= pending_.size()) return Error{"it has no scoreboard for its result"};
    pending_[instruction.control.write_barrier] |= use.written;
    return {};
  }
  bool none() const {
    return std::ranges::all_of(pending_, [](const RegisterSet& set) { return set.none(); });
  }

 private:
  static constexpr unsigned kLongAgo = 1U << 20;

  std::array<RegisterSet, 6> pending_{};
  std::array<unsigned, 8> age_ = {kLongAgo, kLongAgo, kLongAgo, kLongAgo, kLongAgo, kLongAgo, kLongAgo, kLongAgo};
};

}  // namespace gridloom::machine
