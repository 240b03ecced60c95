// Loads and stores of any addresses by call. In line such an access is a dozen blocks in each of the two copies of its
// own, and code generation takes most of the compile time. So where a function has many, only those in the deepest
// loops stay in line; the others call a function of the module, one for each kind of access. It has the code that would
// stand in line.
#include <algorithm>
#include <cstddef>
#include <functional>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// Arguments of such a function. An index follows the scalar it counts from, then the lines of further parts of a load,
/// or what is stored.
enum Argument : unsigned { kWarp, kMask, kLine, kImm, kPlace, kMore };

}  // namespace

/// While it lives, code is emitted into `function` instead, for the lanes of its mask.
class WarpFunction::Nested {
 public:
  Nested(WarpFunction& outer, llvm::Function* function)
      : outer_(outer),
        place_(outer.b_),
        target_(outer.target_),
        warp_(outer.warp_),
        mask_(outer.mask_),
        mask_lanes_(outer.mask_lanes_),
        entry_(outer.entry_),
        head_(outer.head_),
        divergent_(outer.divergent_) {
    Swap();
    outer.target_ = function;
    outer.warp_ = function->getArg(kWarp);
    outer.mask_ = function->getArg(kMask);
    outer.mask_lanes_ = nullptr;
    outer.divergent_ = true;
    outer.entry_ = outer.head_ = outer.NewBlock("entry");
    BasicBlock* start = outer.NewBlock("start");
    outer.b_.SetInsertPoint(outer.entry_);
    outer.b_.CreateBr(start);  // AtEntry inserts before this
    outer.b_.SetInsertPoint(start);
    outer.b_.SetCurrentDebugLocation({});
  }
  ~Nested() {
    Swap();
    outer_.target_ = target_;
    outer_.warp_ = warp_;
    outer_.mask_ = mask_;
    outer_.mask_lanes_ = mask_lanes_;
    outer_.entry_ = entry_;
    outer_.head_ = head_;
    outer_.divergent_ = divergent_;
  }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  void Swap() {
    std::swap(outer_.base_cache_, bases_);
    std::swap(outer_.lanes_cache_, lanes_);
    std::swap(outer_.entry_values_, entry_values_);
    std::swap(outer_.scratch_, scratch_);
  }

  WarpFunction& outer_;
  llvm::IRBuilder<>::InsertPointGuard place_;
  llvm::Function* target_;
  Value *warp_, *mask_, *mask_lanes_;
  BasicBlock *entry_, *head_;
  bool divergent_;
  llvm::DenseMap<const Value*, Value*> bases_, lanes_;
  decltype(WarpFunction::entry_values_) entry_values_;
  decltype(WarpFunction::scratch_) scratch_;
};

/// A load or store that LoadIrregularGroup or StoreIrregular would make.
bool WarpFunction::IsIrregular(const llvm::CallInst& call, const MarkerInfo& info) {
  const bool store = info.kind == MarkerKind::kStore;
  if (!store && info.kind != MarkerKind::kLoad) return false;
  const Access access = AccessOf(call, info);
  if (LeftToHelper(access)) return false;
  if (info.space == Space::kLocal) return true;
  Value* address = call.getArgOperand(0);
  return !ShapeOf(address).uniform() && !InRows(address, access, store);
}

/// Decides which accesses stay in line.
void WarpFunction::PlanAccesses() {
  constexpr std::size_t kMostInLine = 24;  // with AVX-512
  struct Site {
    const llvm::CallInst* call;
    unsigned depth;
  };
  std::vector<Site> sites;
  for (const BasicBlock* block : order_.blocks) {
    for (const llvm::Instruction& instruction : *block) {
      const MarkerInfo* info = module_.MarkerOf(instruction);
      if (info && IsIrregular(llvm::cast<llvm::CallInst>(instruction), *info))
        sites.push_back({llvm::cast<llvm::CallInst>(&instruction), loops_->getLoopDepth(block)});
    }
  }
  const std::size_t most = kMostInLine / module_.pieces;
  has_many_accesses_ = sites.size() > most;
  std::ranges::stable_sort(sites, std::ranges::greater(), &Site::depth);
  if (has_many_accesses_) sites.resize(most);
  for (const Site& site : sites) in_line_.insert(site.call);
}

