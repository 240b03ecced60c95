// mma.sync and ldmatrix written as PTX: f16 (sm_75 and sm_80 shapes), bf16, tf32, f64, int8, int4, one bit.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "app.h"

// Fragment positions as the PTX manual gives them: group = lane / 4, quad = lane % 4.
__global__ void Half16816(const __half* a, const __half* b, float* d) {
  const int lane = threadIdx.x, g = lane / 4, q = lane % 4;
  unsigned fa[4], fb[2];
  float fd[4] = {1, 1, 1, 1};
  const auto pair = [](const __half* p) { return *reinterpret_cast<const unsigned*>(p); };
  fa[0] = pair(a + g * 16 + q * 2), fa[1] = pair(a + (g + 8) * 16 + q * 2), fa[2] = pair(a + g * 16 + q * 2 + 8),
  fa[3] = pair(a + (g + 8) * 16 + q * 2 + 8);
  fb[0] = pair(b + g * 16 + q * 2), fb[1] = pair(b + g * 16 + q * 2 + 8);  // B stored by columns
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(fd[0]), "+f"(fd[1]), "+f"(fd[2]), "+f"(fd[3])
               : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = fd[i];
}
// The same product with operands brought by ldmatrix, A through x4 and B through x2.
__global__ void Ldmatrix(const __half* a, const __half* b, float* d) {
  __shared__ __align__(16) __half sa[16 * 16], sb[8 * 16];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) sa[i] = a[i];
  for (int i = lane; i < 128; i += 32) sb[i] = b[i];
  __syncwarp();
  unsigned fa[4], fb[2];
  float fd[4] = {1, 1, 1, 1};
  const unsigned pa = __cvta_generic_to_shared(sa + lane % 16 * 16 + lane / 16 * 8),
                 pb = __cvta_generic_to_shared(sb + lane % 8 * 16 + lane / 8 % 2 * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
               : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(fb[0]), "=r"(fb[1]) : "r"(pb));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(fd[0]), "+f"(fd[1]), "+f"(fd[2]), "+f"(fd[3])
               : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = fd[i];
}
__global__ void Transposed(const unsigned short* in, unsigned* out) {
  __shared__ __align__(16) unsigned short s[64];
  for (int i = threadIdx.x; i < 64; i += 32) s[i] = in[i];
  __syncwarp();
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(out[threadIdx.x])
               : "r"(unsigned(__cvta_generic_to_shared(s + threadIdx.x % 8 * 8))));
}
__global__ void Half1688(const __half* a, const __half* b, __half2* d) {
  const int lane = threadIdx.x, g = lane / 4, q = lane % 4;
  const auto pair = [](const __half* p) { return *reinterpret_cast<const unsigned*>(p); };
  unsigned fd[2] = {0, 0};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
               : "+r"(fd[0]), "+r"(fd[1])
               : "r"(pair(a + g * 8 + q * 2)), "r"(pair(a + (g + 8) * 8 + q * 2)), "r"(pair(b + g * 8 + q * 2)));
  for (int i = 0; i < 2; ++i) d[((g + i * 8) * 8 + q * 2) / 2] = *reinterpret_cast<__half2*>(&fd[i]);
}
__global__ void Int8(const signed char* a, const signed char* b, int* d) {  // m16n8k32
  const int lane = threadIdx.x, g = lane / 4, q = lane % 4;
  const auto four = [](const signed char* p) { return *reinterpret_cast<const unsigned*>(p); };
  int fd[4] = {5, 5, 5, 5};
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(fd[0]), "+r"(fd[1]), "+r"(fd[2]), "+r"(fd[3])
               : "r"(four(a + g * 32 + q * 4)), "r"(four(a + (g + 8) * 32 + q * 4)), "r"(four(a + g * 32 + q * 4 + 16)),
                 "r"(four(a + (g + 8) * 32 + q * 4 + 16)), "r"(four(b + g * 32 + q * 4)),
                 "r"(four(b + g * 32 + q * 4 + 16)));
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = fd[i];
}
__global__ void Bits(const unsigned* a, const unsigned* b, int* d) {  // m8n8k128, and.popc
  const int lane = threadIdx.x, g = lane / 4, q = lane % 4;
  int fd[2] = {0, 0};
  asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+r"(fd[0]), "+r"(fd[1])
               : "r"(a[g * 4 + q]), "r"(b[g * 4 + q]));
  for (int i = 0; i < 2; ++i) d[g * 8 + q * 2 + i] = fd[i];
}
__global__ void Double884(const double* a, const double* b, double* d) {
  const int lane = threadIdx.x, g = lane / 4, q = lane % 4;
  double fd[2] = {0.25, 0.25};
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(fd[0]), "+d"(fd[1])
               : "d"(a[g * 4 + q]), "d"(b[g * 4 + q]));
  for (int i = 0; i < 2; ++i) d[g * 8 + q * 2 + i] = fd[i];
}

