// Which registers of a lowered kernel hold something that is still read, where blocks begin and end.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/lowering/kernel.h"

namespace gridloom::lowering {

/// Registers that only one block names, and writes before it reads them, are live nowhere between blocks. Of kernels
/// without meanings, any may be live anywhere, and the lists are empty.
class Liveness {
 public:
  explicit Liveness(const Kernel& kernel);

  bool IsLiveOut(std::size_t block, Register reg) const { return Has(out_, block, reg); }
  bool IsLiveIn(std::size_t block, Register reg) const { return Has(in_, block, reg); }
  /// In the order of their numbers.
  std::vector<Register> LiveOut(std::size_t block) const { return List(out_, block); }
  std::vector<Register> LiveIn(std::size_t block) const { return List(in_, block); }

 private:
  using Words = std::vector<std::uint64_t>;
  static constexpr std::uint32_t kNone = ~0u;

  void FindShared(const Kernel& kernel);
  void Propagate(const Kernel& kernel);
  bool Has(const std::vector<Words>& of, std::size_t block, Register reg) const;
  std::vector<Register> List(const std::vector<Words>& of, std::size_t block) const;

  bool everywhere_ = false;
  std::vector<std::uint32_t> number_;  // by register: among those that blocks share
  std::vector<Register> shared_;       // by that number
  std::vector<Words> in_, out_;        // by block, bits by number
};

}  // namespace gridloom::lowering
