// Loads and stores that fail the check: one out-of-line function per access size, which hands all lanes to a runtime
// helper.
#include "sim/exec/compiler/warp_slow_access.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>

#include "sim/exec/compiler/warp_halves.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// Arguments of a function of all lanes: the addresses, and behind them base, scale and the lanes of a half warp.
constexpr unsigned kAddresses = 4, kBase = 5, kScale = 6, kPacked = 7;

llvm::FixedVectorType* DataType(llvm::IRBuilder<>& b, unsigned bytes, unsigned lanes) {
  return llvm::FixedVectorType::get(b.getIntNTy(std::min(bytes, 8u) * 8), lanes * std::max(1u, bytes / 8));
}

}  // namespace

/// The lanes' host addresses. What is worth a call of its own only if it happens is made there: base and index instead
/// of 32 addresses, which cost four machine vectors to make and to keep.
SlowPlace SlowAccess::SlowPlaceOf(Value* address, const Access& access, const Window& window) {
  const Shape shape = values_.ShapeOf(address);
  const bool indexed = shape.kind == ShapeKind::kIndexed && shape.pattern == LanePattern{};
  const bool affine =
      (shape.uniform() || shape.kind == ShapeKind::kAffine) &&
      std::ranges::all_of(shape.pattern, [](std::int64_t distance) { return llvm::isInt<32>(distance); });
  const bool fits_half = !w_.half_warp() || access.bytes <= 8;  // what Pack and Unpack can move
  if (calls_.SwitchesInLine() || access.space == Space::kLocal || (!indexed && !affine) || !fits_half)
    return {.lanes = windows_.HostLanes(values_.Lanes(address), access, window)};
  Value* base = values_.Base(address);
  SlowPlace place{.base = window.host ? b_.CreateAdd(base, window.host) : base};
  if (indexed) {
    place.index = values_.Lanes(const_cast<Value*>(shape.index));
    place.scale = shape.scale;
    place.index_signed = shape.index_signed;
  } else {
    place.index = w_.PatternVector(shape.pattern, b_.getInt32Ty());
  }
  return place;
}

/// Named by what it does; `made` when it was not there before, and the builder is at its begin. `data`: types of the
/// last arguments.
llvm::Function* SlowAccess::SlowFunction(const char* what, const SlowPlace& place, const Access& access, unsigned lines,
                                         llvm::Type* result, llvm::ArrayRef<llvm::Type*> data, bool& made) {
  const bool half = place.index && w_.half_warp();
  std::string name = std::string("gl.") + what + "_slow." + std::to_string(access.bytes);
  if (access.count > 1) name += "." + std::to_string(access.count);
  if (place.index) name += place.index_signed ? ".signed" : ".unsigned";
  if (half) name += ".half";
  if (lines > 1) name += ".x" + std::to_string(lines);
  llvm::Function* function = w_.target->getParent()->getFunction(name);
  made = !function;
  if (function) return function;
  llvm::SmallVector<llvm::Type*, 8> more;
  if (place.index) more.append({b_.getInt64Ty(), b_.getInt64Ty()});
  if (half) more.push_back(b_.getInt32Ty());
  more.append(lines - 1, b_.getInt32Ty());
  more.append(data.begin(), data.end());
  function = calls_.OutOfLine(name, result, more, place.index ? place.index->getType() : nullptr);
  b_.SetInsertPoint(BasicBlock::Create(b_.getContext(), "entry", function));
  b_.SetCurrentDebugLocation({});
  return function;
}

llvm::SmallVector<Value*, 12> SlowAccess::SlowArguments(const SlowPlace& place, const Access& access,
                                                        llvm::ArrayRef<Value*> lines) {
  llvm::SmallVector<Value*, 12> arguments{w_.warp, w_.WarpMask(), lines.front(), SlowImm(access),
                                          place.index ? place.index : place.lanes};
  if (place.index) arguments.append({place.base, b_.getInt64(static_cast<std::uint64_t>(place.scale))});
  if (place.index && w_.half_warp()) arguments.push_back(w_.packed);
  arguments.append(lines.begin() + 1, lines.end());
  return arguments;
}

