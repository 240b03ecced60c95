// Loads, stores and atomics of the warp form. One compare checks window and alignment (rotating the offset right by
// log2(size) moves misaligned low bits to the top, where the compare fails); consecutive lanes become vector accesses
// per 16-lane half; the rest gathers and scatters; what fails the check goes to a runtime helper that decides lane by
// lane.
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "sim/exec/compiler/compare_and_swap.h"
#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

std::pair<std::int64_t, std::int64_t> Extent(const LanePattern& pattern) {
  const auto [low, high] = std::minmax_element(pattern.begin(), pattern.end());
  return {*low, *high};
}

}  // namespace

WarpFunction::Window WarpFunction::WindowOf(Space space) {
  switch (space) {
    case Space::kShared:
      return {nullptr,
              AtEntry("shared_limit",
                      [&] {
                        return b_.CreateZExt(CtaField(offsetof(CtaCtx, shared_bytes), b_.getInt32Ty()),
                                             b_.getInt64Ty());
                      }),
              CtaField(offsetof(CtaCtx, shared_base), b_.getInt64Ty()), 1};
    case Space::kLocal:
      return {nullptr,
              AtEntry("local_limit",
                      [&] {
                        return b_.CreateZExt(WarpField(offsetof(WarpCtx, local_bytes), b_.getInt32Ty()),
                                             b_.getInt64Ty());
                      }),
              nullptr, 2};
    default:
      return {LaunchField(offsetof(LaunchCtx, window_base), b_.getInt64Ty()),
              LaunchField(offsetof(LaunchCtx, window_bytes), b_.getInt64Ty()), nullptr, 0};
  }
}

/// Where a load, store or atomic may go without asking the runtime.
WarpFunction::Window WarpFunction::WindowOf(const llvm::CallInst& call, Access& access) {
  if (memcheck() && (access.space == Space::kGlobal || access.space == Space::kGeneric))
    return SiteWindow(call, access);
  return WindowOf(access.space);
}

/// (limit - span) >> shift, computed once per function where it can be.
Value* WarpFunction::ScaledLimit(const Window& window, unsigned shift, std::uint64_t span) {
  if (window.changes)
    return b_.CreateLShr(b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, window.limit, b_.getInt64(span)), shift);
  const std::string key =
      "limit" + std::to_string(window.key) + "." + std::to_string(shift) + "." + std::to_string(span);
  return AtEntry(key, [&] {
    Value* limit = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, window.limit, b_.getInt64(span));
    return b_.CreateLShr(limit, shift);
  });
}

/// What no instruction of ours does: elements of 16 bytes, long vectors, and strong vectors that must be seen whole.
bool WarpFunction::LeftToHelper(const Access& access) {
  return access.element_bytes > 8 || access.bytes > 32 || (access.strong && access.count > 1 && access.bytes == 16);
}

WarpFunction::Access WarpFunction::AccessOf(const llvm::CallInst& call, const MarkerInfo& info) {
  const unsigned element_bytes = info.element->getScalarSizeInBits() / 8;
  const unsigned bytes = element_bytes * info.count;
  const bool strong =
      info.strong || (memcheck() && info.kind == MarkerKind::kLoad && BeginsCompareAndSwap(call, module_.spmd));
  return {info.element, info.count, element_bytes, bytes,
          bytes,        info.space, strong,        call.getArgOperand(call.arg_size() - 1)};
}

// ---------------------------------------------------------------------------------------------------------------------
// Addresses
// ---------------------------------------------------------------------------------------------------------------------

/// How the lanes' addresses differ, where that is known at compile time.
std::optional<LanePattern> WarpFunction::PatternOf(Value* address) {
  const Shape shape = ShapeOf(address);
  if (shape.kind == ShapeKind::kUniform || shape.kind == ShapeKind::kAffine) return shape.pattern;
  if (shape.kind != ShapeKind::kIndexed || ShapeOf(shape.index).kind != ShapeKind::kAffine) return std::nullopt;
  const LanePattern index = ShapeOf(shape.index).pattern;
  LanePattern pattern = shape.pattern;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) pattern[lane] += shape.scale * (index[lane] - Extent(index).first);
  return pattern;
}

/// True for an access of a half warp that the whole one can make in rows.
bool WarpFunction::InRowsOfWhole(Value* address, const Access& access, bool store) {
  return half_warp() && InRows(address, access, store);
}

