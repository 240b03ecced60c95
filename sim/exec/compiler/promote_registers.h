#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <cstddef>

namespace gridloom::exec {

/// How registers were promoted. LLVM's own promotion goes through all blocks that a register's first write dominates,
/// and carries the values of all registers along each edge: a kernel of tens of thousands of lines has thousands of
/// both.
struct Promotion {
  std::size_t without_search = 0;  ///< written once, before all reads
  std::size_t searched = 0;        ///< all others: places of phis are searched for
  std::size_t looked_at = 0;       ///< blocks in that search, of all registers together
};

/// Makes SSA values of the registers of a function as lifted, which are slots in its entry block, with zero in each at
/// first.
Promotion PromoteRegisters(llvm::Function& function);
/// The same for the functions that have blocks of many thousand instructions: LLVM's own passes take seconds for them.
void PromoteRegistersOfLongBlocks(llvm::Module& module);

}  // namespace gridloom::exec
