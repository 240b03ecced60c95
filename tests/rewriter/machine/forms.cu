// Kernels whose machine code has what the other programs of the tests do not make the compiler emit: jump tables, calls
// of the runtime, shapes and types of the tensor cores, special registers. Compiled, compared with nvdisasm, never run.
#include <cassert>
#include <cstdint>
#include <cstdio>

#define SPECIAL(name, reg)                                \
  extern "C" __global__ void name(unsigned* out) {        \
    unsigned value;                                       \
    asm volatile("mov.u32 %0, %%" reg ";" : "=r"(value)); \
    out[0] = value;                                       \
  }
SPECIAL(special_eqmask, "lanemask_eq")
SPECIAL(special_lemask, "lanemask_le")
SPECIAL(special_ltmask, "lanemask_lt")
SPECIAL(special_gemask, "lanemask_ge")
SPECIAL(special_gtmask, "lanemask_gt")
SPECIAL(special_warpid, "warpid")
SPECIAL(special_nwarpid, "nwarpid")
SPECIAL(special_smid, "smid")
SPECIAL(special_nsmid, "nsmid")
SPECIAL(special_gridid, "gridid")
SPECIAL(special_clock, "clock")
SPECIAL(special_clock_hi, "clock_hi")
SPECIAL(special_timer, "globaltimer_lo")
SPECIAL(special_timer_hi, "globaltimer_hi")
SPECIAL(special_total_shared, "total_smem_size")
SPECIAL(special_dynamic_shared, "dynamic_smem_size")

// A dense switch with bodies unlike one another becomes a jump table.
extern "C" __global__ void jump_table(int* out, const int* in, float f) {
  const int i = threadIdx.x;
  switch (in[i]) {
    case 0: out[i] = in[i + 1] / in[i + 2]; break;
    case 1: out[i] = __float2int_rn(sinf(f)); break;
    case 2: atomicAdd(out, in[i + 5]); break;
    case 3:
      out[i] = __popc(in[i + 7]);
      __syncthreads();
      break;
    case 4: out[i + 3] = in[i] * 7; break;
    case 5: out[i] = __shfl_sync(~0u, in[i + 9], 3); break;
    case 6: out[i] = __float2int_rn(expf(f)); break;
    case 7: out[i] = __clz(in[i + 2]) + 3; break;
    case 8: out[i] = in[i + 11] % 13; break;
    case 9: out[2 * i] = __ffs(in[i]); break;
    case 10: out[i] = in[in[i + 1]]; break;
    case 11: out[i] = __brev(in[i + 12]); break;
    default: out[i] = -1;
  }
}

// The same with one value for all lanes.
extern "C" __global__ void uniform_jump_table(int* out, int which, float f) {
  const int i = threadIdx.x;
  switch (which) {
    case 0: out[i] = out[i + 1] / out[i + 2]; break;
    case 1: out[i] = __float2int_rn(sinf(f)); break;
    case 2: atomicAdd(out, out[i + 5]); break;
    case 3:
      out[i] = __popc(out[i + 7]);
      __syncthreads();
      break;
    case 4: out[i + 3] = out[i] * 7; break;
    case 5: out[i] = __shfl_sync(~0u, out[i + 9], 3); break;
    case 6: out[i] = __float2int_rn(expf(f)); break;
    case 7: out[i] = __clz(out[i + 2]) + 3; break;
    case 8: out[i] = out[i + 11] % 13; break;
    default: out[i] = -1;
  }
}

extern "C" __global__ void calls_of_the_runtime(int* out, int n) {
  assert(out[threadIdx.x] != n);
  if (out[0] == 3) printf("%d %f\n", n, 1.5 * n);
  if (out[1] == 4) __trap();
  if (out[2] == 5) __brkpt();
}

extern "C" __global__ void many_predicates(int* out, const int* in) {
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < 20; ++i) bits |= (in[i] > out[i] ? 1u : 0u) << i;
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 20; ++i)
    if (bits >> i & 1) sum += in[i + 20] * out[i + 3];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void wide_integers(unsigned long long* out, const long long* in, int shift) {
  const int i = threadIdx.x;
  out[i] = __umul64hi(in[i], in[i + 1]) + (in[i + 2] >> shift);
  out[i + 32] = in[i] / in[i + 3];
  out[i + 64] = __clzll(in[i]) + __popcll(in[i + 1]) + __ffsll(in[i + 2]);
  out[i + 96] = in[i] < in[i + 4] ? (unsigned long long)in[i + 5] << shift : __brevll(in[i]);
  out[i + 128] = max(in[i], in[i + 6]) + min((unsigned long long)in[i + 1], (unsigned long long)in[i + 2]);
}

extern "C" __global__ void packed(int* out, const int* in) {
  const int i = threadIdx.x;
  int r;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(in[i]), "r"(in[i + 1]), "r"(in[i + 2]));
  out[i] = r;
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(r) : "r"(in[i]), "r"(in[i + 1]));
  out[i + 32] = r;
  out[i + 64] = __byte_perm(in[i], in[i + 1], in[i + 2]);
  out[i + 96] = __dp4a(in[i], in[i + 1], in[i + 2]) + __dp2a_lo(in[i], in[i + 1], in[i + 2]) +
                __dp2a_hi(in[i + 3], in[i + 1], in[i + 2]);
  out[i + 128] = __vabsdiffu4(in[i], in[i + 1]) + __vsads4(in[i + 2], in[i + 3]);
  out[i + 160] = __funnelshift_l(in[i], in[i + 1], in[i + 2]) + __funnelshift_rc(in[i], in[i + 1], in[i + 2]);
}