/// True where the lanes of each half are known to be neighbours, or all the same.
bool WarpFunction::InRows(Value* address, const Access& access, bool store) {
  if (access.space == Space::kLocal || LeftToHelper(access) || ShapeOf(address).uniform()) return false;
  const std::optional<LanePattern> pattern = PatternOf(address);
  const auto fits = [&](unsigned half) {
    const HalfKind kind = Classify(*pattern, half, access.bytes);
    return kind == HalfKind::kConsecutive || (kind == HalfKind::kSame && !store);
  };
  return pattern && fits(0) && fits(1);
}

std::optional<WarpFunction::Linear> WarpFunction::AsLinear(Value* address) {
  const Shape shape = ShapeOf(address);
  if (shape.kind == ShapeKind::kUniform || shape.kind == ShapeKind::kAffine)
    return Linear{Base(address), shape.pattern, nullptr};
  const std::optional<LanePattern> pattern = PatternOf(address);
  if (!pattern) return std::nullopt;
  const Shape index = ShapeOf(shape.index);
  // Widening base + pattern lane by lane equals widening the lowest lane, unless the lanes wrap apart in 32 bits.
  const auto [low, high] = Extent(index.pattern);
  Value* base = Base(const_cast<Value*>(shape.index));
  Value* first = b_.CreateAdd(base, b_.getInt32(static_cast<std::uint32_t>(low)));
  Value* last = b_.CreateAdd(base, b_.getInt32(static_cast<std::uint32_t>(high)));
  Value* valid = shape.index_signed ? b_.CreateICmpSGE(last, first) : b_.CreateICmpUGE(last, first);
  Value* wide = shape.index_signed ? b_.CreateSExt(first, b_.getInt64Ty()) : b_.CreateZExt(first, b_.getInt64Ty());
  return Linear{b_.CreateAdd(Base(address), b_.CreateMul(wide, b_.getInt64(static_cast<std::uint64_t>(shape.scale)))),
                *pattern, valid};
}

/// True when the address alone proves the access: inside the static shared memory every launch has, and aligned.
bool WarpFunction::ProvenInRange(const Value* address, const Access& access) const {
  if (access.space != Space::kShared || module_.options.clusters) return false;
  const llvm::KnownBits known = llvm::computeKnownBits(address, source_.getDataLayout());
  if (known.countMinTrailingZeros() < static_cast<unsigned>(std::countr_zero(access.bytes))) return false;
  const llvm::APInt most = known.getMaxValue();
  return most.getActiveBits() < 32 && most.getZExtValue() + access.bytes <= module_.static_shared_bytes;
}

/// i1: every lane of a linear access is inside the window and aligned. False constant when the pattern itself is
/// misaligned.
Value* WarpFunction::LinearInRange(const Linear& linear, const Access& access, const Window& window) {
  const auto [low, high] = Extent(linear.pattern);
  for (const std::int64_t offset : linear.pattern) {
    if ((offset - low) % access.bytes != 0) return b_.getFalse();
  }
  Value* first = b_.CreateAdd(linear.base, b_.getInt64(static_cast<std::uint64_t>(low)));
  if (window.low) first = b_.CreateSub(first, window.low);
  const unsigned shift = std::countr_zero(access.bytes);
  if (shift != 0)
    first = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {b_.getInt64Ty()}, {first, first, b_.getInt64(shift)});
  Value* ok = b_.CreateICmpULT(first, ScaledLimit(window, shift, static_cast<std::uint64_t>(high - low)));
  return linear.valid ? b_.CreateAnd(ok, linear.valid) : ok;
}

/// Host addresses of the lanes' window addresses.
Value* WarpFunction::HostLanes(Value* addresses, const Access& access, const Window& window) {
  if (access.space == Space::kLocal) {
    Value* lanes = AtEntry("local_lanes", [&] {
      LanePattern numbers;
      for (unsigned lane = 0; lane < kWarpSize; ++lane) numbers[lane] = lane;
      Value* stride = b_.CreateZExt(WarpField(offsetof(WarpCtx, local_stride), b_.getInt32Ty()), b_.getInt64Ty());
      Value* offsets = b_.CreateMul(Splat(stride), PatternVector(numbers, b_.getInt64Ty()));
      return b_.CreateAdd(Splat(WarpField(offsetof(WarpCtx, local_base), b_.getInt64Ty())), offsets);
    });
    return b_.CreateAdd(addresses, lanes);
  }
  return window.host ? b_.CreateAdd(addresses, Splat(window.host)) : addresses;
}

