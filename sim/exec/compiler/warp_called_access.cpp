// Loads and stores of any addresses by call. In line such an access is a dozen blocks in each of the two copies of its
// own, and code generation takes most of the compile time. So where a function has many, only those in the deepest
// loops stay in line; the others call a function of the module, one for each kind of access. It has the code that would
// stand in line.
#include "sim/exec/compiler/warp_called_access.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_halves.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_irregular.h"
#include "sim/exec/compiler/warp_places.h"
#include "sim/exec/compiler/warp_slow_access.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// Arguments of such a function. An index follows the scalar it counts from, then the lines of further parts of a load,
/// or what is stored.
enum Argument : unsigned { kWarp, kMask, kLine, kImm, kPlace, kMore };

/// While it lives, code is emitted into `function` instead, for the lanes of its mask.
class Nested {
 public:
  Nested(WarpBuilder& outer, llvm::Function* function)
      : outer_(outer),
        place_(outer.b),
        target_(outer.target),
        warp_(outer.warp),
        mask_(outer.mask),
        mask_lanes_(outer.mask_lanes),
        entry_(outer.entry),
        head_(outer.head),
        divergent_(outer.divergent) {
    Swap();
    outer.target = function;
    outer.warp = function->getArg(kWarp);
    outer.mask = function->getArg(kMask);
    outer.mask_lanes = nullptr;
    outer.divergent = true;
    outer.entry = outer.head = outer.NewBlock("entry");
    BasicBlock* start = outer.NewBlock("start");
    outer.b.SetInsertPoint(outer.entry);
    outer.b.CreateBr(start);  // AtEntry inserts before this
    outer.b.SetInsertPoint(start);
    outer.b.SetCurrentDebugLocation({});
  }
  ~Nested() {
    Swap();
    outer_.target = target_;
    outer_.warp = warp_;
    outer_.mask = mask_;
    outer_.mask_lanes = mask_lanes_;
    outer_.entry = entry_;
    outer_.head = head_;
    outer_.divergent = divergent_;
  }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  void Swap() {
    std::swap(outer_.base_cache, bases_);
    std::swap(outer_.lanes_cache, lanes_);
    std::swap(outer_.entry_values, entry_values_);
    std::swap(outer_.scratch, scratch_);
  }

  WarpBuilder& outer_;
  llvm::IRBuilder<>::InsertPointGuard place_;
  llvm::Function* target_;
  Value *warp_, *mask_, *mask_lanes_;
  BasicBlock *entry_, *head_;
  bool divergent_;
  decltype(WarpBuilder::base_cache) bases_, lanes_;
  decltype(WarpBuilder::entry_values) entry_values_;
  decltype(WarpBuilder::scratch) scratch_;
};

}  // namespace

/// A load or store that LoadIrregularGroup or StoreIrregular would make.
bool AccessCalls::IsIrregular(const llvm::CallInst& call, const MarkerInfo& info) {
  const bool store = info.kind == MarkerKind::kStore;
  if (!store && info.kind != MarkerKind::kLoad) return false;
  const Access access = windows_.AccessOf(call, info);
  if (LeftToHelper(access)) return false;
  if (info.space == Space::kLocal) return true;
  Value* address = call.getArgOperand(0);
  return !values_.ShapeOf(address).uniform() && !halves_.InRows(address, access, store);
}

/// Decides which accesses stay in line.
void AccessCalls::PlanAccesses() {
  constexpr std::size_t kMostInLine = 24;  // with AVX-512
  struct Site {
    const llvm::CallInst* call;
    unsigned depth;
  };
  std::vector<Site> sites;
  for (const BasicBlock* block : source_.order.blocks) {
    for (const llvm::Instruction& instruction : *block) {
      const MarkerInfo* info = module_.MarkerOf(instruction);
      if (info && IsIrregular(llvm::cast<llvm::CallInst>(instruction), *info))
        sites.push_back({llvm::cast<llvm::CallInst>(&instruction), source_.loops.getLoopDepth(block)});
    }
  }
  const std::size_t most = kMostInLine / module_.pieces;
  has_many_ = sites.size() > most;
  std::ranges::stable_sort(sites, std::ranges::greater(), &Site::depth);
  if (has_many_) sites.resize(most);
  for (const Site& site : sites) in_line_.insert(site.call);
}

