// Windows of memory and their check. One compare checks window and alignment: rotating the offset right by log2(size)
// moves misaligned low bits to the top, where the compare fails. Under memcheck (docs/memcheck.md) a global access has
// a number and, in the unit's memory, the bounds of what it touched last: inside of them it needs nobody. Every access
// to shared memory is told to the runtime, which answers whether the code may go ahead or has to go lane by lane.
#include "sim/exec/compiler/warp_window.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "sim/exec/compiler/compare_and_swap.h"
#include "sim/exec/compiler/read_groups.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

Window MemoryWindows::SiteWindow(const llvm::CallInst& call, Access& access) {
  const auto [it, inserted] = module_.site_of.try_emplace(&call, module_.check_sites);
  if (inserted) ++module_.check_sites;
  access.site = it->second;
  Value* sites = w_.WarpField(offsetof(WarpCtx, check_sites), b_.getPtrTy());
  const auto word = [&](std::uint64_t n) {
    return b_.CreateLoad(b_.getInt64Ty(),
                         b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), sites, access.site * 2ull + n));
  };
  Window window{word(0), word(1), nullptr, 0};
  window.changes = true;
  return window;
}

/// i1: the runtime has nothing against the access and has noted it.
Value* MemoryWindows::SharedChecked(Value* address, const Access& access, AccessKind kind) {
  if (access.checked) return b_.getTrue();
  SharedAccessImm imm;
  imm.bytes = static_cast<std::uint8_t>(access.bytes);
  imm.kind = kind;
  imm.strong = access.strong && kind != AccessKind::kAtomic ? 1 : 0;
  const std::optional<Linear> linear = values_.AsLinear(address);
  const bool in_rows = linear && !linear->valid && StandInRows(linear->pattern, imm);
  Value* offsets = nullptr;
  if (!in_rows) {
    offsets = values_.Lanes(address);
  } else {
    offsets = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt64Ty(), kWarpSize / imm.row_lanes));
    for (unsigned row = 0; row < kWarpSize / imm.row_lanes; ++row) {
      Value* first =
          b_.CreateAdd(linear->base, b_.getInt64(static_cast<std::uint64_t>(linear->pattern[row * imm.row_lanes])));
      offsets = b_.CreateInsertElement(offsets, first, row);
    }
  }
  Value* answer = b_.CreateCall(SharedCheckFunction(offsets->getType()),
                                {w_.warp, w_.mask, access.line, b_.getInt64(PackImm(imm)), offsets});
  return b_.CreateICmpNE(answer, b_.getInt32(0));
}

/// i32 @gl.check_shared.N(ptr warp, i32 mask, i32 line, i64 imm, <N x i64> offsets): of 32 lanes, or of the first lane
/// of each row.
llvm::Function* MemoryWindows::SharedCheckFunction(llvm::Type* offsets_type) {
  const std::string name =
      "gl.check_shared." + std::to_string(llvm::cast<llvm::FixedVectorType>(offsets_type)->getNumElements());
  if (llvm::Function* existing = w_.target->getParent()->getFunction(name)) return existing;
  llvm::Function* function = calls_.OutOfLine(name, b_.getInt32Ty(), {}, offsets_type);
  function->removeFnAttr(llvm::Attribute::Cold);
  llvm::IRBuilder<> b(BasicBlock::Create(b_.getContext(), "entry", function));
  Value* out = b.CreateAlloca(b.getInt32Ty());
  Value* offsets = AlignedAlloca(b, function->getArg(4)->getType());
  b.CreateStore(function->getArg(4), offsets);
  CallHelperFrom(b, function, Helper::kCheckShared, {out, offsets});
  b.CreateRet(b.CreateLoad(b.getInt32Ty(), out));
  return function;
}

Window MemoryWindows::WindowOf(Space space) {
  switch (space) {
    case Space::kShared:
      return {nullptr,
              w_.AtEntry("shared_limit",
                         [&] {
                           return b_.CreateZExt(w_.CtaField(offsetof(CtaCtx, shared_bytes), b_.getInt32Ty()),
                                                b_.getInt64Ty());
                         }),
              w_.CtaField(offsetof(CtaCtx, shared_base), b_.getInt64Ty()), 1};
    case Space::kLocal:
      return {nullptr,
              w_.AtEntry("local_limit",
                         [&] {
                           return b_.CreateZExt(w_.WarpField(offsetof(WarpCtx, local_bytes), b_.getInt32Ty()),
                                                b_.getInt64Ty());
                         }),
              nullptr, 2};
    default:
      return {w_.LaunchField(offsetof(LaunchCtx, window_base), b_.getInt64Ty()),
              w_.LaunchField(offsetof(LaunchCtx, window_bytes), b_.getInt64Ty()), nullptr, 0};
  }
}

/// Where a load, store or atomic may go without asking the runtime.
Window MemoryWindows::WindowOf(const llvm::CallInst& call, Access& access) {
  if (module_.memcheck() && (access.space == Space::kGlobal || access.space == Space::kGeneric))
    return SiteWindow(call, access);
  return WindowOf(access.space);
}

