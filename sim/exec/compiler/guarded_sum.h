// Takes an address of the SPMD form apart: a base and distances that have bounds.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

#include <cstdint>
#include <functional>

namespace gridloom::exec {

/// base + terms, each of them less than its part of `reach` away from zero.
struct GuardedSum {
  const llvm::Value* base = nullptr;
  std::uint64_t reach = 0;   ///< bytes
  unsigned align_bits = 64;  ///< low bits that are zero in all terms
};

class GuardedSums {
 public:
  /// `is_base`: a value that can be tested once, where a warp starts.
  GuardedSums(const llvm::LoopInfo& loops, const llvm::DominatorTree& dominators, const llvm::DataLayout& layout,
              std::function<bool(const llvm::Value*)> is_base)
      : loops_(loops), dominators_(dominators), layout_(layout), is_base_(std::move(is_base)) {}

  /// Of the address of `access`; without a base where it cannot be taken apart.
  GuardedSum Of(const llvm::Value* address, const llvm::Instruction& access) const;

 private:
  bool Add(const llvm::Value* value, unsigned shift, const llvm::Instruction& access, unsigned depth,
           GuardedSum& sum) const;
  bool AddParts(const llvm::Value* value, unsigned shift, const llvm::Instruction& access, unsigned depth,
                GuardedSum& sum) const;
  bool AddWalk(const llvm::PHINode& phi, unsigned shift, const llvm::Instruction& access, unsigned depth,
               GuardedSum& sum) const;
  bool AddBounded(const llvm::Value* value, unsigned shift, GuardedSum& sum) const;

  const llvm::LoopInfo& loops_;
  const llvm::DominatorTree& dominators_;
  const llvm::DataLayout& layout_;
  const std::function<bool(const llvm::Value*)> is_base_;
};

}  // namespace gridloom::exec