/// In such a function: <32 x i64>.
Value* SlowAccess::SlowAddresses(llvm::Function* function, const SlowPlace& place) {
  Value* lanes = function->getArg(kAddresses);
  if (!place.index) return lanes;
  if (w_.half_warp()) lanes = w_.Unpack(lanes);
  llvm::Type* wide = WarpType(b_.getInt64Ty());
  Value* index = place.index_signed ? b_.CreateSExt(lanes, wide) : b_.CreateZExt(lanes, wide);
  const auto splat = [&](unsigned argument) { return b_.CreateVectorSplat(kWarpSize, function->getArg(argument)); };
  return b_.CreateAdd(splat(kBase), b_.CreateMul(index, splat(kScale)));
}

/// Runs `body` for the half warp that the function was given, if it was.
void SlowAccess::WithPackedOf(llvm::Function* function, const SlowPlace& place, const std::function<void()>& body) {
  if (!place.index || !w_.half_warp()) return body();
  Value *const packed = w_.packed, *const places = w_.places;
  w_.packed = function->getArg(kPacked);
  w_.places = w_.PlacesOf(w_.packed);
  body();
  w_.packed = packed;
  w_.places = places;
}

/// @gl.load_slow.B(ptr warp, i32 mask, i32 line, i64 imm, addresses…): calls the helper, once for each line of
/// neighbouring words, and gives word by word what the lanes load. One per size and kind of place; out of line, because
/// every access has such a path in both copies of its block.
llvm::Function* SlowAccess::SlowLoadFunction(const SlowPlace& place, const Access& access, unsigned lines) {
  const unsigned bytes = access.bytes, words = lines * access.count;
  const bool half = place.index && w_.half_warp();
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  llvm::Type* data = DataType(b_, bytes, kWarpSize);
  llvm::Type* word =
      llvm::FixedVectorType::get(b_.getIntNTy(access.element_bytes * 8), half ? kWarpSize / 2 : kWarpSize);
  const llvm::SmallVector<llvm::Type*, 4> types(words, word);
  bool made = false;
  llvm::Function* function = SlowFunction("load", place, access, lines,
                                          words == 1 ? word : llvm::StructType::get(b_.getContext(), types), {}, made);
  if (!made) return function;
  WithPackedOf(function, place, [&] {
    Value* out = AlignedAlloca(b_, data);
    Value* addresses = AlignedAlloca(b_, WarpType(b_.getInt64Ty()));
    Value* at = SlowAddresses(function, place);
    Value* result = llvm::PoisonValue::get(function->getReturnType());
    auto* apart = llvm::FixedVectorType::get(word->getScalarType(), kWarpSize * access.count);
    for (unsigned i = 0; i < lines; ++i) {
      b_.CreateAlignedStore(b_.CreateAdd(at, b_.CreateVectorSplat(kWarpSize, b_.getInt64(i * bytes))), addresses,
                            llvm::Align(64));
      Value* line = function->getArg(i == 0 ? 2 : static_cast<unsigned>(function->arg_size()) - lines + i);
      CallHelperFrom(b_, function, Helper::kLoadSlow, {out, addresses}, line);
      std::vector<Value*> parts = Deinterleave(b_, b_.CreateAlignedLoad(apart, out, llvm::Align(64)), access.count);
      for (unsigned part = 0; part < access.count; ++part) {
        Value* given = half ? w_.Pack(parts[part]) : parts[part];
        result = words == 1 ? given : b_.CreateInsertValue(result, given, i * access.count + part);
      }
    }
    b_.CreateRet(result);
  });
  return function;
}

/// iB @gl.load_one_slow.B: the same where all lanes load from one address (i64), 8 bytes or less.
llvm::Function* SlowAccess::SlowLoadOneFunction(unsigned bytes) {
  const std::string name = "gl.load_one_slow." + std::to_string(bytes);
  if (llvm::Function* existing = w_.target->getParent()->getFunction(name)) return existing;
  llvm::Type* data = b_.getIntNTy(bytes * 8);
  llvm::Function* function = calls_.OutOfLine(name, data, {}, b_.getInt64Ty());
  llvm::IRBuilder<> b(BasicBlock::Create(b_.getContext(), "entry", function));
  Value* out = AlignedAlloca(b, llvm::ArrayType::get(data, kWarpSize));
  Value* addresses = AlignedAlloca(b, WarpType(b_.getInt64Ty()));
  b.CreateAlignedStore(b.CreateVectorSplat(kWarpSize, function->getArg(4)), addresses, llvm::Align(64));
  CallHelperFrom(b, function, Helper::kLoadSlow, {out, addresses});
  Value* lane = b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, function->getArg(1), b.getTrue());
  b.CreateRet(b.CreateLoad(data, b.CreateGEP(data, out, lane)));
  return function;
}

