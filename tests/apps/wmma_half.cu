// Tensor-core matrices of the first kind: f16 with f16 and f32 accumulators, three shapes, row and column layouts,
// int8.
#include <cuda_fp16.h>
#include <mma.h>

#include "app.h"

using namespace nvcuda;

template <int M, int N, int K, class LayoutA, class LayoutB, class In, class Acc>
__global__ void Multiply(const In* a, const In* b, const Acc* c, Acc* d) {
  wmma::fragment<wmma::matrix_a, M, N, K, In, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, In, LayoutB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> fc, twice;
  constexpr bool kRowA = std::is_same_v<LayoutA, wmma::row_major>, kRowB = std::is_same_v<LayoutB, wmma::row_major>;
  wmma::load_matrix_sync(fa, a, kRowA ? K : M);
  wmma::load_matrix_sync(fb, b, kRowB ? N : K);
  wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
  wmma::fill_fragment(twice, Acc(0));
  for (int i = 0; i < fc.num_elements; ++i) twice.x[i] = fc.x[i] + fc.x[i];
  wmma::mma_sync(fc, fa, fb, twice);
  wmma::store_matrix_sync(d, fc, M, wmma::mem_col_major);
}

template <int M, int N, int K, class LayoutA, class LayoutB, class In, class Acc>
void Test(const char* name) {
  std::vector<In> a(M * K), b(K * N);
  std::vector<Acc> c(M * N);
  for (int i = 0; i < M * K; ++i) a[i] = In(float(i * 7 % 13 - (std::is_unsigned_v<In> ? 0 : 6)));
  for (int i = 0; i < K * N; ++i) b[i] = In(float(i * 5 % 11 - (std::is_unsigned_v<In> ? 0 : 5)));
  for (int i = 0; i < M * N; ++i) c[i] = Acc(float(i % 9));
  Buffer<In> da(a), db(b);
  Buffer<Acc> dc(c), dd(M * N);
  Multiply<M, N, K, LayoutA, LayoutB, In, Acc><<<1, 32>>>(da, db, dc, dd);
  CU_LAUNCHED();
  const auto d = dd.Read();
  constexpr bool kRowA = std::is_same_v<LayoutA, wmma::row_major>, kRowB = std::is_same_v<LayoutB, wmma::row_major>;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double want = 2 * static_cast<double>(float(c[m * N + n]));
      for (int k = 0; k < K; ++k)
        want += static_cast<double>(float(a[kRowA ? m * K + k : k * M + m])) *
                static_cast<double>(float(b[kRowB ? k * N + n : n * K + k]));
      Same(name, m * 100 + n, static_cast<double>(float(d[n * M + m])), want);  // small integers: exact in every format
    }
}

int main() {
  using R = wmma::row_major;
  using C = wmma::col_major;
  Test<16, 16, 16, R, C, half, float>("f16 f32 16x16x16 row col");
  Test<16, 16, 16, C, R, half, float>("f16 f32 16x16x16 col row");
  Test<32, 8, 16, R, R, half, float>("f16 f32 32x8x16");
  Test<8, 32, 16, C, C, half, half>("f16 f16 8x32x16");
  Test<16, 16, 16, R, R, half, half>("f16 f16 16x16x16");
  Test<16, 16, 16, R, C, signed char, int>("s8 16x16x16");
  Test<32, 8, 16, C, R, unsigned char, int>("u8 32x8x16");
  return Verdict();
}
