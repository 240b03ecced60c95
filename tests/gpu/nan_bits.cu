// Bits of results that are not a number, of the second operation of video instructions, and what isspacep says: a line
// for each, whose bits the PTX manual leaves open or leaves room to read in two ways. The driver compiles the
// instructions, which see their operands only when they run.
#include <cuda_runtime.h>

#include <cstdio>

namespace {

constexpr int kMost = 200;
__constant__ unsigned g_constant = 5;
__device__ unsigned g_variable = 6;
struct Parameter {
  unsigned long long bits;
};

struct Case {
  const char* name;
  int digits;
};
constexpr Case kCases[] = {
#define CASE_F32(name, ...) {name, 8},
#define CASE_F64(name, ...) {name, 16},
#include "nan_bits.inc"
#undef CASE_F32
#undef CASE_F64
};

__global__ void Run(const unsigned long long* in, unsigned long long* out,
                    const __grid_constant__ Parameter parameter) {
  // Infinities of both signs, signalling and quiet NaNs with a payload, in three widths.
  const unsigned f_inf = in[0], f_ninf = in[1], f_snan = in[2], f_qnan = in[3];
  const unsigned long long d_inf = in[4], d_ninf = in[5], d_qnan = in[6], d_snan = in[7];
  const unsigned short h_qnan = in[10], h_snan = in[14];
  unsigned word;
  unsigned long long doubleword;
  int n = 0;
#define CASE_F32(name, text, ...)                \
  asm volatile(text : "=r"(word) : __VA_ARGS__); \
  out[n++] = word;
#define CASE_F64(name, text, ...)                      \
  asm volatile(text : "=l"(doubleword) : __VA_ARGS__); \
  out[n++] = doubleword;
#include "nan_bits.inc"
  if (parameter.bits != 77) out[0] = 0;
}

}  // namespace

int main() {
  constexpr unsigned long long kIn[16] = {0x7f800000,
                                          0xff800000,
                                          0x7f812345,
                                          0xffc54321,
                                          0x7ff0000000000000,
                                          0xfff0000000000000,
                                          0xfff8000000012345,
                                          0x7ff0000000054321,
                                          0,
                                          0,
                                          0xfe12,
                                          0xffffffff,
                                          0x80000000,
                                          0x7fffffff,
                                          0x7c12,
                                          0};
  unsigned long long *in = nullptr, *out = nullptr, values[kMost] = {};
  cudaMalloc(&in, sizeof kIn);
  cudaMalloc(&out, sizeof values);
  cudaMemcpy(in, kIn, sizeof kIn, cudaMemcpyHostToDevice);
  Run<<<1, 1>>>(in, out, Parameter{77});
  if (const cudaError_t error = cudaMemcpy(values, out, sizeof values, cudaMemcpyDeviceToHost); error != cudaSuccess) {
    std::printf("error %s\n", cudaGetErrorName(error));
    return 1;
  }
  int n = 0;
  for (const Case& one : kCases) std::printf("%s 0x%0*llx\n", one.name, one.digits, values[n++]);
}
