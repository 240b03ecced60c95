// Loads and stores that fail the check, by a function of the module that asks a helper.
#pragma once

#include <functional>
#include <vector>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;

/// Host addresses for a slow path: base + scale * index, or lane by lane.
struct SlowPlace {
  llvm::Value* lanes = nullptr;  ///< i64 each; null where there is an index
  llvm::Value* base = nullptr;   ///< i64
  llvm::Value* index = nullptr;  ///< i32 each
  std::int64_t scale = 1;
  bool index_signed = true;
};

class SlowAccess : Emitter {
 public:
  SlowAccess(WarpBuilder& w, HelperCalls& calls, WarpValues& values, MemoryWindows& windows)
      : Emitter(w), calls_(calls), values_(values), windows_(windows) {}

  SlowPlace SlowPlaceOf(Value* address, const Access& access, const Window& window);
  Value* SlowImm(const Access& access);
  std::vector<Value*> SlowLoad(Value* host, const Access& access);
  std::vector<Value*> SlowLoads(SlowPlace place, const Access& access, llvm::ArrayRef<Value*> lines);
  std::vector<Value*> SlowLoadOne(Value* host, const Access& access);
  void SlowStore(SlowPlace place, const Access& access, std::vector<Value*> values);

 private:
  llvm::Function* SlowFunction(const char* what, const SlowPlace& place, const Access& access, unsigned lines,
                               llvm::Type* result, llvm::ArrayRef<llvm::Type*> data, bool& made);
  llvm::SmallVector<Value*, 12> SlowArguments(const SlowPlace& place, const Access& access,
                                              llvm::ArrayRef<Value*> lines);
  Value* SlowAddresses(llvm::Function* function, const SlowPlace& place);
  void WithPackedOf(llvm::Function* function, const SlowPlace& place, const std::function<void()>& body);
  llvm::Function* SlowLoadFunction(const SlowPlace& place, const Access& access, unsigned lines);
  llvm::Function* SlowLoadOneFunction(unsigned bytes);
  llvm::Function* SlowStoreFunction(const SlowPlace& place, const Access& access);

  HelperCalls& calls_;
  WarpValues& values_;
  MemoryWindows& windows_;
};

}  // namespace gridloom::exec
