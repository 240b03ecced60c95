// Which registers are live where, and how many 32-bit registers that takes at once.
#pragma once

#include <span>
#include <vector>

#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/registers.h"

namespace gridloom::analysis {

/// Registers that are live at one place.
struct Pressure {
  std::uint32_t units = 0;       ///< 32-bit registers
  std::uint32_t predicates = 0;  ///< kept in a file of their own
  bool operator==(const Pressure&) const = default;
};

/// A write under a guard, or of one component of a vector register, leaves the old value live.
class Liveness {
 public:
  explicit Liveness(const Cfg& cfg);

  const RegisterMap& registers() const { return registers_; }
  /// Sorted by number.
  std::span<const RegisterId> LiveIn(BlockId block) const { return live_in_[block]; }
  std::span<const RegisterId> LiveOut(BlockId block) const { return live_out_[block]; }
  bool IsLiveIn(BlockId block, RegisterId id) const;
  /// The registers live just before the n-th instruction of Cfg::instructions(), sorted by number.
  std::vector<RegisterId> LiveBefore(std::uint32_t instruction) const;
  /// What the n-th instruction needs at once: what is live after it or written by it, or live before it, whichever is
  /// more.
  const std::vector<Pressure>& pressure() const { return pressure_; }
  /// The most of either over all instructions; the two may stem from different places.
  Pressure max_pressure() const { return max_pressure_; }

 private:
  struct Access {
    RegisterId id;
    bool kills = false;  ///< a write of the whole register in any case
  };
  /// What one instruction writes and reads, as ranges of `accesses_`: writes first.
  struct Range {
    std::uint32_t begin, reads, end;
  };

  void Collect();
  void Propagate();
  void MeasureBlock(BlockId block, std::vector<bool>& live);
  template <typename OnWrite, typename OnRead>
  void StepBack(std::uint32_t instruction, const OnWrite& on_write, const OnRead& on_read) const;

  const Cfg& cfg_;
  RegisterMap registers_;
  std::vector<Access> accesses_;
  std::vector<Range> ranges_;  ///< by instruction
  std::vector<std::vector<RegisterId>> live_in_, live_out_;
  std::vector<Pressure> pressure_;
  Pressure max_pressure_;
};

}  // namespace gridloom::analysis
