// Addresses of lanes that follow no pattern known at compile time, and their check.
#pragma once

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

class WarpValues;

/// The lanes' addresses: 64 bits each, or the scalar of `address` plus (index * factor) << shift.
struct Irregular {
  llvm::Value* address;
  llvm::Value* lanes;  ///< <32 x i64>, null when indexed
  llvm::Value* index;  ///< <32 x i32>, null when not
  std::int64_t factor;
  unsigned shift;
  bool index_signed;
};

/// Which indices lie inside a window.
struct IndexBounds {
  llvm::Value *low, *steps;
};

class IrregularPlaces : Emitter {
 public:
  IrregularPlaces(WarpBuilder& w, WarpValues& values, MemoryWindows& windows)
      : Emitter(w), values_(values), windows_(windows) {}

  Irregular IrregularOf(Value* address, const Access& access);
  Value* IrregularInRange(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  Value* ScaledIndex(const Irregular& at);
  Value* HostBase(const Irregular& at, const Window& window);
  Value* HostPointers(const Irregular& at, const Access& access, const Window& window);
  Value* SpillPointers(const Irregular& at, const Access& access, const Window& window);
  Value* LanePointer(const Irregular& at, Value* spilled, const Window& window, Value* lane);
  Value* PointerAt(const Irregular& at, const Window& window, Value* index);

 private:
  IndexBounds MakeBounds(const Irregular& at, llvm::ArrayRef<Value*> bases, const Access& access, const Window& window);
  static unsigned BoundsRotation(const Irregular& at, const Access& access);
  IndexBounds BoundsOf(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);

  WarpValues& values_;
  MemoryWindows& windows_;
};

}  // namespace gridloom::exec
