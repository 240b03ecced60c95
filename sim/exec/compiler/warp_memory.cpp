// Loads and stores of the warp form. Consecutive lanes become vector accesses per 16-lane half; the rest gathers and
// scatters; what fails the check goes to a runtime helper that decides lane by lane.
#include "sim/exec/compiler/warp_memory.h"

#include <llvm/IR/Intrinsics.h>

#include <optional>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_called_access.h"
#include "sim/exec/compiler/warp_group.h"
#include "sim/exec/compiler/warp_guard.h"
#include "sim/exec/compiler/warp_halves.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_irregular.h"
#include "sim/exec/compiler/warp_places.h"
#include "sim/exec/compiler/warp_rows.h"
#include "sim/exec/compiler/warp_slow_access.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// All lanes store to one address: one of them wins, here the last.
void MemoryEmitter::StoreSame(const llvm::CallInst& call, Value* base, const Access& access, const Window& window,
                              const std::vector<Value*>& values) {
  Value* host = window.host ? b_.CreateAdd(base, window.host) : base;
  Value* lane = b_.CreateSub(b_.getInt32(31), b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, w_.mask, b_.getTrue()));
  for (unsigned part = 0; part < access.count; ++part) {
    Value* to = b_.CreateIntToPtr(b_.CreateAdd(host, b_.getInt64(part * access.element_bytes)), b_.getPtrTy());
    StoreScalar(b_.CreateExtractElement(values[part], lane), to, access, StoresFlag(call, access));
  }
}

/// A value that follows from the launch alone.
bool MemoryEmitter::IsSameInAllCtas(const Value* value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction) return llvm::isa<llvm::Constant>(value);
  const MarkerInfo* info = module_.MarkerOf(*instruction);
  if (!values_.IsEntryValue(instruction) || (info && info->kind == MarkerKind::kSpecial)) return false;
  if (info && info->kind == MarkerKind::kParam) return true;
  return llvm::all_of(instruction->operands(), [&](const llvm::Use& use) { return IsSameInAllCtas(use.get()); });
}

bool MemoryEmitter::StoresFlag(const llvm::CallInst& call, const Access& access) {
  return access.space != Space::kShared && access.space != Space::kLocal && !access.strong && access.count == 1 &&
         llvm::isa<llvm::ConstantInt>(call.getArgOperand(1)) && values_.ShapeOf(call.getArgOperand(0)).uniform() &&
         IsSameInAllCtas(call.getArgOperand(0));
}

void MemoryEmitter::StoreScalar(Value* value, Value* to, const Access& access, bool flag) {
  const llvm::Align align(access.element_bytes);
  const auto store = [&] {
    b_.CreateAlignedStore(value, to, align, access.strong);
    return std::vector<Value*>{};
  };
  if (!flag) return static_cast<void>(store());
  Value* there = b_.CreateICmpEQ(b_.CreateAlignedLoad(value->getType(), to, align), value);
  FastOrSlow(
      w_, there, [] { return std::vector<Value*>{}; }, store);
}

void MemoryEmitter::EmitUniformLoad(llvm::CallInst& call, const Access& access, const Window& window) {
  Value* address = values_.Base(call.getArgOperand(0));
  Value* ok = nullptr;
  if (module_.memcheck() && access.space == Space::kShared) {
    ok = windows_.SharedChecked(call.getArgOperand(0), access, AccessKind::kRead);
  } else {
    ok = LinearOk(call, {address, LanePattern{}, nullptr}, access, window);
  }
  Value* result = LoadScalar(address, ok, access, window, call.getType());
  if (access.strong) CompilerFence(b_);
  values_.Define(&call, values_.ShapeOf(&call).vector() ? w_.Splat(result) : result);
}

/// i1: a linear access needs nobody's look.
Value* MemoryEmitter::LinearOk(const llvm::CallInst& call, const Linear& linear, const Access& access,
                               const Window& window) {
  if (windows_.ProvenInRange(call.getArgOperand(0), access)) return b_.getTrue();
  Value* guard = guards_.Guard(call, access);
  if (!guard) return windows_.LinearInRange(linear, access, window);
  return linear.valid ? b_.CreateAnd(guard, linear.valid) : guard;
}

