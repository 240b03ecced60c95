// Chains of operations in one block, as cuda-incore (RRZE-HPC/gpu-benches) and volkov1 (hughperkins/gpu-experiments): a
// turn of each warp makes kOperations multiply-adds, in one chain or several; or kFew times a division or square root
// of a sum, in double precision.
#include "choice.h"

constexpr int kOperations = 1024, kFew = 128;

/// Leaves the sum of what the turns end with.
template <class T, int kChains>
__global__ void MultiplyAdds(double start, double* out, int turns) {
  T sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    T values[kChains];
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) values[chain] = static_cast<T>(start) + threadIdx.x + turn + chain;
#pragma unroll
    for (int i = 0; i < kOperations / kChains; ++i) {
#pragma unroll
      for (int chain = 0; chain < kChains; ++chain)
        values[chain] = values[chain] * static_cast<T>(0.9) + static_cast<T>(0.5);
    }
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) sum += values[chain];
  }
  out[threadIdx.x] = sum;
}

template <bool kDivide>
__global__ void Slow(double start, double* out, int turns) {
  double sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    double value = start + threadIdx.x + turn;
#pragma unroll 8
    for (int i = 0; i < kFew; ++i) value = kDivide ? 0.1 / (value + 0.2) : sqrt(value + 0.2);
    sum += value;
  }
  out[threadIdx.x] = sum;
}

double MultiplyAdd(double value) { return std::fma(value, 0.9, 0.5); }
double Divide(double value) { return 0.1 / (value + 0.2); }
double SquareRoot(double value) { return std::sqrt(value + 0.2); }

/// A kernel with its chains, what its operation is, how many of them a chain has, and how far off the sums may be.
struct Operation {
  void (*kernel)(double, double*, int);
  int chains;
  double (*operation)(double);
  int count;
  double tolerance;
};

int main(int argc, char** argv) {
  const Operation chosen =
      Chosen<Operation>(argc, argv,
                        {{"fma", {MultiplyAdds<double, 1>, 1, MultiplyAdd, kOperations, 1e-12}},
                         {"fma-2", {MultiplyAdds<double, 2>, 2, MultiplyAdd, kOperations / 2, 1e-12}},
                         {"fma-float", {MultiplyAdds<float, 1>, 1, MultiplyAdd, kOperations, 1e-5}},
                         {"fma-float-2", {MultiplyAdds<float, 2>, 2, MultiplyAdd, kOperations / 2, 1e-5}},
                         {"fma-float-8", {MultiplyAdds<float, 8>, 8, MultiplyAdd, kOperations / 8, 1e-5}},
                         {"div", {Slow<true>, 1, Divide, kFew, 1e-12}},
                         {"sqrt", {Slow<false>, 1, SquareRoot, kFew, 1e-12}}});
  const Sizes sizes(argc - 1, argv + 1, {{"warps", 1, 32}, {"turns", 20, 10000}});
  const int threads = 32 * sizes["warps"], turns = sizes["turns"];
  const Buffer<double> out(threads);
  chosen.kernel<<<1, threads>>>(0.32, out, turns);
  CU_LAUNCHED();
  const std::vector<double> got = out.Read();
  for (int thread = 0; thread < threads; ++thread) {
    double want = 0;
    for (int n = 0; n < turns * chosen.chains; ++n) {
      double value = 0.32 + thread + n / chosen.chains + n % chosen.chains;
      for (int i = 0; i < chosen.count; ++i) value = chosen.operation(value);
      want += value;
    }
    Near("sum", thread, got[thread], want, chosen.tolerance);
  }
  return Verdict();
}