/// Whether the access that is being emitted is made by call.
bool AccessCalls::ByCall(const llvm::CallInst& call) const {
  if (module_.memcheck() || w_.half_warp() || !has_many_) return false;
  return !in_line_.contains(&call) || (w_.divergent_copy && source_.loops.getLoopDepth(call.getParent()) == 0);
}

/// The address in the form in which it is passed: an index in units of 1 << shift, or lanes.
Irregular AccessCalls::PassedAs(const Irregular& at) {
  if (!at.index || at.factor == 1) return at;
  return {at.address, values_.Lanes(at.address), nullptr, 1, 0, false};
}

/// The module's function for accesses of this kind. `made`: it is new, and its body is still to be emitted.
llvm::Function* AccessCalls::AccessFunction(const char* what, const Irregular& at, const Access& access,
                                            llvm::Type* result, llvm::ArrayRef<llvm::Type*> more, bool& made) {
  std::string name = std::string("gl.") + what;
  const unsigned space =
      access.space == Space::kGeneric ? static_cast<unsigned>(Space::kGlobal) : static_cast<unsigned>(access.space);
  const unsigned index = at.index ? 2 + 2 * at.shift + (at.index_signed ? 1 : 0) : 0;
  for (const unsigned part : {space, access.element_bytes, access.count, access.align, access.strong ? 1u : 0u, index})
    name += "." + std::to_string(part);
  llvm::Function* function = w_.target->getParent()->getFunction(name);
  made = function == nullptr;
  if (function) return function;
  llvm::SmallVector<llvm::Type*, 8> types;
  if (at.index) types.push_back(WarpType(b_.getInt32Ty()));
  types.append(more.begin(), more.end());
  function = calls_.OutOfLine(name, result, types, at.index ? b_.getInt64Ty() : nullptr);
  function->removeFnAttr(llvm::Attribute::Cold);
  return function;
}

/// The access that `function` is asked for, inside of it.
Irregular AccessCalls::PlaceIn(llvm::Function* function, const Irregular& at) {
  Value* place = function->getArg(kPlace);
  (at.index ? w_.base_cache : w_.lanes_cache)[place] = place;
  if (at.index) return {place, nullptr, function->getArg(kMore), 1, at.shift, at.index_signed};
  return {place, place, nullptr, 1, 0, false};
}

llvm::SmallVector<Value*, 8> AccessCalls::AccessArguments(const Irregular& at, const Access& access) {
  llvm::SmallVector<Value*, 8> arguments{w_.warp, w_.mask, access.line, slow_.SlowImm(access),
                                         at.index ? values_.Base(at.address) : at.lanes};
  if (at.index) arguments.push_back(at.index);
  return arguments;
}

/// Host addresses of the lanes, <32 x i64>.
Value* AccessCalls::HostAddresses(const Irregular& at, const Access& access, const Window& window) {
  return b_.CreatePtrToInt(places_.HostPointers(at, access, window), w_.LanesType(b_.getInt64Ty()));
}

/// While the access is made, the fault handler finds its line in the warp.
void AccessCalls::NoteAccessLine(Value* line) {
  b_.CreateStore(line, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), w_.warp, offsetof(WarpCtx, access_line)), true);
}

/// What LoadIrregularGroup does for one place, by call. `whole` is what each lane loads: several accesses like `row` to
/// neighbouring words, whose lines are `lines`, or that access itself.
std::vector<Value*> AccessCalls::CallLoad(const Irregular& place, const Access& whole, const Access& row,
                                          llvm::ArrayRef<Value*> lines) {
  const Irregular at = PassedAs(place);
  llvm::Type* part = WarpType(b_.getIntNTy(whole.element_bytes * 8));
  auto* result = llvm::StructType::get(b_.getContext(), llvm::SmallVector<llvm::Type*, 4>(whole.count, part));
  bool made = false;
  const llvm::SmallVector<llvm::Type*, 4> line_types(lines.size() - 1, b_.getInt32Ty());
  llvm::Function* function =
      AccessFunction(lines.size() > 1 ? "load_words" : "load", at, whole, result, line_types, made);
  if (made) EmitLoadFunction(function, at, whole, row, static_cast<unsigned>(lines.size()));
  llvm::SmallVector<Value*, 8> arguments = AccessArguments(at, row);
  arguments.append(lines.begin() + 1, lines.end());
  Value* loaded = b_.CreateCall(function, arguments);
  std::vector<Value*> parts;
  for (unsigned i = 0; i < whole.count; ++i)
    parts.push_back(b_.CreateBitCast(b_.CreateExtractValue(loaded, i), w_.LanesType(whole.element)));
  return parts;
}