/// What all active lanes load from one address; `ok`: without asking the helper.
Value* MemoryEmitter::LoadScalar(Value* address, Value* ok, const Access& access, const Window& window,
                                 llvm::Type* type) {
  const auto host = [&] { return window.host ? b_.CreateAdd(address, window.host) : address; };
  const auto fast = [&] {
    Value* pointer = b_.CreateIntToPtr(host(), b_.getPtrTy());
    std::vector<Value*> parts;
    for (unsigned part = 0; part < access.count; ++part) {
      parts.push_back(b_.CreateAlignedLoad(access.element,
                                           b_.CreateConstGEP1_64(b_.getInt8Ty(), pointer, part * access.element_bytes),
                                           llvm::Align(1), access.strong));
    }
    return parts;
  };
  const std::vector<Value*> parts = FastOrSlow(w_, ok, fast, [&] { return slow_.SlowLoadOne(host(), access); });
  if (access.count == 1) return parts[0];
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned part = 0; part < access.count; ++part) result = b_.CreateInsertValue(result, parts[part], part);
  return result;
}

/// What the lanes load, part by part. Empty: the load is one of a group, which is made and defined.
std::vector<Value*> MemoryEmitter::LoadLanes(llvm::CallInst& call, const Access& access, const Window& window) {
  Value* address = call.getArgOperand(0);
  const bool odd_size = LeftToHelper(access);
  const std::optional<Linear> linear =
      access.space == Space::kLocal || odd_size || w_.half_warp() ? std::nullopt : values_.AsLinear(address);
  const bool halves = linear && Classify(linear->pattern, 0, access.bytes) != HalfKind::kOther &&
                      Classify(linear->pattern, 1, access.bytes) != HalfKind::kOther;
  const auto slow = [&] { return slow_.SlowLoads(slow_.SlowPlaceOf(address, access, window), access, access.line); };
  Value* checked = module_.memcheck() && access.space == Space::kShared && !odd_size
                       ? windows_.SharedChecked(address, access, AccessKind::kRead)
                       : nullptr;
  if (halves) {
    Value* ok = nullptr;
    if (checked) ok = linear->valid ? b_.CreateAnd(checked, linear->valid) : checked;
    else ok = LinearOk(call, *linear, access, window);
    return FastOrSlow(
        w_, ok, [&] { return halves_.LoadHalves(*linear, access, window); }, slow);
  }
  if (odd_size) return slow();
  if (access_calls_.ByCall(call)) {
    const LoadGroup group = load_groups_.MayGroup(access) ? load_groups_.GroupFrom(call, access) : LoadGroup{&call};
    if (group.size() == 1)
      return access_calls_.CallLoad(places_.IrregularOf(address, access), access, access, access.line);
    load_groups_.CallGroup(group, access);
    return {};
  }
  const std::vector<LoadGroup> groups = load_groups_.GroupsFrom(call, access);
  if (groups.size() > 1 || groups[0].size() > 1) {
    load_groups_.EmitGroups(groups, access, window);
    return {};
  }
  const Irregular at = places_.IrregularOf(address, access);
  llvm::AllocaInst* in_rows = rows_.RowNote(call, at, access);
  Value* ok = checked ? checked : places_.IrregularInRange(at, access, window);
  return FastOrSlow(
      w_, ok, [&] { return irregular_.LoadIrregularGroup(at, access, access, window, in_rows); }, slow);
}

void MemoryEmitter::EmitLoad(llvm::CallInst& call, const MarkerInfo& info) {
  if (load_groups_.IsDone(call)) return;  // loaded together with an earlier one
  Access access = windows_.AccessOf(call, info);
  const Window window = windows_.WindowOf(call, access);
  Value* address = call.getArgOperand(0);
  if (access.strong) CompilerFence(b_);
  if (module_.memcheck() && access.strong) calls_.CheckOrder(kCheckOrderCta);
  if (info.space != Space::kLocal && values_.ShapeOf(address).uniform() && !LeftToHelper(access))
    return EmitUniformLoad(call, access, window);
  std::optional<WholeWarp> whole;
  if (halves_.InRowsOfWhole(address, access, false)) whole.emplace(w_);
  std::vector<Value*> parts = LoadLanes(call, access, window);
  if (parts.empty()) return;
  if (access.strong) CompilerFence(b_);
  const bool uniform = !values_.ShapeOf(&call).vector();
  if (uniform) {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, w_.mask, b_.getTrue());
    for (Value*& part : parts) part = b_.CreateExtractElement(part, lane);
  }
  if (whole) {
    whole.reset();
    if (!uniform)
      for (Value*& part : parts) part = w_.Pack(part);
  }
  Value* result = parts[0];
  if (access.count > 1) {
    result = llvm::PoisonValue::get(uniform ? call.getType() : w_.LanesType(call.getType()));
    for (unsigned part = 0; part < access.count; ++part) result = b_.CreateInsertValue(result, parts[part], part);
  }
  values_.Define(&call, result);
}

