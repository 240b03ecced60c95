// Tasks in many streams, one of which does what it must not. All of the host's calls then give the error, until the
// device is reset.
//
// usage: fault [address|trap|assert|none, address] [number of the task, 700]
#include <cassert>
#include <cstring>
#include <vector>

#include "mix.h"

__global__ void Work(Word* out, Word value, Word rounds) {
  Word sum = value + threadIdx.x;
  for (Word i = 0; i < rounds; ++i) sum = sum * 1664525u + 1013904223u;
  out[threadIdx.x] = sum;
}

enum Fault : Word { kNone, kAddress, kTrap, kAssert };

__global__ void Bad(Word* out, Fault fault) {
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  if (thread == 37 && blockIdx.x == 2) {
    if (fault == kAddress) *reinterpret_cast<volatile Word*>(static_cast<std::uintptr_t>(0x1234560)) = 1;
    if (fault == kTrap) asm volatile("trap;");
    if (fault == kAssert) assert(out == nullptr);
  }
  out[thread] = thread;
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "address";
  const Fault fault = std::strcmp(how, "trap") == 0     ? kTrap
                      : std::strcmp(how, "assert") == 0 ? kAssert
                      : std::strcmp(how, "none") == 0   ? kNone
                                                        : kAddress;
  const int at = argc > 2 ? std::atoi(argv[2]) : 700;
  constexpr int kStreams = 8, kTasks = 1500;
  std::vector<cudaStream_t> streams(kStreams);
  for (cudaStream_t& stream : streams) CU(cudaStreamCreate(&stream));
  Word* memory = nullptr;
  CU(cudaMalloc(&memory, kTasks * 64 * sizeof(Word)));
  Word* host = nullptr;
  CU(cudaMallocHost(&host, 64 * sizeof(Word)));
  cudaError_t error = cudaSuccess;
  for (int i = 0; i < kTasks && error == cudaSuccess; ++i) {
    if (i == at) Bad<<<3, dim3(16, 4), 0, streams[3]>>>(memory + i * 64, fault);
    else Work<<<1, 64, 0, streams[i % kStreams]>>>(memory + i * 64, static_cast<Word>(i), 2000);
    error = cudaGetLastError();
    if (i % 5 == 0 && error == cudaSuccess)
      error = cudaMemcpyAsync(host, memory + i * 64, 64 * sizeof(Word), cudaMemcpyDeviceToHost, streams[i % kStreams]);
  }
  const cudaError_t waited = cudaDeviceSynchronize();
  std::printf("waited: %s\n", cudaGetErrorName(waited));
  std::printf("stream: %s\n", cudaGetErrorName(cudaStreamSynchronize(streams[0])));
  Work<<<1, 64>>>(memory, 1, 1);
  std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("memory: %s\n", cudaGetErrorName(cudaMalloc(&memory, 4)));
  std::printf("reset: %s\n", cudaGetErrorName(cudaDeviceReset()));
  CU(cudaMalloc(&memory, 64 * sizeof(Word)));
  for (int i = 0; i < 100; ++i) Work<<<1, 64>>>(memory, 5, 10);
  CU(cudaDeviceSynchronize());
  Word got = 0, want = 5;
  CU(cudaMemcpy(&got, memory, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 10; ++i) want = want * 1664525u + 1013904223u;
  std::printf("after: %s\n", got == want ? "as it should be" : "WRONG");
  return got != want;
}
