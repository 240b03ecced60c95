// What comes before the benchmark kernels in CUDA. Their OpenCL and C++ forms compute the same.
#pragma once

#if defined(__clang__) && !defined(__CUDACC_VER_MAJOR__)
#include "tests/bench/clang_cuda.h"
#endif

#define KERNEL extern "C" __global__ void
