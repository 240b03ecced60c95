// Loads and stores: chooses how each is made.
#pragma once

#include <optional>
#include <vector>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_places.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;
class HalfAccess;
class SlowAccess;
class RowAccess;
class IrregularAccess;
class AccessCalls;
class LoadGroups;
class AddressGuards;

/// How a store is made where it is in range.
struct StoreWay {
  std::optional<Linear> linear;
  bool halves = false;  ///< lanes are neighbours in each half
  bool same = false;    ///< all lanes store to one place
  bool odd_size = false;
  Irregular irregular{};  ///< neither of these
};

class MemoryEmitter : Emitter {
 public:
  MemoryEmitter(WarpBuilder& w, HelperCalls& calls, WarpValues& values, MemoryWindows& windows, HalfAccess& halves,
                SlowAccess& slow, IrregularPlaces& places, RowAccess& rows, IrregularAccess& irregular,
                AccessCalls& access_calls, LoadGroups& load_groups, AddressGuards& guards)
      : Emitter(w),
        calls_(calls),
        values_(values),
        windows_(windows),
        halves_(halves),
        slow_(slow),
        places_(places),
        rows_(rows),
        irregular_(irregular),
        access_calls_(access_calls),
        load_groups_(load_groups),
        guards_(guards) {}

  void EmitLoad(llvm::CallInst& call, const MarkerInfo& info);
  void EmitStore(llvm::CallInst& call, const MarkerInfo& info);
  Value* LinearOk(const llvm::CallInst& call, const Linear& linear, const Access& access, const Window& window);
  /// Whether a store is one that many CTAs make alike: a constant, to the same place from everywhere.
  bool StoresFlag(const llvm::CallInst& call, const Access& access);
  /// A store of one lane's value, in range. A flag that is set already is left alone: its line stays in the caches of
  /// all cores, in place of going from one to another with each store.
  void StoreScalar(Value* value, Value* to, const Access& access, bool flag);
  Value* LoadScalar(Value* address, Value* ok, const Access& access, const Window& window, llvm::Type* type);

 private:
  void EmitUniformLoad(llvm::CallInst& call, const Access& access, const Window& window);
  std::vector<Value*> LoadLanes(llvm::CallInst& call, const Access& access, const Window& window);
  StoreWay StoreWayOf(Value* address, const Access& access);
  Value* StoreInRange(const llvm::CallInst& call, const Access& access, const Window& window, StoreWay& way);
  void StoreLanes(const llvm::CallInst& call, const Access& access, const Window& window, const StoreWay& way,
                  const std::vector<Value*>& values);
  void StoreSame(const llvm::CallInst& call, Value* base, const Access& access, const Window& window,
                 const std::vector<Value*>& values);
  bool IsSameInAllCtas(const Value* value);

  HelperCalls& calls_;
  WarpValues& values_;
  MemoryWindows& windows_;
  HalfAccess& halves_;
  SlowAccess& slow_;
  IrregularPlaces& places_;
  RowAccess& rows_;
  IrregularAccess& irregular_;
  AccessCalls& access_calls_;
  LoadGroups& load_groups_;
  AddressGuards& guards_;
};

}  // namespace gridloom::exec