WarpFunction::HalfKind WarpFunction::Classify(const LanePattern& pattern, unsigned half, unsigned bytes) {
  bool consecutive = true, same = true;
  for (unsigned lane = 0; lane < kHalfWarp; ++lane) {
    const std::int64_t offset = pattern[half * kHalfWarp + lane] - pattern[half * kHalfWarp];
    consecutive &= offset == static_cast<std::int64_t>(lane) * bytes;
    same &= offset == 0;
  }
  return same ? HalfKind::kSame : consecutive ? HalfKind::kConsecutive : HalfKind::kOther;
}

/// <16*count x i1>: the active lanes of a half, each repeated `count` times.
Value* WarpFunction::HalfMask(unsigned half, unsigned count) {
  llvm::SmallVector<int, 128> pick;
  for (unsigned i = 0; i < kHalfWarp * count; ++i) pick.push_back(static_cast<int>(half * kHalfWarp + i / count));
  return b_.CreateShuffleVector(MaskLanes(), pick);
}

/// <32 x i1>: the active lanes.
Value* WarpFunction::ActiveLanes() {
  return divergent_ ? MaskLanes() : llvm::Constant::getAllOnesValue(LanesType(b_.getInt1Ty()));
}

/// Keeps LLVM from moving or merging memory accesses across a strong one. No instruction.
void WarpFunction::CompilerFence() {
  b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

// ---------------------------------------------------------------------------------------------------------------------
// Layout changes
// ---------------------------------------------------------------------------------------------------------------------

/// <n*count x T>, elements of a lane together -> count values of <n x T>.
std::vector<Value*> WarpFunction::Deinterleave(Value* wide, unsigned count) {
  if (count == 1) return {wide};
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(wide->getType())->getNumElements() / count;
  std::vector<Value*> parts;
  for (unsigned part = 0; part < count; ++part) {
    llvm::SmallVector<int, 32> pick;
    for (unsigned lane = 0; lane < lanes; ++lane) pick.push_back(static_cast<int>(lane * count + part));
    parts.push_back(b_.CreateShuffleVector(wide, pick));
  }
  return parts;
}

Value* WarpFunction::Interleave(const std::vector<Value*>& parts) {
  if (parts.size() == 1) return parts[0];
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(parts[0]->getType())->getNumElements();
  const unsigned count = static_cast<unsigned>(parts.size());
  // Concatenate pairwise, then permute: all parts have one length, counts are powers of two.
  std::vector<Value*> level(parts);
  while (level.size() > 1) {
    std::vector<Value*> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      const unsigned n = llvm::cast<llvm::FixedVectorType>(level[i]->getType())->getNumElements();
      llvm::SmallVector<int, 128> both;
      for (unsigned k = 0; k < 2 * n; ++k) both.push_back(static_cast<int>(k));
      next.push_back(b_.CreateShuffleVector(level[i], level[i + 1], both));
    }
    level = std::move(next);
  }
  llvm::SmallVector<int, 256> pick;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    for (unsigned part = 0; part < count; ++part) pick.push_back(static_cast<int>(part * lanes + lane));
  }
  return b_.CreateShuffleVector(level[0], pick);
}

// ---------------------------------------------------------------------------------------------------------------------
// Loads
// ---------------------------------------------------------------------------------------------------------------------

