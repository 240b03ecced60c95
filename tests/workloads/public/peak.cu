// As many multiply-adds as a device can do: two numbers, or several pairs of them, that are multiplied and added in
// turn, as clpeak's compute kernels (krrishnarraj/clpeak). Each thread does kMultiplyAdds.
#include <type_traits>

#include "choice.h"

constexpr int kThreads = 1024, kMultiplyAdds = 2048, kEach = 16;

template <class T>
__host__ __device__ T StartY(int thread) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(-(thread % 32 + 1) / 64.0);
  else return thread;
}

template <class T, int kPairs>
__global__ void Peak(T* out, T start) {
  T x[kPairs], y[kPairs];
  for (int pair = 0; pair < kPairs; ++pair) {
    x[pair] = start;
    y[pair] = StartY<T>(threadIdx.x + pair);
  }
#pragma unroll 8
  for (int i = 0; i < kMultiplyAdds; i += kEach) {
#pragma unroll
    for (int j = 0; j < kEach; j += 2 * kPairs) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) x[pair] = y[pair] * x[pair] + y[pair];
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) y[pair] = x[pair] * y[pair] + x[pair];
    }
  }
  T sum = 0;
  for (int pair = 0; pair < kPairs; ++pair) sum += x[pair] + y[pair];
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

template <class T, int kPairs>
T Want(T start, int thread) {
  T sum = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    T x = start, y = StartY<T>(thread + pair);
    for (int i = 0; i < kMultiplyAdds / kPairs; i += 2) {
      x = MultiplyAdd(y, x, y);
      y = MultiplyAdd(x, y, x);
    }
    if constexpr (std::is_floating_point_v<T>) sum += x + y;
    else sum = static_cast<T>(static_cast<unsigned>(sum) + static_cast<unsigned>(x) + static_cast<unsigned>(y));
  }
  return sum;
}

template <class T, int kPairs>
void Run(int blocks) {
  const T start = static_cast<T>(std::is_floating_point_v<T> ? 0.2 : 3);
  const Buffer<T> out(std::size_t{1} * blocks * kThreads);
  Peak<T, kPairs><<<blocks, kThreads>>>(out, start);
  CU_LAUNCHED();
  const std::vector<T> got = out.Read();
  std::vector<T> want(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) want[thread] = Want<T, kPairs>(start, thread);
  for (std::size_t i = 0; i < got.size(); ++i) Same("sum", static_cast<long>(i), got[i], want[i % kThreads]);
}

int main(int argc, char** argv) {
  using Function = void (*)(int);
  const Function run = Chosen<Function>(
      argc, argv,
      {{"float", Run<float, 1>}, {"float2", Run<float, 2>}, {"double", Run<double, 1>}, {"int", Run<int, 1>}});
  const Sizes sizes(argc - 1, argv + 1, {{"blocks", 16, 480}});
  run(sizes["blocks"]);
  return Verdict();
}
