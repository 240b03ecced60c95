// Bringing 16 lanes or fewer together in half a warp, and back (warp_half_loop.cpp).
#include <llvm/IR/IntrinsicsX86.h>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

llvm::SmallVector<int, 64> Steps(unsigned first, unsigned step, unsigned count) {
  llvm::SmallVector<int, 64> numbers;
  for (unsigned i = 0; i < count; ++i) numbers.push_back(static_cast<int>(first + i * step));
  return numbers;
}

/// Of double words (<n x i64> or the like): `each` on all low words and on all high ones.
template <typename Each>
Value* ByWords(llvm::IRBuilder<>& b, Value* lanes, Each each) {
  auto* type = llvm::cast<llvm::FixedVectorType>(lanes->getType());
  const unsigned count = type->getNumElements();
  Value* words = b.CreateBitCast(lanes, llvm::FixedVectorType::get(b.getInt32Ty(), count * 2));
  Value* low = each(b.CreateShuffleVector(words, Steps(0, 2, count)));
  Value* high = each(b.CreateShuffleVector(words, Steps(1, 2, count)));
  const unsigned made = llvm::cast<llvm::FixedVectorType>(low->getType())->getNumElements();
  llvm::SmallVector<int, 64> both;
  for (unsigned i = 0; i < made; ++i) both.append({static_cast<int>(i), static_cast<int>(i + made)});
  return b.CreateBitCast(b.CreateShuffleVector(low, high, both),
                         llvm::FixedVectorType::get(type->getElementType(), made));
}

/// `each`, which maps words to words, on lanes of any plain type.
template <typename Each>
Value* AsWords(llvm::IRBuilder<>& b, Value* lanes, Each each) {
  llvm::Type* element = lanes->getType()->getScalarType();
  if (element->getScalarSizeInBits() == 64) return ByWords(b, lanes, each);
  const auto with = [](Value* vector, llvm::Type* type) {
    return llvm::FixedVectorType::get(type, llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  };
  llvm::Type* number = b.getIntNTy(element->getScalarSizeInBits());
  Value* moved = each(b.CreateZExt(b.CreateBitCast(lanes, with(lanes, number)), with(lanes, b.getInt32Ty())));
  return b.CreateBitCast(b.CreateTrunc(moved, with(moved, number)), with(moved, element));
}

Value* HalfOf(llvm::IRBuilder<>& b, Value* lanes, unsigned half) {
  return b.CreateShuffleVector(lanes, Steps(half * kHalfWarp, 1, kHalfWarp));
}

}  // namespace

/// The numbers of the lanes in `mask`, 16 or fewer, in order: <16 x i32>.
Value* WarpBuilder::PlacesOf(Value* mask) {
  auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), kHalfWarp);
  auto* bits = llvm::FixedVectorType::get(b.getInt1Ty(), kHalfWarp);
  const auto mask_of = [&](Value* lanes) { return b.CreateBitCast(b.CreateTrunc(lanes, b.getInt16Ty()), bits); };
  Value* numbers[2];
  for (unsigned half = 0; half < 2; ++half) {
    llvm::SmallVector<llvm::Constant*, kHalfWarp> own;
    for (unsigned lane = 0; lane < kHalfWarp; ++lane) own.push_back(b.getInt32(half * kHalfWarp + lane));
    Value* active = mask_of(b.CreateLShr(mask, half * kHalfWarp));
    numbers[half] = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_compress, {words},
                                      {llvm::ConstantVector::get(own), llvm::Constant::getNullValue(words), active});
  }
  Value* low = b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b.CreateAnd(mask, b.getInt32(0xffff)));
  Value* behind = mask_of(b.CreateShl(b.getInt32(0xffff), low));
  return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_expand, {words}, {numbers[1], numbers[0], behind});
}

/// From here on code is emitted for the active lanes, 16 or fewer, as lanes 0, 1, ... of a half warp.
void WarpBuilder::BeginHalfWarp() {
  places = PlacesOf(mask);
  packed = mask;
  Value* count = b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, mask);
  mask = b.CreateSub(b.CreateShl(b.getInt32(1), count), b.getInt32(1));
  mask_lanes = nullptr;
  width = kHalfWarp;
}

/// The half warp's lanes among those of a whole warp.
Value* WarpBuilder::Pack(Value* lanes) {
  return AsWords(b, lanes, [&](Value* words) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                             {HalfOf(b, words, 0), places, HalfOf(b, words, 1)});
  });
}

/// The lanes of the half warp where the whole one has them; others are 0.
Value* WarpBuilder::Unpack(Value* half) {
  return AsWords(b, half, [&](Value* words) {
    llvm::Type* type = words->getType();
    const auto expand = [&](Value* data, Value* mask) {
      Value* lanes =
          b.CreateBitCast(b.CreateTrunc(mask, b.getInt16Ty()), llvm::FixedVectorType::get(b.getInt1Ty(), kHalfWarp));
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_expand, {type},
                               {data, llvm::Constant::getNullValue(type), lanes});
    };
    llvm::SmallVector<llvm::Constant*, kHalfWarp> numbers;
    for (unsigned lane = 0; lane < kHalfWarp; ++lane) numbers.push_back(b.getInt32(lane));
    Value* in_low = b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b.CreateAnd(packed, b.getInt32(0xffff)));
    Value* from = b.CreateAdd(b.CreateVectorSplat(kHalfWarp, in_low), llvm::ConstantVector::get(numbers));
    Value* behind = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_si_512, {}, {words, from});
    return b.CreateShuffleVector(expand(words, packed), expand(behind, b.CreateLShr(packed, kHalfWarp)),
                                 Steps(0, 1, kWarpSize));
  });
}

/// A mask of the half warp as one of the whole one.
Value* WarpBuilder::UnpackMask(Value* mask) {
  return b.CreateIntrinsic(llvm::Intrinsic::x86_bmi_pdep_32, {}, {mask, packed});
}

}  // namespace gridloom::exec
