// cublasSetKernelStream: the stream of the first interface's functions, of cuBLAS's and of ours.
#include "interpose/blas/call.h"

extern "C" __attribute__((visibility("default"))) int cublasSetKernelStream(void* stream) {
  using namespace gridloom::blas;  // NOLINT
  SetKernelStream(static_cast<gridloom::cuda::CUstream>(stream));
  auto* const real = Real("libcublas.so", &cublasSetKernelStream, "cublasSetKernelStream");
  return real == nullptr ? kInternalError : real(stream);
}
