#include "sim/exec/compiler/warp_sink.h"

#include <llvm/Analysis/ValueTracking.h>

#include <algorithm>
#include <vector>

#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {
namespace {

using llvm::Instruction;

/// A load that may go down to `use`, the first one.
struct Sinkable {
  Instruction *load, *use;
};

/// The first user in the block, or null where a block before is the first to use it, or a phi.
Instruction* FirstUse(const Instruction& load) {
  Instruction* first = nullptr;
  for (const llvm::User* user : load.users()) {
    auto* at = const_cast<Instruction*>(llvm::cast<Instruction>(user));
    if (at->getParent() != load.getParent() || llvm::isa<llvm::PHINode>(at)) continue;
    if (!first || at->comesBefore(first)) first = at;
  }
  return first;
}

bool IsWall(const Instruction& instruction) {
  return instruction.mayWriteToMemory() || !llvm::isGuaranteedToTransferExecutionToSuccessor(&instruction);
}

/// The loads of a block that may be moved, between the walls that they must not pass.
class BlockSinks {
 public:
  BlockSinks(const WarpSource& source, WarpValues& values) : source_(source), values_(values) {}

  void Run(llvm::BasicBlock& block) {
    for (Instruction& instruction : block) {
      if (IsWall(instruction) || instruction.isTerminator()) SinkUpTo(instruction);
      else if (MaySink(instruction)) loads_.push_back({&instruction, FirstUse(instruction)});
    }
  }

 private:
  bool MaySink(const Instruction& instruction) {
    const MarkerInfo* const info = source_.module.MarkerOf(instruction);
    if (!info || info->kind != MarkerKind::kLoad || info->strong || info->space == Space::kLocal) return false;
    return values_.PatternOf(instruction.getOperand(0)).has_value() && FirstUse(instruction);
  }

  /// How many of the loads wait for their uses at the same time, at the most.
  std::size_t MostWaiting() const {
    std::size_t most = 0;
    for (const Sinkable& at : loads_)
      most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(loads_, [&](const Sinkable& other) {
                        return !at.load->comesBefore(other.load) && at.load->comesBefore(other.use);
                      })));
    return most;
  }

  void SinkUpTo(const Instruction& wall) {
    std::erase_if(loads_, [&](const Sinkable& at) { return wall.comesBefore(at.use); });
    if (MostWaiting() > kRowsInRegisters / source_.module.pieces)
      for (const Sinkable& at : loads_) at.load->moveBefore(at.use);
    loads_.clear();
  }

  static constexpr std::size_t kRowsInRegisters = 8;  ///< half of 32 registers of 16 words
  const WarpSource& source_;
  WarpValues& values_;
  std::vector<Sinkable> loads_;
};

}  // namespace

void SinkRows(const WarpSource& source, WarpValues& values) {
  if (source.module.memcheck() || source.module.options.record != Recording::kNone) return;
  for (llvm::BasicBlock* block : source.order.blocks) BlockSinks(source, values).Run(*block);
}

}  // namespace gridloom::exec