// A whole program calls a function of a table relative to the kernel's own code, relocatable code by its address.
using Function = int (*)(int, const int*);
__device__ __noinline__ int sum_of(int n, const int* in) { return in[n] + in[n + 1]; }
__device__ __noinline__ int product_of(int n, const int* in) { return in[n] * in[n + 1] - n; }
__device__ Function g_functions[2] = {sum_of, product_of};
extern "C" __global__ void call_of_a_pointer(int* out, const int* in) {
  const int i = threadIdx.x;
  out[i] = g_functions[in[i] & 1](i, in);
}

// When nobody reads the result, a whole program has RED, and relocatable code ATOMG.
extern "C" __global__ void reductions(float* f, double* d, int* n, unsigned long long* w, unsigned pair) {
  atomicAdd(f + threadIdx.x, 2.0f);
  atomicAdd_system(f + 100 + threadIdx.x, 3.0f);
  atomicAdd(d + threadIdx.x, 2.5);
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(f + 7), "r"(pair) : "memory");
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(f + 8), "r"(pair) : "memory");
#endif
  atomicAdd(n, 3);
  atomicMax(n + 1, 4);
  atomicMin(n + 2, 5);
  atomicXor_block(n + 3, 6);
  atomicMax(w, 7ull);
  atomicAnd(w + 1, 8ull);
}

#define IMMA_K16(name, a, b, sat)                                                                         \
  extern "C" __global__ void name(int* out, const unsigned* in) {                                         \
    int c0 = in[0], c1 = in[1];                                                                           \
    asm volatile("mma.sync.aligned.m8n8k16.row.col" sat ".s32." a "." b ".s32 {%0,%1},{%2},{%3},{%0,%1};" \
                 : "+r"(c0), "+r"(c1)                                                                     \
                 : "r"(in[threadIdx.x]), "r"(in[threadIdx.x + 32]));                                      \
    out[2 * threadIdx.x] = c0;                                                                            \
    out[2 * threadIdx.x + 1] = c1;                                                                        \
  }
IMMA_K16(imma_s8s8, "s8", "s8", "")
IMMA_K16(imma_u8s8, "u8", "s8", "")
IMMA_K16(imma_s8u8, "s8", "u8", ".satfinite")
IMMA_K16(imma_u8u8, "u8", "u8", "")
#define IMMA_K32(name, a, b)                                                                       \
  extern "C" __global__ void name(int* out, const unsigned* in) {                                  \
    int c0 = in[0], c1 = in[1];                                                                    \
    asm volatile("mma.sync.aligned.m8n8k32.row.col.s32." a "." b ".s32 {%0,%1},{%2},{%3},{%0,%1};" \
                 : "+r"(c0), "+r"(c1)                                                              \
                 : "r"(in[threadIdx.x]), "r"(in[threadIdx.x + 32]));                               \
    out[2 * threadIdx.x] = c0;                                                                     \
    out[2 * threadIdx.x + 1] = c1;                                                                 \
  }
IMMA_K32(imma_s4s4, "s4", "s4")
IMMA_K32(imma_u4s4, "u4", "s4")

extern "C" __global__ void hmma_1688(float* out, const unsigned* in) {
  float c[4] = {};
  unsigned h[2] = {in[7], in[8]};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(in[0]), "r"(in[1]), "r"(in[2]));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3},{%4},{%0,%1};"
               : "+r"(h[0]), "+r"(h[1])
               : "r"(in[0]), "r"(in[1]), "r"(in[2]));
  for (int i = 0; i < 4; ++i) out[i] = c[i] + __uint_as_float(h[i & 1]);
}

extern "C" __global__ void matrices_of_shared(unsigned* out) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(s + threadIdx.x * 4)), r0, r1, r2, r3, t;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4+16];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(address));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r0), "=r"(t) : "r"(address + r1));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r1) : "r"(address + r0));
  out[threadIdx.x] = r0 + r1 + r2 + r3 + t;
}

#if __CUDA_ARCH__ >= 800
#define MMA_16816(name, types, cc, in_c)                                                         \
  extern "C" __global__ void name(float* out, const unsigned* in) {                              \
    float c[4] = {out[0], out[1], out[2], out[3]};                                               \
    asm volatile("mma.sync.aligned." types " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                \
                 : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5]));      \
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = c[i];                                 \
  }
MMA_16816(hmma_f16, "m16n8k16.row.col.f32.f16.f16.f32", , )
MMA_16816(hmma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", , )
MMA_16816(hmma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", , )
#define IMMA_BIG(name, types)                                                                    \
  extern "C" __global__ void name(int* out, const unsigned* in) {                                \
    int c[4] = {out[0], out[1], out[2], out[3]};                                                 \
    asm volatile("mma.sync.aligned." types " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" \
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                                \
                 : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5]));      \
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = c[i];                                 \
  }
IMMA_BIG(imma_16832, "m16n8k32.row.col.s32.u8.s8.s32")
IMMA_BIG(imma_16832_sat, "m16n8k32.row.col.satfinite.s32.s8.s8.s32")
IMMA_BIG(imma_16864, "m16n8k64.row.col.s32.s4.u4.s32")
extern "C" __global__ void hmma_tf32_k4(float* out, const unsigned* in) {
  float c[4] = {out[0], out[1], out[2], out[3]};
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(in[0]), "r"(in[1]), "r"(in[2]));
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = c[i];
}
extern "C" __global__ void imma_16816(int* out, const unsigned* in) {
  int c[4] = {out[0], out[1], out[2], out[3]};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(in[0]), "r"(in[1]), "r"(in[2]));
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = c[i];
}
extern "C" __global__ void dmma(double* out, const double* in) {
  double c0 = out[0], c1 = out[1];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
               : "+d"(c0), "+d"(c1)
               : "d"(in[0]), "d"(in[1]));
  out[2 * threadIdx.x] = c0;
  out[2 * threadIdx.x + 1] = c1;
}
#endif
