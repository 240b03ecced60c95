// A program that fills one pinned buffer anew for each of its copies, and waits for events and streams only before it
// does. `two`: the copies have a buffer each. What a trace and the timing model make of that is checked by
// overlap_test.py.
#include <cstdio>
#include <cstdlib>
#include <string>

#define CU(call)                                                         \
  do {                                                                   \
    if (const cudaError_t error = (call); error != cudaSuccess) {        \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

constexpr int kWords = 1 << 16, kBytes = kWords * 4, kRounds = 3;

/// By one block, so that what is copied to its array waits for it for long.
__global__ void Grow(int* p, int rounds) {
  for (int i = static_cast<int>(threadIdx.x); i < kWords; i += static_cast<int>(blockDim.x)) {
    int value = p[i];
    for (int round = 0; round < rounds; ++round) value = value * 5 + round;
    p[i] = value;
  }
}

__global__ void Add(int* sum, const int* p) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  sum[i] += p[i];
}

void Fill(int* buffer, int round) {
  for (int i = 0; i < kWords; ++i) buffer[i] = i * (round + 1);
}

int main(int count, char** arguments) {
  const bool two = count > 1 && std::string(arguments[1]) == "two";
  int *busy = nullptr, *sum = nullptr, *arrays[kRounds] = {}, *buffers[kRounds + 1] = {}, *result = nullptr;
  cudaStream_t first, second;
  cudaEvent_t event;
  CU(cudaMalloc(&busy, kBytes));
  CU(cudaMalloc(&sum, kBytes));
  for (int*& array : arrays) CU(cudaMalloc(&array, kBytes));
  for (int*& buffer : buffers) {
    if (two || buffers[0] == nullptr) CU(cudaMallocHost(&buffer, kBytes));
    else buffer = buffers[0];
  }
  CU(cudaMallocHost(&result, kBytes));
  CU(cudaStreamCreate(&first));
  CU(cudaStreamCreate(&second));
  CU(cudaEventCreate(&event));
  CU(cudaMemset(busy, 0, kBytes));
  CU(cudaMemset(sum, 0, kBytes));
  CU(cudaDeviceSynchronize());
  Grow<<<1, 1024, 0, first>>>(busy, 100);
  Fill(buffers[kRounds], kRounds);
  CU(cudaMemcpyAsync(busy, buffers[kRounds], kBytes, cudaMemcpyHostToDevice, first));
  CU(cudaEventRecord(event, first));
  CU(cudaEventSynchronize(event));
  for (int round = 0; round < kRounds; ++round) {
    Fill(buffers[round], round);
    CU(cudaMemcpyAsync(arrays[round], buffers[round], kBytes, cudaMemcpyHostToDevice, second));
    Add<<<kWords / 256, 256, 0, second>>>(sum, arrays[round]);
    CU(cudaStreamSynchronize(second));
  }
  // Its own memory again: the sums come where the inputs were.
  CU(cudaMemcpyAsync(buffers[0], sum, kBytes, cudaMemcpyDeviceToHost, second));
  CU(cudaMemcpyAsync(result, busy, kBytes, cudaMemcpyDeviceToHost, first));
  CU(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < kWords; ++i) {
    wrong += buffers[0][i] != i * (kRounds * (kRounds + 1) / 2) || result[i] != i * (kRounds + 1);
  }
  std::printf("%d wrong\n", wrong);
  return wrong != 0;
}