/// The same for stores: one more argument for each word.
llvm::Function* SlowAccess::SlowStoreFunction(const SlowPlace& place, const Access& access) {
  const bool half = place.index && w_.half_warp();
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  llvm::Type* word =
      llvm::FixedVectorType::get(b_.getIntNTy(access.element_bytes * 8), half ? kWarpSize / 2 : kWarpSize);
  const llvm::SmallVector<llvm::Type*, 4> data(access.count, word);
  bool made = false;
  llvm::Function* function = SlowFunction("store", place, access, 1, b_.getVoidTy(), data, made);
  if (!made) return function;
  WithPackedOf(function, place, [&] {
    Value* addresses = AlignedAlloca(b_, WarpType(b_.getInt64Ty()));
    Value* values = AlignedAlloca(b_, DataType(b_, access.bytes, kWarpSize));
    b_.CreateAlignedStore(SlowAddresses(function, place), addresses, llvm::Align(64));
    std::vector<Value*> words;
    for (unsigned i = 0; i < access.count; ++i) {
      Value* given = function->getArg(static_cast<unsigned>(function->arg_size()) - access.count + i);
      words.push_back(half ? w_.Unpack(given) : given);
    }
    b_.CreateAlignedStore(Interleave(b_, words), values, llvm::Align(64));
    CallHelperFrom(b_, function, Helper::kStoreSlow, {addresses, values}, function->getArg(2));
    b_.CreateRetVoid();
  });
  return function;
}

Value* SlowAccess::SlowImm(const Access& access) {
  return access.imm ? access.imm : b_.getInt64(SlowAccessImm(access.bytes, access.space, access.strong, access.site));
}

std::vector<Value*> SlowAccess::SlowLoad(Value* host, const Access& access) {
  return SlowLoads({.lanes = host}, access, access.line);
}

/// What is loaded there. With several lines: neighbouring words, each by the load of its line.
std::vector<Value*> SlowAccess::SlowLoads(SlowPlace place, const Access& access, llvm::ArrayRef<Value*> lines) {
  const bool by_lanes = w_.half_warp() && !place.index;  // lanes of the half warp, to those of the whole one and back
  if (by_lanes) place.lanes = w_.Unpack(place.lanes);
  llvm::Function* function = SlowLoadFunction(place, access, static_cast<unsigned>(lines.size()));
  Value* raw = calls_.CallRarely(function, SlowArguments(place, access, lines));
  std::vector<Value*> parts;
  const std::size_t words = lines.size() * access.count;
  for (unsigned i = 0; i < words; ++i) {
    Value* word = words == 1 ? raw : b_.CreateExtractValue(raw, i);
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(word->getType())->getNumElements();
    parts.push_back(b_.CreateBitCast(word, llvm::FixedVectorType::get(access.element, lanes)));
  }
  if (by_lanes)
    for (Value*& part : parts) part = w_.Pack(part);
  return parts;
}

/// What all active lanes load from one place.
std::vector<Value*> SlowAccess::SlowLoadOne(Value* host, const Access& access) {
  const WholeWarp whole(w_);
  std::vector<Value*> parts;
  if (access.bytes > 8) {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, w_.mask, b_.getTrue());
    for (Value* part : SlowLoad(w_.Splat(host), access)) parts.push_back(b_.CreateExtractElement(part, lane));
    return parts;
  }
  Value* raw =
      calls_.CallRarely(SlowLoadOneFunction(access.bytes), {w_.warp, w_.mask, access.line, SlowImm(access), host});
  Value* wide = b_.CreateBitCast(raw, llvm::FixedVectorType::get(access.element, access.count));
  for (unsigned part = 0; part < access.count; ++part) parts.push_back(b_.CreateExtractElement(wide, part));
  return parts;
}

void SlowAccess::SlowStore(SlowPlace place, const Access& access, std::vector<Value*> values) {
  if (w_.half_warp() && !place.index) {
    place.lanes = w_.Unpack(place.lanes);
    for (Value*& value : values) value = w_.Unpack(value);
  }
  llvm::Function* function = SlowStoreFunction(place, access);
  llvm::SmallVector<Value*, 12> arguments = SlowArguments(place, access, access.line);
  for (Value* value : values)
    arguments.push_back(
        b_.CreateBitCast(value, function->getArg(static_cast<unsigned>(function->arg_size()) - 1)->getType()));
  calls_.CallRarely(function, arguments);
}

}  // namespace gridloom::exec
