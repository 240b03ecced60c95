// Accesses in loops whose addresses go on by one step a round: what records (sim/exec/contract/records.h) tell of them
// once, before the loop.
//
//   before:  loop: … record(%p)  %p = phi [%start, entry], [%p + %step, loop]
//   after:   entry: … record_loop(%start, %step)
//            loop: … record(%p)                    with RecordInLoop{loop, slot 0, add 0}
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <vector>

namespace gridloom::exec {

class SpmdModule;

/// Where an access in a loop lies: `add` beyond a slot of the loop's.
struct RecordInLoop {
  std::uint32_t loop = 0, slot = 0;
  std::uint64_t add = 0;
};

/// A loop that records are told of. Its marker (MarkerKind::kRecordLoop) stands at the end of `preheader` and has a
/// start and a step for each slot.
struct RecordLoop {
  llvm::BasicBlock* header = nullptr;
  llvm::CallInst* marker = nullptr;
  std::vector<std::uint64_t> slots;  ///< RecordHeader of an access that has it
};

struct RecordLoopTable {
  std::vector<RecordLoop> loops;
  llvm::DenseMap<const llvm::BasicBlock*, std::uint32_t> by_header;
  llvm::DenseMap<const llvm::CallInst*, RecordInLoop> accesses;
};

/// Fills the module's RecordLoopTable and adds the markers. The functions are in LoopSimplify form. Further, what an
/// address adds to a value of another block is added in the block of its record, where accesses at constant distances
/// are recognised.
void PlaceRecordLoops(SpmdModule& spmd);

}  // namespace gridloom::exec