/// <16*count x T> from a half whose lanes are consecutive or all the same, at base + offset.
Value* WarpFunction::LoadHalf(Value* base, std::int64_t offset, HalfKind kind, unsigned half, const Access& access) {
  Value* at = b_.CreateIntToPtr(b_.CreateAdd(base, b_.getInt64(static_cast<std::uint64_t>(offset))), b_.getPtrTy());
  auto* wide = llvm::FixedVectorType::get(access.element, kHalfWarp * access.count);
  if (kind == HalfKind::kConsecutive) {
    if (!divergent_) return b_.CreateAlignedLoad(wide, at, llvm::Align(std::min(access.align, 16u)), access.strong);
    return b_.CreateMaskedLoad(wide, at, llvm::Align(access.element_bytes), HalfMask(half, access.count),
                               llvm::Constant::getNullValue(wide));
  }
  if (divergent_) {
    // A half without active lanes may point anywhere in the window, mapped or not.
    Value* active = b_.CreateICmpNE(b_.CreateAnd(mask_, b_.getInt32(half == 0 ? 0xFFFF : 0xFFFF0000u)), b_.getInt32(0));
    at = b_.CreateSelect(active, at, warp_);
  }
  std::vector<Value*> parts;
  for (unsigned part = 0; part < access.count; ++part) {
    Value* element =
        b_.CreateAlignedLoad(access.element, b_.CreateConstGEP1_64(b_.getInt8Ty(), at, part * access.element_bytes),
                             llvm::Align(1), access.strong);
    parts.push_back(b_.CreateVectorSplat(kHalfWarp, element));
  }
  return Interleave(parts);
}

/// A checked linear load whose halves are consecutive or all the same.
std::vector<Value*> WarpFunction::LoadHalves(const Linear& linear, const Access& access, const Window& window) {
  Value* base = window.host ? b_.CreateAdd(linear.base, window.host) : linear.base;
  Value* halves[2];
  for (unsigned half = 0; half < 2; ++half) {
    halves[half] =
        LoadHalf(base, linear.pattern[half * kHalfWarp], Classify(linear.pattern, half, access.bytes), half, access);
  }
  llvm::SmallVector<int, 128> both;
  for (unsigned i = 0; i < kWarpSize * access.count; ++i) both.push_back(static_cast<int>(i));
  return Deinterleave(b_.CreateShuffleVector(halves[0], halves[1], both), access.count);
}

void WarpFunction::EmitUniformLoad(llvm::CallInst& call, const Access& access, const Window& window) {
  Value* address = Base(call.getArgOperand(0));
  Value* ok = nullptr;
  if (memcheck() && access.space == Space::kShared) {
    ok = SharedChecked(call.getArgOperand(0), access, AccessKind::kRead);
  } else {
    ok = ProvenInRange(call.getArgOperand(0), access)
             ? b_.getTrue()
             : LinearInRange({address, LanePattern{}, nullptr}, access, window);
  }
  Value* result = LoadScalar(address, ok, access, window, call.getType());
  if (access.strong) CompilerFence();
  Define(&call, ShapeOf(&call).vector() ? Splat(result) : result);
}

/// What all active lanes load from one address; `ok`: without asking the helper.
Value* WarpFunction::LoadScalar(Value* address, Value* ok, const Access& access, const Window& window,
                                llvm::Type* type) {
  BasicBlock* fast = NewBlock("load");
  BasicBlock* slow = NewBlock("load_slow");
  BasicBlock* done = NewBlock("loaded");
  b_.CreateCondBr(ok, fast, slow, Likely());
  const auto load_parts = [&](Value* pointer) {
    std::vector<Value*> parts;
    for (unsigned part = 0; part < access.count; ++part) {
      parts.push_back(b_.CreateAlignedLoad(access.element,
                                           b_.CreateConstGEP1_64(b_.getInt8Ty(), pointer, part * access.element_bytes),
                                           llvm::Align(1), access.strong));
    }
    return parts;
  };
  b_.SetInsertPoint(fast);
  Value* host = window.host ? b_.CreateAdd(address, window.host) : address;
  const std::vector<Value*> fast_parts = load_parts(b_.CreateIntToPtr(host, b_.getPtrTy()));
  b_.CreateBr(done);
  b_.SetInsertPoint(slow);
  const std::vector<Value*> slow_parts =
      SlowLoadOne(window.host ? b_.CreateAdd(address, window.host) : address, access);
  BasicBlock* slow_end = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  std::vector<Value*> parts;
  for (unsigned part = 0; part < access.count; ++part) {
    auto* phi = b_.CreatePHI(access.element, 2);
    phi->addIncoming(fast_parts[part], fast);
    phi->addIncoming(slow_parts[part], slow_end);
    parts.push_back(phi);
  }
  if (access.count == 1) return parts[0];
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned part = 0; part < access.count; ++part) result = b_.CreateInsertValue(result, parts[part], part);
  return result;
}

