// Shapes of control flow that emitters have in common.
#pragma once

#include <functional>
#include <vector>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

/// The constant that is true.
bool IsTrue(const llvm::Value* condition);

using Parts = std::function<std::vector<llvm::Value*>()>;
/// The values that `fast` makes where `ok` holds, else those that `slow` makes; both the same number.
std::vector<llvm::Value*> FastOrSlow(WarpBuilder& w, llvm::Value* ok, const Parts& fast, const Parts& slow);

/// `then` where one of the lanes (i32) is not 0.
void IfAny(WarpBuilder& w, llvm::Value* lanes, const std::function<void()>& then);

/// A loop that takes active lanes until none is left: `body` gets those still there (i32) and returns what it leaves.
void WhileLanesAreLeft(WarpBuilder& w, const std::function<llvm::Value*(llvm::Value* left)>& body);

/// `body` for every active lane in turn.
void ForEachActiveLane(WarpBuilder& w, const std::function<void(llvm::Value* lane)>& body);

/// Whether all 32 lanes are known to be active.
bool AllLanesRun(const WarpBuilder& w);
/// `body` for the numbers below `count`, in turn.
void ForEachNumber(WarpBuilder& w, unsigned count, const std::function<void(llvm::Value* number)>& body);

/// Keeps LLVM from moving or merging memory accesses across a strong one. No instruction.
void CompilerFence(llvm::IRBuilder<>& b);

}  // namespace gridloom::exec