template <class In, class Out, class Kernel>
void Test(const char* name, int m, int k, double start, Kernel kernel) {
  std::vector<In> a(m * k), b(8 * k);
  for (int i = 0; i < m * k; ++i) a[i] = In(float(i * 7 % 15 - 7));
  for (int i = 0; i < 8 * k; ++i) b[i] = In(float(i * 5 % 13 - 6));
  Buffer<In> da(a), db(b);
  Buffer<Out> dd(m * 8);
  kernel(da, db, dd);
  CU_LAUNCHED();
  const auto d = dd.Read();
  for (int i = 0; i < m * 8; ++i) {
    double want = start;
    for (int j = 0; j < k; ++j)
      want += static_cast<double>(float(a[i / 8 * k + j])) * static_cast<double>(float(b[i % 8 * k + j]));
    Same(name, i, static_cast<double>(float(d[i])), want);
  }
}

int main() {
  Test<__half, float>("m16n8k16", 16, 16, 1, [](auto& a, auto& b, auto& d) { Half16816<<<1, 32>>>(a, b, d); });
  Test<__half, float>("ldmatrix", 16, 16, 1, [](auto& a, auto& b, auto& d) { Ldmatrix<<<1, 32>>>(a, b, d); });
  Test<__half, __half>("m16n8k8", 16, 8, 0, [](auto& a, auto& b, auto& d) {
    Half1688<<<1, 32>>>(a, b, reinterpret_cast<__half2*>(static_cast<__half*>(d)));
  });
  Test<signed char, int>("s8", 16, 32, 5, [](auto& a, auto& b, auto& d) { Int8<<<1, 32>>>(a, b, d); });
  Test<double, double>("f64", 8, 4, 0.25, [](auto& a, auto& b, auto& d) { Double884<<<1, 32>>>(a, b, d); });
  std::vector<unsigned> a(32), b(32);
  Random random(19);
  for (int i = 0; i < 32; ++i) a[i] = random.Next(), b[i] = random.Next();
  Buffer<unsigned> da(a), db(b), transposed(32);
  Buffer<int> dd(64);
  Bits<<<1, 32>>>(da, db, dd);
  std::vector<unsigned short> matrix(64);
  for (int i = 0; i < 64; ++i) matrix[i] = i * 3;
  Buffer<unsigned short> dm(matrix);
  Transposed<<<1, 32>>>(dm, transposed);
  CU_LAUNCHED();
  const auto d = dd.Read();
  for (int i = 0; i < 64; ++i) {
    int want = 0;
    for (int w = 0; w < 4; ++w) want += __builtin_popcount(a[i / 8 * 4 + w] & b[i % 8 * 4 + w]);
    Same("b1", i, d[i], want);
  }
  const auto t = transposed.Read();
  for (int lane = 0; lane < 32; ++lane)
    Same("trans", lane, t[lane],
         unsigned(matrix[lane % 4 * 2 * 8 + lane / 4] | matrix[(lane % 4 * 2 + 1) * 8 + lane / 4] << 16));
  return Verdict();
}
