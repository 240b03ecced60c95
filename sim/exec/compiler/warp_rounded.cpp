// Operations on doubles in a rounding mode of their own, where the processor has instructions with one (EVEX embedded
// rounding). Elsewhere a helper sets the host's mode for itself, which takes as long as 30 of these.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_plain.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

using llvm::Value;

constexpr unsigned kEight = 8;

/// The rounding operand of EVEX intrinsics; 8: no exceptions.
std::uint32_t OperandOf(F64Rounding rounding) {
  switch (rounding) {
    case F64Rounding::kNearest: return 8;
    case F64Rounding::kDown: return 8 | 1;
    case F64Rounding::kUp: return 8 | 2;
    case F64Rounding::kZero: return 8 | 3;
  }
  return 8;
}

/// The rounded result of eight lanes.
Value* Rounded(llvm::IRBuilder<>& b, F64Op op, Value* mode, const std::array<Value*, 3>& x) {
  switch (op) {
    case F64Op::kAdd: return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_add_pd_512, {}, {x[0], x[1], mode});
    case F64Op::kMul: return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mul_pd_512, {}, {x[0], x[1], mode});
    case F64Op::kFma: return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vfmadd_pd_512, {}, {x[0], x[1], x[2], mode});
    case F64Op::kDiv: return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_div_pd_512, {}, {x[0], x[1], mode});
    case F64Op::kSqrt: return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_sqrt_pd_512, {}, {x[0], mode});
  }
  return nullptr;
}

}  // namespace

/// What Helper::kF64Rounded gives for the operands of `call`; `imm` is its immediate.
void PlainEmitter::EmitRoundedF64(llvm::CallInst& call, std::uint64_t imm) {
  Value* const mode = b_.getInt32(OperandOf(static_cast<F64Rounding>(imm >> 8 & 0xff)));
  llvm::SmallVector<Value*, 4> eights;
  for (unsigned first = 0; first < w_.width; first += kEight) {
    std::array<Value*, 3> operands{};
    for (unsigned i = 0; i < operands.size(); ++i)
      operands[i] =
          b_.CreateShuffleVector(values_.Lanes(call.getArgOperand(i)), llvm::createSequentialMask(first, kEight, 0));
    eights.push_back(Rounded(b_, static_cast<F64Op>(imm & 0xff), mode, operands));
  }
  values_.Define(&call, llvm::concatenateVectors(b_, eights));
}

}  // namespace gridloom::exec
