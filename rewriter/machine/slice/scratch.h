// General registers for code that is added to a kernel.
//
// A register that is dead is not free for that: an instruction of variable latency before may still be reading it, when
// the compiler knew that nobody would write it again and left its scoreboard out. Free are those that the kernel does
// not use at all, new ones, and dead ones that no instruction on any way to the place has touched.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "rewriter/machine/flow.h"

namespace gridloom::machine {

/// As many as the driver gives a thread whose kernel has that count: they are given by eight.
std::uint32_t GivenRegisters(std::uint32_t count);

class ScratchRegisters {
 public:
  /// `count`: what the driver gives a thread, kReservedRegisters among them; `limit`: the most that it may.
  ScratchRegisters(const FlowGraph& flow, std::uint32_t count, std::uint32_t limit);

  /// That many registers for code in place of an instruction. An error when there are none.
  Result<std::vector<unsigned>> Take(std::uint32_t at, unsigned wanted);
  /// How many the kernel needs now.
  std::uint32_t registers() const { return count_; }

 private:
  using Registers = std::bitset<256>;
  std::vector<unsigned> Unused(unsigned wanted) const;
  std::vector<unsigned> Untouched(std::uint32_t at, unsigned wanted);
  void SpreadTouched();
  bool Grow(std::uint32_t to);

  const FlowGraph& flow_;
  std::uint32_t count_, limit_;
  Registers used_{};
  std::vector<Registers> touched_{};  ///< on some way to an instruction; filled in when it is first asked for
};

}  // namespace gridloom::machine
