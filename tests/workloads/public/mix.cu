// Loads and multiply-adds in any proportion, as mixbench's read-only form (ekondis/mixbench): each thread loads eight
// elements, does some multiply-adds with each, adds up their products, and goes on at the next of four parts of the
// array. Only the sum that is asked for is stored.
#include <type_traits>

#include "choice.h"

constexpr int kThreads = 256, kEach = 8, kParts = 4;

template <class T, int kMultiplyAdds>
__global__ void Mix(T* data, T seed, T asked) {
  const int begin = blockIdx.x * kThreads * kEach + threadIdx.x, part = gridDim.x * kThreads * kEach;
  T values[kEach];
  for (int k = 0; k < kParts; ++k) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      values[j] = data[begin + j * kThreads + k * part];
#pragma unroll
      for (int i = 0; i < kMultiplyAdds; ++i) values[j] = values[j] * values[j] + seed;
    }
    T sum = 0;
#pragma unroll
    for (int j = 0; j < kEach; j += 2) sum += values[j] * values[j + 1];
    if (sum == asked) data[begin + k * part] = sum;
  }
}

/// What a thread adds up if all of its elements are `value`.
template <class T>
T Sum(T value, T seed, int multiply_adds) {
  for (int i = 0; i < multiply_adds; ++i) value = MultiplyAdd(value, value, seed);
  T sum = 0;
  for (int j = 0; j < kEach; j += 2) sum = MultiplyAdd(value, value, sum);
  return sum;
}

/// All elements are 0, but those of one thread, whose sum is asked for.
template <class T, int kMultiplyAdds>
void Run(int blocks) {
  const T seed = static_cast<T>(-2), other = static_cast<T>(std::is_floating_point_v<T> ? 0.3 : 3);
  const T asked = Sum(other, seed, kMultiplyAdds);
  const int thread = kThreads / 2 + 1;
  std::vector<T> data(static_cast<std::size_t>(blocks) * kThreads * kEach * kParts, 0);
  for (int j = 0; j < kEach; ++j) data[thread + j * kThreads] = other;
  True("one sum is unlike the others", asked != Sum(static_cast<T>(0), seed, kMultiplyAdds));
  const Buffer<T> device(data);
  Mix<T, kMultiplyAdds><<<blocks, kThreads>>>(device, seed, asked);
  CU_LAUNCHED();
  const std::vector<T> after = device.Read();
  data[thread] = asked;
  True("the sum that was asked for is stored, and nothing else", after == data);
}

int main(int argc, char** argv) {
  using Function = void (*)(int);
  const Function run = Chosen<Function>(argc, argv,
                                        {{"float-0", Run<float, 0>},
                                         {"float-16", Run<float, 16>},
                                         {"float-64", Run<float, 64>},
                                         {"double-0", Run<double, 0>},
                                         {"double-16", Run<double, 16>},
                                         {"double-64", Run<double, 64>},
                                         {"int-16", Run<int, 16>},
                                         {"int-64", Run<int, 64>}});
  const Sizes sizes(argc - 1, argv + 1, {{"blocks", 64, 4096}});
  run(sizes["blocks"]);
  return Verdict();
}
