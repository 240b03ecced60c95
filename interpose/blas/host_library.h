// A BLAS of the host's, OpenBLAS or BLIS, where one is installed: it is looked for when the first product is made.
#pragma once

#include <complex>
#include <string>

namespace gridloom::blas {

/// C = alpha op(A) op(B) + beta C as the BLAS has it: columns lie behind each other, sizes are 32 bits.
template <typename Value>
using HostGemm = void (*)(const char* op_a, const char* op_b, const int* m, const int* n, const int* k,
                          const Value* alpha, const Value* a, const int* lda, const Value* b, const int* ldb,
                          const Value* beta, Value* c, const int* ldc);

struct HostLibrary {
  std::string name;  ///< of the file; empty: there is none, and the functions are null
  HostGemm<float> sgemm = nullptr;
  HostGemm<double> dgemm = nullptr;
  HostGemm<std::complex<float>> cgemm = nullptr;
  HostGemm<std::complex<double>> zgemm = nullptr;

  bool found() const { return !name.empty(); }
  template <typename Value>
  HostGemm<Value> gemm() const;
};
template <>
inline HostGemm<float> HostLibrary::gemm() const {
  return sgemm;
}
template <>
inline HostGemm<double> HostLibrary::gemm() const {
  return dgemm;
}
template <>
inline HostGemm<std::complex<float>> HostLibrary::gemm() const {
  return cgemm;
}
template <>
inline HostGemm<std::complex<double>> HostLibrary::gemm() const {
  return zgemm;
}

/// The library that GRIDLOOM_BLAS names: a file, or `off`; unset: OpenBLAS, else BLIS. The library uses `threads`
/// threads unless the program has loaded it, too.
const HostLibrary& TheHostLibrary(unsigned threads);

}  // namespace gridloom::blas
