// What is destroyed while work that uses it is queued or runs: the work goes on to its end, and whoever waits for the
// device, frees memory or takes a module away waits for it.
#include <cuda.h>

#include "spin.h"

constexpr long long kLong = 5'000'000;  // ns: longer than the host takes to come by

__global__ void Store(volatile int* out, int value) { *out = value; }

__global__ void SpinThenAdd(int* out, int amount, long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  atomicAdd(out, amount);
}

// Waits, then writes all of a block.
__global__ void SpinThenFill(volatile int* out, int count, int value, long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  for (int i = 0; i < count; ++i) out[i] = value;
}

struct Mapped {
  Mapped() {
    CU(cudaHostAlloc(&cell, sizeof(int), cudaHostAllocMapped));
    *cell = 0;
  }
  ~Mapped() { CU(cudaFreeHost(cell)); }
  int Read() const { return *static_cast<volatile int*>(cell); }
  int* cell = nullptr;
};

cudaStream_t NewStream(unsigned flags) {
  cudaStream_t stream;
  CU(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

// Streams of both kinds: the device's synchronisation, and the legacy stream for blocking ones.
void Streams(unsigned flags) {
  Mapped seen;
  cudaStream_t stream = NewStream(flags);
  SpinThenStore<<<1, 1, 0, stream>>>(seen.cell, 1, kLong);
  CU(cudaStreamDestroy(stream));
  CU(cudaDeviceSynchronize());
  Same("device", flags, seen.Read(), 1);

  // Many of them, most of which are through before the last one is destroyed.
  *seen.cell = 0;
  for (int i = 0; i < 200; ++i) {
    stream = NewStream(flags);
    SpinThenAdd<<<1, 1, 0, stream>>>(seen.cell, 1, i % 50 == 49 ? kLong : 0);
    CU(cudaStreamDestroy(stream));
  }
  CU(cudaDeviceSynchronize());
  Same("many", flags, seen.Read(), 200);

  if (flags == cudaStreamNonBlocking) return;
  stream = NewStream(flags);
  SpinThenStore<<<1, 1, 0, stream>>>(seen.cell, 4, kLong);
  CU(cudaStreamDestroy(stream));
  Store<<<1, 1>>>(seen.cell, 5);
  CU(cudaStreamSynchronize(cudaStreamLegacy));
  Same("legacy", flags, seen.Read(), 5);
}

// The block is free when the kernel has ended, not before: else it writes into the next allocation.
void Memory(unsigned flags) {
  constexpr int kCount = 1 << 14;
  int* block = nullptr;
  CU(cudaMalloc(&block, kCount * sizeof(int)));
  cudaStream_t stream = NewStream(flags);
  SpinThenFill<<<1, 1, 0, stream>>>(block, kCount, -1, kLong);
  CU(cudaStreamDestroy(stream));
  CU(cudaFree(block));
  int* next = nullptr;
  CU(cudaMalloc(&next, kCount * sizeof(int)));
  const std::vector<int> mine(kCount, 7);
  CU(cudaMemcpy(next, mine.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  CU(cudaDeviceSynchronize());
  std::vector<int> got(kCount);
  CU(cudaMemcpy(got.data(), next, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (const int one : got) wrong += one != 7;
  Same("the next allocation", flags, wrong, 0);
  CU(cudaFree(next));
}

// Pinned and registered memory, which the host has back when it is freed.
void HostMemory(unsigned flags) {
  static int mine = 0;
  mine = 0;
  CU(cudaHostRegister(&mine, sizeof mine, cudaHostRegisterMapped));
  cudaStream_t stream = NewStream(flags);
  SpinThenStore<<<1, 1, 0, stream>>>(&mine, 9, kLong);
  CU(cudaStreamDestroy(stream));
  CU(cudaHostUnregister(&mine));
  Same("registered", flags, mine, 9);
}

// An event: who waits for it goes on waiting.
void Events() {
  Mapped seen;
  cudaStream_t a = NewStream(cudaStreamNonBlocking), b = NewStream(cudaStreamNonBlocking);
  cudaEvent_t event;
  CU(cudaEventCreate(&event));
  SpinThenStore<<<1, 1, 0, a>>>(seen.cell, 4, kLong);
  CU(cudaEventRecord(event, a));
  CU(cudaStreamWaitEvent(b, event, 0));
  AppendDigit<<<1, 1, 0, b>>>(seen.cell, 2);
  CU(cudaEventDestroy(event));
  CU(cudaStreamDestroy(a));
  CU(cudaStreamDestroy(b));
  CU(cudaDeviceSynchronize());
  Same("event", 0, seen.Read(), 42);
}

// A graph, what was made of it, and the stream it was launched in.
void Graphs() {
  Mapped seen;
  cudaStream_t stream = NewStream(cudaStreamNonBlocking);
  CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  SpinThenStore<<<1, 1, 0, stream>>>(seen.cell, 1, kLong);
  AppendDigit<<<1, 1, 0, stream>>>(seen.cell, 2);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CU(cudaStreamEndCapture(stream, &graph));
  CU(cudaGraphInstantiate(&exec, graph, 0));
  CU(cudaGraphDestroy(graph));
  CU(cudaGraphLaunch(exec, stream));
  CU(cudaGraphLaunch(exec, stream));
  CU(cudaGraphExecDestroy(exec));
  AppendDigit<<<1, 1, 0, stream>>>(seen.cell, 3);
  CU(cudaStreamDestroy(stream));
  CU(cudaDeviceSynchronize());
  Same("graph", 0, seen.Read(), 123);
}

// Memory in the order of a stream, from a pool that goes.
void Pools() {
  Mapped seen;
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool;
  CU(cudaMemPoolCreate(&pool, &props));
  cudaStream_t stream = NewStream(cudaStreamNonBlocking);
  int* block = nullptr;
  CU(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&block), sizeof(int), pool, stream));
  SpinThenStore<<<1, 1, 0, stream>>>(block, 6, kLong);
  CU(cudaMemcpyAsync(seen.cell, block, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CU(cudaFreeAsync(block, stream));
  CU(cudaMemPoolDestroy(pool));
  CU(cudaStreamDestroy(stream));
  CU(cudaDeviceSynchronize());
  Same("pool", 0, seen.Read(), 6);
}

// A module and a library: copies to their variables are over when they are gone.
constexpr char kModule[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .align 4 .b8 cells[262144];
.visible .entry nothing() { ret; }
)";

void CheckVariable(CUdeviceptr cells, const char* what, void (*unload)(void*), void* handle) {
  constexpr std::size_t kBytes = 262144;
  Mapped ran;
  int* source = nullptr;
  CU(cudaHostAlloc(&source, kBytes, 0));
  std::memset(source, 0xee, kBytes);
  cudaStream_t stream = NewStream(cudaStreamNonBlocking);
  SpinThenStore<<<1, 1, 0, stream>>>(ran.cell, 1, kLong);
  CU(cudaMemcpyAsync(reinterpret_cast<void*>(cells), source, kBytes, cudaMemcpyHostToDevice, stream));
  CU(cudaStreamDestroy(stream));
  unload(handle);
  Same(what, 0, ran.Read(), 1);
  CU(cudaDeviceSynchronize());
  CU(cudaFreeHost(source));
}

void Modules() {
  CUmodule module;
  CUdeviceptr cells;
  True("load", cuModuleLoadData(&module, kModule) == CUDA_SUCCESS);
  True("variable", cuModuleGetGlobal(&cells, nullptr, module, "cells") == CUDA_SUCCESS);
  CheckVariable(
      cells, "module",
      [](void* handle) { True("unload", cuModuleUnload(static_cast<CUmodule>(handle)) == CUDA_SUCCESS); }, module);
  CUlibrary library;
  True("load", cuLibraryLoadData(&library, kModule, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  True("variable", cuLibraryGetGlobal(&cells, nullptr, library, "cells") == CUDA_SUCCESS);
  CheckVariable(
      cells, "library",
      [](void* handle) { True("unload", cuLibraryUnload(static_cast<CUlibrary>(handle)) == CUDA_SUCCESS); }, library);
}

// The context itself: its end waits for all of that. Last, as nothing is left then.
void Device() {
  static int mine = 0;
  CU(cudaHostRegister(&mine, sizeof mine, cudaHostRegisterMapped));
  cudaStream_t stream = NewStream(cudaStreamNonBlocking);
  SpinThenStore<<<1, 1, 0, stream>>>(&mine, 9, kLong);
  CU(cudaStreamDestroy(stream));
  CU(cudaDeviceReset());
  Same("reset", 0, mine, 9);
}

int main() {
  for (const unsigned flags :
       {static_cast<unsigned>(cudaStreamNonBlocking), static_cast<unsigned>(cudaStreamDefault)}) {
    Streams(flags);
    for (int round = 0; round < 4; ++round) Memory(flags);
    HostMemory(flags);
  }
  Events();
  Graphs();
  Pools();
  Modules();
  Device();
  return Verdict();
}
