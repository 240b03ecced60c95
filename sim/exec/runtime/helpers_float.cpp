// Helpers of fences and floating point: no state but their arguments.
#include <atomic>
#include <bit>
#include <cfenv>
#include <cmath>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {
namespace {

int HostRounding(F64Rounding rounding) {
  switch (rounding) {
    case F64Rounding::kZero: return FE_TOWARDZERO;
    case F64Rounding::kDown: return FE_DOWNWARD;
    case F64Rounding::kUp: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}

// The volatile operands keep the operation between the two changes of the rounding mode.
double Evaluate(F64Op op, double x, double y, double z) {
  volatile double a = x, b = y, c = z, result = 0;
  switch (op) {
    case F64Op::kAdd: result = a + b; break;
    case F64Op::kMul: result = a * b; break;
    case F64Op::kFma: result = std::fma(a, b, c); break;
    case F64Op::kDiv: result = a / b; break;
    case F64Op::kSqrt: result = std::sqrt(a); break;
  }
  return result;
}

}  // namespace

void Helper_kF64Rounded(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  auto* const out = static_cast<double*>(args[0]);
  const auto* const a = static_cast<const double*>(args[1]);
  const auto* const b = static_cast<const double*>(args[2]);
  const auto* const c = static_cast<const double*>(args[3]);
  const int before = std::fegetround();
  std::fesetround(HostRounding(static_cast<F64Rounding>(imm >> 8 & 0xff)));
  for (; mask != 0; mask &= mask - 1) {
    const int lane = std::countr_zero(mask);
    out[lane] = Evaluate(static_cast<F64Op>(imm & 0xff), a[lane], b[lane], c[lane]);
  }
  std::fesetround(before);
}

void Helper_kFence(WarpCtx*, std::uint32_t, std::uint32_t, std::uint64_t imm, void* const*) {
  if (imm == kFenceFull) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_acq_rel);
  }
}

}  // namespace gridloom::exec