void AccessCalls::EmitLoadFunction(llvm::Function* function, const Irregular& passed, Access whole, Access row,
                                   unsigned lines) {
  const Nested nested(w_, function);
  whole.element = row.element = b_.getIntNTy(whole.element_bytes * 8);
  whole.line = row.line = function->getArg(kLine);
  row.imm = function->getArg(kImm);
  const Window window = windows_.WindowOf(row.space);
  const Irregular at = PlaceIn(function, passed);
  const auto fast = [&] {
    NoteAccessLine(row.line);
    std::vector<Value*> parts = irregular_.LoadIrregularGroup(at, whole, row, window, nullptr);
    NoteAccessLine(b_.getInt32(0));
    return parts;
  };
  const auto slow = [&] {
    Value* host = HostAddresses(at, row, window);
    if (lines == 1) return slow_.SlowLoad(host, row);
    std::vector<Value*> parts;
    for (unsigned part = 0; part < lines; ++part) {
      if (part > 0) row.line = function->getArg(static_cast<unsigned>(function->arg_size()) - lines + part);
      parts.push_back(slow_.SlowLoad(b_.CreateAdd(host, w_.Splat(b_.getInt64(part * row.bytes))), row)[0]);
    }
    return parts;
  };
  const std::vector<Value*> parts = FastOrSlow(w_, places_.IrregularInRange(at, whole, window), fast, slow);
  Value* result = llvm::PoisonValue::get(function->getReturnType());
  for (unsigned part = 0; part < whole.count; ++part) {
    llvm::Type* type = llvm::cast<llvm::StructType>(function->getReturnType())->getElementType(part);
    result = b_.CreateInsertValue(result, b_.CreateBitCast(parts[part], type), part);
  }
  b_.CreateRet(result);
}

/// What StoreIrregular does, by call.
void AccessCalls::CallStore(const Irregular& place, const Access& access, const std::vector<Value*>& values) {
  const Irregular at = PassedAs(place);
  const llvm::SmallVector<llvm::Type*, 4> types(access.count, WarpType(b_.getIntNTy(access.element_bytes * 8)));
  bool made = false;
  llvm::Function* function = AccessFunction("store", at, access, b_.getVoidTy(), types, made);
  if (made) EmitStoreFunction(function, at, access);
  llvm::SmallVector<Value*, 8> arguments = AccessArguments(at, access);
  for (Value* value : values) arguments.push_back(b_.CreateBitCast(value, types[0]));
  b_.CreateCall(function, arguments);
}

void AccessCalls::EmitStoreFunction(llvm::Function* function, const Irregular& passed, Access access) {
  const Nested nested(w_, function);
  access.element = b_.getIntNTy(access.element_bytes * 8);
  access.line = function->getArg(kLine);
  access.imm = function->getArg(kImm);
  const Window window = windows_.WindowOf(access.space);
  const Irregular at = PlaceIn(function, passed);
  std::vector<Value*> values;
  for (unsigned part = 0; part < access.count; ++part)
    values.push_back(function->getArg(static_cast<unsigned>(function->arg_size()) - access.count + part));
  const auto fast = [&] {
    NoteAccessLine(access.line);
    irregular_.StoreIrregular(at, access, window, values, nullptr);
    NoteAccessLine(b_.getInt32(0));
    return std::vector<Value*>{};
  };
  const auto slow = [&] {
    slow_.SlowStore({.lanes = HostAddresses(at, access, window)}, access, values);
    return std::vector<Value*>{};
  };
  FastOrSlow(w_, places_.IrregularInRange(at, access, window), fast, slow);
  b_.CreateRetVoid();
}

}  // namespace gridloom::exec
