// What an integer expression of thread indices and constants gives in every thread of a block: who passes a guard,
// which threads use the same address.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

class ThreadValues {
 public:
  /// In code for any shape of blocks nothing is known of the shape. kRowOfWarps stands for the longest row that there
  /// can be, so that what is known holds for all such rows.
  ThreadValues(const SpmdModule& spmd, const CompileOptions& options);

  /// One value a thread, zero-extended, in linear order; null where `value` depends on something else. Lives as long as
  /// this.
  const std::vector<std::uint64_t>* Of(const llvm::Value* value);
  std::uint32_t warps() const { return (threads_ + kWarpSize - 1) / kWarpSize; }
  bool knows_block() const { return threads_ != 0; }

 private:
  using Values = std::vector<std::uint64_t>;
  std::unique_ptr<Values> Compute(const llvm::Value* value, unsigned depth);
  std::unique_ptr<Values> OfSpecial(Special special) const;
  std::unique_ptr<Values> OfInstruction(const llvm::Instruction& instruction, unsigned depth);
  const Values* Of(const llvm::Value* value, unsigned depth);

  const SpmdModule& spmd_;
  std::uint32_t block_[3] = {0, 0, 0};
  bool any_length_ = false;  ///< block_[0] is the longest of many
  std::uint32_t threads_ = 0;
  llvm::DenseMap<const llvm::Value*, std::unique_ptr<Values>> known_;
};

}  // namespace gridloom::exec
