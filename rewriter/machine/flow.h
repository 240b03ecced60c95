// Control flow of one function of machine code, and which registers are live where.
//
// Lanes of a warp have program counters of their own (Volta and later), so the graph is that of one lane: BSSY, BSYNC,
// BREAK and WARPSYNC wait and go on. A RET goes on behind each call of the function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rewriter/machine/registers.h"

namespace gridloom::machine {

/// Where a branch or call leads, in bytes from address 0 on, `at` being its own number; it may be outside of the code,
/// and is -1 for what has no target.
std::int64_t BranchTargetOf(const Instruction& instruction, std::uint32_t at);

/// Where branches by a table of addresses (BRX) lead, in bytes, by the branch's own place.
using BranchTargets = std::map<std::uint32_t, std::vector<std::uint32_t>>;

class FlowGraph {
 public:
  /// Of code for one architecture, whose first byte is at address 0. An error that names the place when a word is
  /// unknown, a jump table or what it leads to is not known, or a branch leaves the function.
  static Result<FlowGraph> Build(std::span<const std::byte> code, unsigned sm, const BranchTargets& targets = {});

  std::span<const Instruction> instructions() const { return instructions_; }
  /// Registers that an instruction uses.
  const RegisterUse& UseAt(std::uint32_t instruction) const { return uses_[instruction]; }
  /// Numbers of the instructions that may be next.
  std::span<const std::uint32_t> Next(std::uint32_t instruction) const { return next_[instruction]; }
  /// Where control may come to from elsewhere than the instruction before.
  bool IsTarget(std::uint32_t instruction) const { return target_[instruction]; }
  /// Registers that some way on from here may read before it writes them. More than are: a write under a guard ends
  /// nothing, and ways whose conditions exclude each other count.
  const RegisterSet& LiveBefore(std::uint32_t instruction) const { return live_[instruction]; }

 private:
  Status Decode(std::span<const std::byte> code, unsigned sm);
  Status Connect(const BranchTargets& targets);
  Status ConnectOne(std::uint32_t at, const std::vector<std::uint32_t>& returns);
  Status ConnectTable(std::uint32_t at, const BranchTargets& targets);
  bool HasPlace(std::int64_t address) const;
  void Propagate();

  std::vector<Instruction> instructions_{};
  std::vector<std::vector<std::uint32_t>> next_{};
  std::vector<bool> target_{};
  std::vector<RegisterUse> uses_{};
  std::vector<RegisterSet> live_{};
};

}  // namespace gridloom::machine
