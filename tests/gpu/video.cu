// Scalar video instructions with .sat beside the manual's pseudo-code (PTX ISA, 9.7.16): a line for each form, which
// says for how many of the pairs of operands the device has another result, and the first of these. What overflows 32
// bits is what matters: sums, differences, shifts to the left.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>

namespace {

enum class Op { kAdd, kSub, kAbsDiff, kMin, kMax, kShlClamp, kShlWrap, kShrClamp, kShrWrap };
struct Form {
  const char* text;
  Op op;
  bool d, a, b;  // signed
};

#define TYPES_3(X, op, name, mode)             \
  X(op, name ".u32.u32.u32.sat" mode, 0, 0, 0) \
  X(op, name ".u32.u32.s32.sat" mode, 0, 0, 1) \
  X(op, name ".u32.s32.u32.sat" mode, 0, 1, 0) \
  X(op, name ".u32.s32.s32.sat" mode, 0, 1, 1) \
  X(op, name ".s32.u32.u32.sat" mode, 1, 0, 0) \
  X(op, name ".s32.u32.s32.sat" mode, 1, 0, 1) \
  X(op, name ".s32.s32.u32.sat" mode, 1, 1, 0) X(op, name ".s32.s32.s32.sat" mode, 1, 1, 1)
#define TYPES_2(X, op, name, mode)             \
  X(op, name ".u32.u32.u32.sat" mode, 0, 0, 0) \
  X(op, name ".u32.s32.u32.sat" mode, 0, 1, 0) \
  X(op, name ".s32.u32.u32.sat" mode, 1, 0, 0) X(op, name ".s32.s32.u32.sat" mode, 1, 1, 0)
#define FORMS(X)                          \
  TYPES_3(X, kAdd, "vadd", "")            \
  TYPES_3(X, kSub, "vsub", "")            \
  TYPES_3(X, kAbsDiff, "vabsdiff", "")    \
  TYPES_3(X, kMin, "vmin", "")            \
  TYPES_3(X, kMax, "vmax", "")            \
  TYPES_2(X, kShlClamp, "vshl", ".clamp") \
  TYPES_2(X, kShlWrap, "vshl", ".wrap")   \
  TYPES_2(X, kShrClamp, "vshr", ".clamp") TYPES_2(X, kShrWrap, "vshr", ".wrap")

constexpr Form kForms[] = {
#define ROW(op, text, d, a, b) {text, Op::op, d != 0, a != 0, b != 0},
    FORMS(ROW)
#undef ROW
};
constexpr int kFormCount = sizeof kForms / sizeof kForms[0];

constexpr unsigned kValues[] = {0,          1,          5,          31,         32,         0x7ffffffe, 0x7fffffff,
                                0x80000000, 0x80000001, 0xfffffffb, 0xfffffffe, 0xffffffff, 0x12345678, 0x9abcdef0};
constexpr int kValueCount = sizeof kValues / sizeof kValues[0];
constexpr int kPairs = kValueCount * kValueCount;

__global__ void Run(const unsigned* values, unsigned* out) {
  const unsigned pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair >= kPairs) return;
  const unsigned a = values[pair / kValueCount], b = values[pair % kValueCount];
  unsigned n = 0, result;
#define ROW(op, text, ds, as, bs)                                    \
  asm volatile(text " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
  out[n++ * kPairs + pair] = result;
  FORMS(ROW)
#undef ROW
}

using Wide = __int128;

Wide Extend(unsigned value, bool is_signed) { return is_signed ? Wide{static_cast<int>(value)} : Wide{value}; }

unsigned Manual(const Form& form, unsigned first, unsigned second) {
  const Wide a = Extend(first, form.a), b = Extend(second, form.b);
  const unsigned clamped = std::min(second, 32u), wrapped = second & 31;
  Wide value = 0;
  switch (form.op) {
    case Op::kAdd: value = a + b; break;
    case Op::kSub: value = a - b; break;
    case Op::kAbsDiff: value = a > b ? a - b : b - a; break;
    case Op::kMin: value = std::min(a, b); break;
    case Op::kMax: value = std::max(a, b); break;
    case Op::kShlClamp: value = a * (Wide{1} << clamped); break;
    case Op::kShlWrap: value = a * (Wide{1} << wrapped); break;
    case Op::kShrClamp: value = a >> clamped; break;
    case Op::kShrWrap: value = a >> wrapped; break;
  }
  const Wide low = form.d ? -(Wide{1} << 31) : 0, high = form.d ? (Wide{1} << 31) - 1 : (Wide{1} << 32) - 1;
  return static_cast<unsigned>(std::max(low, std::min(high, value)));
}

}  // namespace

int main() {
  unsigned *in = nullptr, *out = nullptr;
  static unsigned results[kFormCount * kPairs];
  cudaMalloc(&in, sizeof kValues);
  cudaMalloc(&out, sizeof results);
  cudaMemcpy(in, kValues, sizeof kValues, cudaMemcpyHostToDevice);
  Run<<<(kPairs + 63) / 64, 64>>>(in, out);
  if (const cudaError_t error = cudaMemcpy(results, out, sizeof results, cudaMemcpyDeviceToHost);
      error != cudaSuccess) {
    std::printf("error %s\n", cudaGetErrorName(error));
    return 1;
  }
  for (int f = 0; f < kFormCount; ++f) {
    int different = 0, first = 0;
    for (int pair = kPairs - 1; pair >= 0; --pair) {
      const unsigned manual = Manual(kForms[f], kValues[pair / kValueCount], kValues[pair % kValueCount]);
      if (results[f * kPairs + pair] == manual) continue;
      ++different;
      first = pair;
    }
    std::printf("%s %d of %d", kForms[f].text, different, kPairs);
    const unsigned a = kValues[first / kValueCount], b = kValues[first % kValueCount];
    if (different != 0)
      std::printf(": 0x%x, 0x%x gives 0x%x, the manual 0x%x", a, b, results[f * kPairs + first],
                  Manual(kForms[f], a, b));
    std::printf("\n");
  }
}