StoreWay MemoryEmitter::StoreWayOf(Value* address, const Access& access) {
  StoreWay way;
  way.odd_size = LeftToHelper(access);
  const bool uniform = values_.ShapeOf(address).uniform();
  const bool any_order = w_.half_warp() && !uniform;  // lanes of a half need not be neighbours
  if (access.space != Space::kLocal && !way.odd_size && !any_order) way.linear = values_.AsLinear(address);
  way.halves = way.linear && Classify(way.linear->pattern, 0, access.bytes) == HalfKind::kConsecutive &&
               Classify(way.linear->pattern, 1, access.bytes) == HalfKind::kConsecutive;
  way.same = access.space != Space::kLocal && !way.odd_size && uniform;
  return way;
}

/// i1: nobody has to be asked. Finds out where lanes without a pattern store.
Value* MemoryEmitter::StoreInRange(const llvm::CallInst& call, const Access& access, const Window& window,
                                   StoreWay& way) {
  Value* address = call.getArgOperand(0);
  const bool regular = way.halves || way.same;
  if (module_.memcheck() && access.space == Space::kShared && !way.odd_size) {
    Value* ok = windows_.SharedChecked(address, access, AccessKind::kWrite);
    if (!regular) way.irregular = places_.IrregularOf(address, access);
    return regular && way.linear->valid ? b_.CreateAnd(ok, way.linear->valid) : ok;
  }
  if (regular) return LinearOk(call, *way.linear, access, window);
  way.irregular = places_.IrregularOf(address, access);
  return way.odd_size ? static_cast<Value*>(b_.getFalse()) : places_.IrregularInRange(way.irregular, access, window);
}

/// A store that is in range.
void MemoryEmitter::StoreLanes(const llvm::CallInst& call, const Access& access, const Window& window,
                               const StoreWay& way, const std::vector<Value*>& values) {
  if (way.halves) return halves_.StoreHalves(*way.linear, access, window, values);
  if (way.same) return StoreSame(call, way.linear->base, access, window, values);
  if (way.odd_size) return;  // never in range
  irregular_.StoreIrregular(way.irregular, access, window, values, rows_.RowsSeen(call, way.irregular, access));
}

void MemoryEmitter::EmitStore(llvm::CallInst& call, const MarkerInfo& info) {
  Access access = windows_.AccessOf(call, info);
  const Window window = windows_.WindowOf(call, access);
  Value* address = call.getArgOperand(0);
  std::vector<Value*> values;
  for (unsigned part = 0; part < access.count; ++part) values.push_back(values_.Lanes(call.getArgOperand(1 + part)));
  if (access.strong) CompilerFence(b_);
  if (module_.memcheck() && access.strong) calls_.CheckOrder(kCheckOrderCta);
  std::optional<WholeWarp> whole;
  if (halves_.InRowsOfWhole(address, access, true)) {
    for (Value*& value : values) value = w_.Unpack(value);
    whole.emplace(w_);
  }
  StoreWay way = StoreWayOf(address, access);
  if (!way.halves && !way.same && !way.odd_size && access_calls_.ByCall(call)) {
    access_calls_.CallStore(places_.IrregularOf(address, access), access, values);
    if (access.strong) CompilerFence(b_);
    return;
  }
  FastOrSlow(
      w_, StoreInRange(call, access, window, way),
      [&] {
        StoreLanes(call, access, window, way, values);
        return std::vector<Value*>{};
      },
      [&] {
        slow_.SlowStore(slow_.SlowPlaceOf(address, access, window), access, values);
        return std::vector<Value*>{};
      });
  if (access.strong) CompilerFence(b_);
}

}  // namespace gridloom::exec