/// The values that `fast` makes where `ok` holds, else those that `slow` makes; both the same number.
std::vector<Value*> WarpFunction::FastOrSlow(Value* ok, const Parts& fast, const Parts& slow) {
  if (divergent_) MaskLanes();
  BasicBlock* blocks[2] = {NewBlock("load"), NewBlock("load_slow")};
  BasicBlock* done = NewBlock("loaded");
  b_.CreateCondBr(ok, blocks[0], blocks[1], Likely());
  std::vector<Value*> values[2];
  for (unsigned way = 0; way < 2; ++way) {
    Scope scope(*this);
    b_.SetInsertPoint(blocks[way]);
    values[way] = way == 0 ? fast() : slow();
    blocks[way] = b_.GetInsertBlock();
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
  std::vector<Value*> parts;
  for (std::size_t part = 0; part < values[0].size(); ++part) {
    auto* phi = b_.CreatePHI(values[0][part]->getType(), 2);
    for (unsigned way = 0; way < 2; ++way) phi->addIncoming(values[way][part], blocks[way]);
    parts.push_back(phi);
  }
  return parts;
}

void WarpFunction::EmitLoad(llvm::CallInst& call, const MarkerInfo& info) {
  if (grouped_.erase(&call)) return;  // loaded together with an earlier one
  Access access = AccessOf(call, info);
  const Window window = WindowOf(call, access);
  Value* address = call.getArgOperand(0);
  if (access.strong) CompilerFence();
  if (memcheck() && access.strong) CheckOrder(kCheckOrderCta);
  const bool odd_size = LeftToHelper(access);
  if (info.space != Space::kLocal && ShapeOf(address).uniform() && !odd_size)
    return EmitUniformLoad(call, access, window);

  std::optional<WholeWarp> whole;
  if (InRowsOfWhole(address, access, false)) whole.emplace(*this);
  const std::optional<Linear> linear =
      info.space == Space::kLocal || odd_size || half_warp() ? std::nullopt : AsLinear(address);
  const bool halves = linear && Classify(linear->pattern, 0, access.bytes) != HalfKind::kOther &&
                      Classify(linear->pattern, 1, access.bytes) != HalfKind::kOther;
  const auto slow = [&] { return SlowLoads(SlowPlaceOf(address, access, window), access, access.line); };
  Value* checked = memcheck() && info.space == Space::kShared && !odd_size
                       ? SharedChecked(address, access, AccessKind::kRead)
                       : nullptr;
  std::vector<Value*> parts;
  if (halves) {
    Value* ok = nullptr;
    if (checked) ok = linear->valid ? b_.CreateAnd(checked, linear->valid) : checked;
    else ok = ProvenInRange(address, access) ? b_.getTrue() : LinearInRange(*linear, access, window);
    parts = FastOrSlow(
        ok, [&] { return LoadHalves(*linear, access, window); }, slow);
  } else if (odd_size) {
    parts = slow();
  } else if (ByCall(call)) {
    if (MayGroup(access))
      if (const LoadGroup group = GroupFrom(call, access); group.size() > 1) return CallGroup(group, access);
    parts = CallLoad(IrregularOf(address, access), access, access, access.line);
  } else {
    if (const std::vector<LoadGroup> groups = GroupsFrom(call, access); groups.size() > 1 || groups[0].size() > 1)
      return EmitGroups(groups, access, window);
    const Irregular at = IrregularOf(address, access);
    llvm::AllocaInst* in_rows = RowNote(call, at, access);
    Value* ok = checked ? checked : IrregularInRange(at, access, window);
    parts = FastOrSlow(
        ok, [&] { return LoadIrregularGroup(at, access, access, window, in_rows); }, slow);
  }
  if (access.strong) CompilerFence();
  const bool uniform = !ShapeOf(&call).vector();
  if (uniform) {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_, b_.getTrue());
    for (Value*& part : parts) part = b_.CreateExtractElement(part, lane);
  }
  if (whole) {
    whole.reset();
    if (!uniform)
      for (Value*& part : parts) part = Pack(part);
  }
  Value* result = parts[0];
  if (access.count > 1) {
    result = llvm::PoisonValue::get(uniform ? call.getType() : LanesType(call.getType()));
    for (unsigned part = 0; part < access.count; ++part) result = b_.CreateInsertValue(result, parts[part], part);
  }
  Define(&call, result);
}

// ---------------------------------------------------------------------------------------------------------------------
// Stores
// ---------------------------------------------------------------------------------------------------------------------

