// Tensor-core matrices of sm_80: bf16, tf32 and f64.
#include <cuda_bf16.h>
#include <mma.h>

#include "app.h"

using namespace nvcuda;

template <int M, int N, int K, class Fragment, class In, class Acc>
__global__ void Multiply(const In* a, const In* b, Acc* d) {
  wmma::fragment<wmma::matrix_a, M, N, K, Fragment, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, Fragment, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> fc;
  wmma::fill_fragment(fc, Acc(0.5));
  for (int step = 0; step < 2; ++step) {
    wmma::load_matrix_sync(fa, a + step * K, 2 * K);
    wmma::load_matrix_sync(fb, b + step * K, 2 * K);
    if constexpr (std::is_same_v<Fragment, wmma::precision::tf32>) {
      for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
      for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    }
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(d, fc, N, wmma::mem_row_major);
}

template <int M, int N, int K, class Fragment, class In, class Acc>
void Test(const char* name) {
  std::vector<In> a(M * 2 * K), b(N * 2 * K);
  for (int i = 0; i < M * 2 * K; ++i) a[i] = In(float(i * 7 % 31 - 15));
  for (int i = 0; i < N * 2 * K; ++i) b[i] = In(float(i * 5 % 29 - 14));
  Buffer<In> da(a), db(b);
  Buffer<Acc> dd(M * N);
  Multiply<M, N, K, Fragment, In, Acc><<<1, 32>>>(da, db, dd);
  CU_LAUNCHED();
  const auto d = dd.Read();
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double want = 0.5;
      for (int k = 0; k < 2 * K; ++k)
        want += static_cast<double>(float(a[m * 2 * K + k])) * static_cast<double>(float(b[n * 2 * K + k]));
      Same(name, m * 100 + n, static_cast<double>(d[m * N + n]), want);
    }
}
__global__ void ToTf32(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = wmma::__float_to_tf32(in[i]);
}

int main() {
  Test<16, 16, 16, __nv_bfloat16, __nv_bfloat16, float>("bf16 16x16x16");
  Test<32, 8, 16, __nv_bfloat16, __nv_bfloat16, float>("bf16 32x8x16");
  Test<16, 16, 8, wmma::precision::tf32, float, float>("tf32");
  Test<8, 8, 4, double, double, double>("f64");
  const std::vector<float> in = {1.0f, 1.0f + 0x1p-10f, 1.0f + 0x1p-11f, -1.0f - 0x1p-11f, 3.14159265f, 1e-20f};
  Buffer<float> din(in), out(in.size());
  ToTf32<<<1, 32>>>(din, out, in.size());
  CU_LAUNCHED();
  const auto t = out.Read();
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &in[i], 4);
    bits = (bits + 0x1000) & ~0x1fffu;  // nearest, ties away from zero
    float want;
    std::memcpy(&want, &bits, 4);
    Same("cvt.rna.tf32", i, t[i], want);
  }
  return Verdict();
}
