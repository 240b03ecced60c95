// Accesses whose lanes are neighbours, or all the same, in each half of a warp: vector loads and stores.
#pragma once

#include <vector>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

class WarpValues;

/// How the lanes of a half lie to each other.
enum class HalfKind { kConsecutive, kSame, kOther };
HalfKind Classify(const LanePattern& pattern, unsigned half, unsigned bytes);

/// <n*count x T>, elements of a lane together -> count values of <n x T>.
std::vector<llvm::Value*> Deinterleave(llvm::IRBuilder<>& b, llvm::Value* wide, unsigned count);
/// The other way round.
llvm::Value* Interleave(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& parts);

class HalfAccess : Emitter {
 public:
  HalfAccess(WarpBuilder& w, WarpValues& values) : Emitter(w), values_(values) {}

  bool InRows(Value* address, const Access& access, bool store);
  bool InRowsOfWhole(Value* address, const Access& access, bool store);
  Value* LoadHalf(Value* base, std::int64_t offset, HalfKind kind, unsigned half, const Access& access);
  std::vector<Value*> LoadHalves(const Linear& linear, const Access& access, const Window& window);
  void StoreHalf(Value* at, unsigned half, const Access& access, const std::vector<Value*>& values);
  void StoreHalves(const Linear& linear, const Access& access, const Window& window, const std::vector<Value*>& values);

 private:
  void StorePart(Value* wide, Value* at, unsigned half, const Access& access);
  Value* HalfMask(unsigned half, unsigned count);

  WarpValues& values_;
};

}  // namespace gridloom::exec