/// Whether the access that is being emitted is made by call.
bool WarpFunction::ByCall(const llvm::CallInst& call) const {
  if (memcheck() || half_warp() || !has_many_accesses_) return false;
  return !in_line_.contains(&call) || (divergent_copy_ && loops_->getLoopDepth(call.getParent()) == 0);
}

/// The address in the form in which it is passed: an index in units of 1 << shift, or lanes.
WarpFunction::Irregular WarpFunction::PassedAs(const Irregular& at) {
  if (!at.index || at.factor == 1) return at;
  return {at.address, Lanes(at.address), nullptr, 1, 0, false};
}

/// The module's function for accesses of this kind. `made`: it is new, and its body is still to be emitted.
llvm::Function* WarpFunction::AccessFunction(const char* what, const Irregular& at, const Access& access,
                                             llvm::Type* result, llvm::ArrayRef<llvm::Type*> more, bool& made) {
  std::string name = std::string("gl.") + what;
  const unsigned space =
      access.space == Space::kGeneric ? static_cast<unsigned>(Space::kGlobal) : static_cast<unsigned>(access.space);
  const unsigned index = at.index ? 2 + 2 * at.shift + (at.index_signed ? 1 : 0) : 0;
  for (const unsigned part : {space, access.element_bytes, access.count, access.align, access.strong ? 1u : 0u, index})
    name += "." + std::to_string(part);
  llvm::Function* function = target_->getParent()->getFunction(name);
  made = function == nullptr;
  if (function) return function;
  llvm::SmallVector<llvm::Type*, 8> types;
  if (at.index) types.push_back(WarpType(b_.getInt32Ty()));
  types.append(more.begin(), more.end());
  function = OutOfLine(name, result, types, at.index ? b_.getInt64Ty() : nullptr);
  function->removeFnAttr(llvm::Attribute::Cold);
  return function;
}

/// The access that `function` is asked for, inside of it.
WarpFunction::Irregular WarpFunction::PlaceIn(llvm::Function* function, const Irregular& at) {
  Value* place = function->getArg(kPlace);
  (at.index ? base_cache_ : lanes_cache_)[place] = place;
  if (at.index) return {place, nullptr, function->getArg(kMore), 1, at.shift, at.index_signed};
  return {place, place, nullptr, 1, 0, false};
}

llvm::SmallVector<Value*, 8> WarpFunction::AccessArguments(const Irregular& at, const Access& access) {
  llvm::SmallVector<Value*, 8> arguments{warp_, mask_, access.line, SlowImm(access),
                                         at.index ? Base(at.address) : at.lanes};
  if (at.index) arguments.push_back(at.index);
  return arguments;
}

/// Host addresses of the lanes, <32 x i64>.
Value* WarpFunction::HostAddresses(const Irregular& at, const Access& access, const Window& window) {
  return b_.CreatePtrToInt(HostPointers(at, access, window), LanesType(b_.getInt64Ty()));
}

/// While the access is made, the fault handler finds its line in the warp.
void WarpFunction::NoteAccessLine(Value* line) {
  b_.CreateStore(line, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, access_line)), true);
}

/// What LoadIrregularGroup does for one place, by call. `whole` is what each lane loads: several accesses like `row` to
/// neighbouring words, whose lines are `lines`, or that access itself.
std::vector<Value*> WarpFunction::CallLoad(const Irregular& place, const Access& whole, const Access& row,
                                           llvm::ArrayRef<Value*> lines) {
  const Irregular at = PassedAs(place);
  llvm::Type* part = WarpType(b_.getIntNTy(whole.element_bytes * 8));
  auto* result = llvm::StructType::get(context_, llvm::SmallVector<llvm::Type*, 4>(whole.count, part));
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
    parts.push_back(b_.CreateBitCast(b_.CreateExtractValue(loaded, i), LanesType(whole.element)));
  return parts;
}

