// Shared memory and constants, as shmembench and constbench of ekondis/gpumembench:
// swap      each thread exchanges neighbours among its six elements in shared memory, five pairs a turn
// constant  each thread adds up kConstants constants
#include "choice.h"

constexpr int kThreads = 256, kElements = 6, kConstants = 1024;

__constant__ int constants[kConstants];

__device__ void Exchange(float* elements, int i) {
  float* const one = elements + i * kThreads;
  float* const other = one + kThreads;
  const float value = *other;
  *other = *one;
  *one = value;
}

__global__ void Swap(float* out, int turns) {
  __shared__ float shared[kElements * kThreads];
  float* const elements = shared + threadIdx.x;
  for (int i = 0; i < kElements; ++i) elements[i * kThreads] = static_cast<float>(threadIdx.x + i * 1000);
  __threadfence_block();
#pragma unroll 32
  for (int turn = 0; turn < turns; ++turn) {
    Exchange(elements, 0);
    Exchange(elements, 2);
    Exchange(elements, 4);
    __threadfence_block();
    Exchange(elements, 1);
    Exchange(elements, 3);
    __threadfence_block();
  }
  float sum = 0;
  for (int i = 0; i < kElements; ++i) sum = sum * 3 + elements[i * kThreads];
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

/// In four passes with a stride of four, so that no two constants beside each other are loaded at once.
__global__ void Constant(int* out) {
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
#pragma unroll 128
    for (int j = 0; j < kConstants; j += 4) sum += constants[j + i];
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

void RunSwap(int blocks, int turns) {
  const Buffer<float> out(std::size_t{1} * blocks * kThreads);
  Swap<<<blocks, kThreads>>>(out, turns);
  CU_LAUNCHED();
  const std::vector<float> got = out.Read();
  for (std::size_t i = 0; i < got.size(); ++i) {
    float elements[kElements];
    for (int n = 0; n < kElements; ++n) elements[n] = static_cast<float>(i % kThreads + n * 1000);
    for (int turn = 0; turn < turns; ++turn) {
      for (const int n : {0, 2, 4, 1, 3}) std::swap(elements[n], elements[n + 1]);
    }
    double want = 0;
    for (const float element : elements) want = want * 3 + element;
    Near("sum", static_cast<long>(i), got[i], want, 1e-5);
  }
}

void RunConstant(int blocks, int) {
  std::vector<int> values(kConstants);
  int want = 0;
  for (int i = 0; i < kConstants; ++i) want += values[i] = i * i % 97;
  CU(cudaMemcpyToSymbol(constants, values.data(), sizeof(constants)));
  const Buffer<int> out(std::size_t{1} * blocks * kThreads);
  Constant<<<blocks, kThreads>>>(out);
  CU_LAUNCHED();
  const std::vector<int> got = out.Read();
  for (std::size_t i = 0; i < got.size(); ++i) Same("sum", static_cast<long>(i), got[i], want);
}

int main(int argc, char** argv) {
  using Function = void (*)(int, int);
  const Function run = Chosen<Function>(argc, argv, {{"swap", RunSwap}, {"constant", RunConstant}});
  const Sizes sizes(argc - 1, argv + 1, {{"blocks", 90, 4096}, {"turns", 32, 1024}});
  run(sizes["blocks"], sizes["turns"]);
  return Verdict();
}