/// Stores the lanes of a half to consecutive places from the host address `at`.
void WarpFunction::StoreHalf(Value* at, unsigned half, const Access& access, const std::vector<Value*>& values) {
  llvm::SmallVector<int, 16> pick;
  for (unsigned lane = 0; lane < kHalfWarp; ++lane) pick.push_back(static_cast<int>(half * kHalfWarp + lane));
  std::vector<Value*> parts;
  for (Value* value : values) parts.push_back(b_.CreateShuffleVector(value, pick));
  Value* wide = Interleave(parts);
  at = b_.CreateIntToPtr(at, b_.getPtrTy());
  if (divergent_) {
    b_.CreateMaskedStore(wide, at, llvm::Align(access.element_bytes), HalfMask(half, access.count));
  } else {
    b_.CreateAlignedStore(wide, at, llvm::Align(std::min(access.align, 16u)), access.strong);
  }
}

void WarpFunction::StoreHalves(const Linear& linear, const Access& access, const Window& window,
                               const std::vector<Value*>& values) {
  Value* base = window.host ? b_.CreateAdd(linear.base, window.host) : linear.base;
  for (unsigned half = 0; half < 2; ++half) {
    StoreHalf(b_.CreateAdd(base, b_.getInt64(static_cast<std::uint64_t>(linear.pattern[half * kHalfWarp]))), half,
              access, values);
  }
}

void WarpFunction::EmitStore(llvm::CallInst& call, const MarkerInfo& info) {
  Access access = AccessOf(call, info);
  const Window window = WindowOf(call, access);
  Value* address = call.getArgOperand(0);
  std::vector<Value*> values;
  for (unsigned part = 0; part < access.count; ++part) values.push_back(Lanes(call.getArgOperand(1 + part)));
  if (access.strong) CompilerFence();
  if (memcheck() && access.strong) CheckOrder(kCheckOrderCta);
  const bool odd_size = LeftToHelper(access);
  std::optional<WholeWarp> whole;
  if (InRowsOfWhole(address, access, true)) {
    for (Value*& value : values) value = Unpack(value);
    whole.emplace(*this);
  }
  const bool any_order = half_warp() && !ShapeOf(address).uniform();  // lanes of a half need not be neighbours
  std::optional<Linear> linear =
      info.space == Space::kLocal || odd_size || any_order ? std::nullopt : AsLinear(address);
  const bool halves = linear && Classify(linear->pattern, 0, access.bytes) == HalfKind::kConsecutive &&
                      Classify(linear->pattern, 1, access.bytes) == HalfKind::kConsecutive;
  const bool same = info.space != Space::kLocal && !odd_size && ShapeOf(address).uniform();
  if (!halves && !same && !odd_size && ByCall(call)) {
    CallStore(IrregularOf(address, access), access, values);
    if (access.strong) CompilerFence();
    return;
  }
  BasicBlock* fast = NewBlock("store");
  BasicBlock* slow = NewBlock("store_slow");
  BasicBlock* done = NewBlock("stored");
  Irregular irregular{};
  Value* ok;
  if (memcheck() && info.space == Space::kShared && !odd_size) {
    ok = SharedChecked(address, access, AccessKind::kWrite);
    if (!halves && !same) irregular = IrregularOf(address, access);
    else if (linear->valid) ok = b_.CreateAnd(ok, linear->valid);
  } else if (halves || same) {
    ok = ProvenInRange(address, access) ? b_.getTrue() : LinearInRange(*linear, access, window);
  } else {
    irregular = IrregularOf(address, access);
    ok = odd_size ? static_cast<Value*>(b_.getFalse()) : IrregularInRange(irregular, access, window);
  }
  if (divergent_) MaskLanes();
  b_.CreateCondBr(ok, fast, slow, Likely());
  {
    Scope scope(*this);
    b_.SetInsertPoint(fast);
    if (halves) {
      StoreHalves(*linear, access, window, values);
    } else if (same) {
      StoreSame(linear->base, access, window, values);
    } else if (!odd_size) {
      StoreIrregular(irregular, access, window, values, RowsSeen(call, irregular, access));
    }
    b_.CreateBr(done);
  }
  {
    Scope scope(*this);
    b_.SetInsertPoint(slow);
    SlowStore(SlowPlaceOf(address, access, window), access, values);
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
  if (access.strong) CompilerFence();
}

}  // namespace gridloom::exec