/// (limit - span) >> shift, computed once per function where it can be.
Value* MemoryWindows::ScaledLimit(const Window& window, unsigned shift, std::uint64_t span) {
  if (window.changes)
    return b_.CreateLShr(b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, window.limit, b_.getInt64(span)), shift);
  const std::string key =
      "limit" + std::to_string(window.key) + "." + std::to_string(shift) + "." + std::to_string(span);
  return w_.AtEntry(key, [&] {
    Value* limit = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, window.limit, b_.getInt64(span));
    return b_.CreateLShr(limit, shift);
  });
}

/// What no instruction of ours does: elements of 16 bytes, long vectors, and strong vectors that must be seen whole.
bool LeftToHelper(const Access& access) {
  return access.element_bytes > 8 || access.bytes > 32 || (access.strong && access.count > 1 && access.bytes == 16);
}

Access MemoryWindows::AccessOf(const llvm::CallInst& call, const MarkerInfo& info) {
  const unsigned element_bytes = info.element->getScalarSizeInBits() / 8;
  const unsigned bytes = element_bytes * info.count;
  const bool strong =
      info.strong || (module_.memcheck() && info.kind == MarkerKind::kLoad && BeginsCompareAndSwap(call, module_.spmd));
  return {info.element,
          info.count,
          element_bytes,
          bytes,
          bytes,
          info.space,
          strong,
          call.getArgOperand(call.arg_size() - 1),
          0,
          nullptr,
          info.checked};
}

namespace {

/// What a value may be, from the ranges of what it is made of: sums of products of thread numbers have tighter ones
/// than their bits tell.
llvm::ConstantRange UnsignedRange(const Value* value, const llvm::DataLayout& layout, unsigned depth = 0) {
  constexpr unsigned kMostDepth = 6;
  const auto of_bits = [&] {
    return llvm::ConstantRange::fromKnownBits(llvm::computeKnownBits(value, layout), /*IsSigned=*/false);
  };
  const auto* made = llvm::dyn_cast<llvm::Instruction>(value);
  if (!made || depth == kMostDepth) return of_bits();
  const auto operand = [&](unsigned i) { return UnsignedRange(made->getOperand(i), layout, depth + 1); };
  const unsigned bits = value->getType()->getScalarSizeInBits();
  if (const llvm::MDNode* range = made->getMetadata(llvm::LLVMContext::MD_range))
    return llvm::getConstantRangeFromMetadata(*range);
  switch (made->getOpcode()) {
    case llvm::Instruction::ZExt: return operand(0).zeroExtend(bits);
    case llvm::Instruction::SExt: return operand(0).signExtend(bits);
    case llvm::Instruction::Add: return operand(0).add(operand(1)).intersectWith(of_bits());
    case llvm::Instruction::Or:
      if (!llvm::cast<llvm::PossiblyDisjointInst>(made)->isDisjoint()) return of_bits();
      return operand(0).add(operand(1)).intersectWith(of_bits());
    case llvm::Instruction::Mul: return operand(0).multiply(operand(1)).intersectWith(of_bits());
    case llvm::Instruction::Shl: return operand(0).shl(operand(1)).intersectWith(of_bits());
    case llvm::Instruction::LShr: return operand(0).lshr(operand(1)).intersectWith(of_bits());
    case llvm::Instruction::And: return operand(0).binaryAnd(operand(1)).intersectWith(of_bits());
    default: return of_bits();
  }
}

}  // namespace

/// True when the address alone proves the access: inside the static shared memory every launch has, and aligned.
bool MemoryWindows::ProvenInRange(const Value* address, const Access& access) const {
  if (access.space != Space::kShared || module_.options.clusters) return false;
  const llvm::KnownBits known = llvm::computeKnownBits(address, source_.function.getDataLayout());
  if (known.countMinTrailingZeros() < static_cast<unsigned>(std::countr_zero(access.bytes))) return false;
  const llvm::APInt most = UnsignedRange(address, source_.function.getDataLayout()).getUnsignedMax();
  return most.getActiveBits() < 32 && most.getZExtValue() + access.bytes <= module_.static_shared_bytes;
}

/// i1: every lane of a linear access is inside the window and aligned. False constant when the pattern itself is
/// misaligned.
Value* MemoryWindows::LinearInRange(const Linear& linear, const Access& access, const Window& window) {
  const auto [low, high] = PatternExtent(linear.pattern);
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
Value* MemoryWindows::HostLanes(Value* addresses, const Access& access, const Window& window) {
  if (access.space == Space::kLocal) {
    Value* lanes = w_.AtEntry("local_lanes", [&] {
      LanePattern numbers;
      for (unsigned lane = 0; lane < kWarpSize; ++lane) numbers[lane] = lane;
      Value* stride = b_.CreateZExt(w_.WarpField(offsetof(WarpCtx, local_stride), b_.getInt32Ty()), b_.getInt64Ty());
      Value* offsets = b_.CreateMul(w_.Splat(stride), w_.PatternVector(numbers, b_.getInt64Ty()));
      return b_.CreateAdd(w_.Splat(w_.WarpField(offsetof(WarpCtx, local_base), b_.getInt64Ty())), offsets);
    });
    return b_.CreateAdd(addresses, lanes);
  }
  return window.host ? b_.CreateAdd(addresses, w_.Splat(window.host)) : addresses;
}

}  // namespace gridloom::exec
