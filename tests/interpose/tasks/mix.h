// Kernels of the random mixes (mix.cu), in two modules, each with what it does on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

using Word = std::uint32_t;
constexpr unsigned kWords = 640;  ///< of each buffer

#define CU(call)                                                                                    \
  do {                                                                                              \
    const cudaError_t cu_error = (call);                                                            \
    if (cu_error != cudaSuccess) {                                                                  \
      std::printf("FAIL %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(cu_error)); \
      std::exit(1);                                                                                 \
    }                                                                                               \
  } while (0)

/// What a launch reads and writes, and how large it is.
struct Job {
  const Word* in = nullptr;
  Word* out = nullptr;
  unsigned blocks = 1, threads = 32, factor = 1;
};

/// A kernel that is launched, and the same on the host.
struct Form {
  const char* name;
  void (*launch)(const Job& job, cudaStream_t stream);
  void (*host)(const Job& job);
};

extern const Form kFirstForms[], kSecondForms[];
extern const unsigned kFirstCount, kSecondCount;

/// Threads of all launches of a module's `Count` so far, on the device and on the host.
Word FirstCounter();
Word SecondCounter();
extern Word first_counted, second_counted;