void WarpFunction::EmitLoadFunction(llvm::Function* function, const Irregular& passed, Access whole, Access row,
                                    unsigned lines) {
  const Nested nested(*this, function);
  whole.element = row.element = b_.getIntNTy(whole.element_bytes * 8);
  whole.line = row.line = function->getArg(kLine);
  row.imm = function->getArg(kImm);
  const Window window = WindowOf(row.space);
  const Irregular at = PlaceIn(function, passed);
  const auto fast = [&] {
    NoteAccessLine(row.line);
    std::vector<Value*> parts = LoadIrregularGroup(at, whole, row, window, nullptr);
    NoteAccessLine(b_.getInt32(0));
    return parts;
  };
  const auto slow = [&] {
    Value* host = HostAddresses(at, row, window);
    if (lines == 1) return SlowLoad(host, row);
    std::vector<Value*> parts;
    for (unsigned part = 0; part < lines; ++part) {
      if (part > 0) row.line = function->getArg(static_cast<unsigned>(function->arg_size()) - lines + part);
      parts.push_back(SlowLoad(b_.CreateAdd(host, Splat(b_.getInt64(part * row.bytes))), row)[0]);
    }
    return parts;
  };
  const std::vector<Value*> parts = FastOrSlow(IrregularInRange(at, whole, window), fast, slow);
  Value* result = llvm::PoisonValue::get(function->getReturnType());
  for (unsigned part = 0; part < whole.count; ++part) {
    llvm::Type* type = llvm::cast<llvm::StructType>(function->getReturnType())->getElementType(part);
    result = b_.CreateInsertValue(result, b_.CreateBitCast(parts[part], type), part);
  }
  b_.CreateRet(result);
}

/// What StoreIrregular does, by call.
void WarpFunction::CallStore(const Irregular& place, const Access& access, const std::vector<Value*>& values) {
  const Irregular at = PassedAs(place);
  const llvm::SmallVector<llvm::Type*, 4> types(access.count, WarpType(b_.getIntNTy(access.element_bytes * 8)));
  bool made = false;
  llvm::Function* function = AccessFunction("store", at, access, b_.getVoidTy(), types, made);
  if (made) EmitStoreFunction(function, at, access);
  llvm::SmallVector<Value*, 8> arguments = AccessArguments(at, access);
  for (Value* value : values) arguments.push_back(b_.CreateBitCast(value, types[0]));
  b_.CreateCall(function, arguments);
}

void WarpFunction::EmitStoreFunction(llvm::Function* function, const Irregular& passed, Access access) {
  const Nested nested(*this, function);
  access.element = b_.getIntNTy(access.element_bytes * 8);
  access.line = function->getArg(kLine);
  access.imm = function->getArg(kImm);
  const Window window = WindowOf(access.space);
  const Irregular at = PlaceIn(function, passed);
  std::vector<Value*> values;
  for (unsigned part = 0; part < access.count; ++part)
    values.push_back(function->getArg(static_cast<unsigned>(function->arg_size()) - access.count + part));
  const auto fast = [&] {
    NoteAccessLine(access.line);
    StoreIrregular(at, access, window, values, nullptr);
    NoteAccessLine(b_.getInt32(0));
    return std::vector<Value*>{};
  };
  const auto slow = [&] {
    SlowStore({.lanes = HostAddresses(at, access, window)}, access, values);
    return std::vector<Value*>{};
  };
  FastOrSlow(IrregularInRange(at, access, window), fast, slow);
  b_.CreateRetVoid();
}

}  // namespace gridloom::exec
