// What the programs of this folder use of cuBLAS, declared by hand: no toolkit is needed. Numbers are those of
// cublas_api.h.
#pragma once

#include <cstddef>
#include <cstdint>

using Handle = struct Blas*;
using In = const void*;
using Out = void*;
using Wide = long long;
enum Op : int { kN, kT, kC };
enum Data : int {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kI8 = 3,
  kC32 = 4,
  kC64 = 5,
  kI32 = 10,
  kBf16 = 14,
  kE4m3 = 28,
  kE5m2 = 29
};

struct alignas(8) ComplexFloat {
  float re, im;
};
struct alignas(16) ComplexDouble {
  double re, im;
};

extern "C" {
int cublasCreate_v2(Handle*);
int cublasDestroy_v2(Handle);
int cublasSetStream_v2(Handle, void*);
int cublasSetPointerMode_v2(Handle, int);
int cublasSgemm_v2(Handle, int, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasSgemm_v2_64(Handle, int, int, Wide, Wide, Wide, In, In, Wide, In, Wide, In, Out, Wide);
int cublasDgemm_v2(Handle, int, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasCgemm_v2(Handle, int, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasZgemm_v2(Handle, int, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasHgemm(Handle, int, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasGemmEx(Handle, int, int, int, int, int, In, In, int, int, In, int, int, In, Out, int, int, int, int);
int cublasGemmStridedBatchedEx(Handle, int, int, int, int, int, In, In, int, int, Wide, In, int, int, Wide, In, Out,
                               int, int, Wide, int, int, int);
int cublasDgemmBatched(Handle, int, int, int, int, int, In, In, int, In, int, In, Out, int, int);
int cublasSgemmGroupedBatched(Handle, In, In, In, In, In, In, In, In, In, In, In, In, In, int, In);
int cublasSgemv_v2(Handle, int, int, int, In, In, int, In, int, In, Out, int);
int cublasZgemv_v2(Handle, int, int, int, In, In, int, In, int, In, Out, int);
int cublasHSSgemvStridedBatched(Handle, int, int, int, In, In, int, Wide, In, int, Wide, In, Out, int, Wide, int);
int cublasSsyrk_v2(Handle, int, int, int, int, In, In, int, In, Out, int);
int cublasCherk_v2(Handle, int, int, int, int, In, In, int, In, Out, int);
int cublasDsyr2k_v2(Handle, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasZher2k_v2(Handle, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasSsyrkx(Handle, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasSsymm_v2(Handle, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasZhemm_v2(Handle, int, int, int, int, In, In, int, In, int, In, Out, int);
int cublasDtrmm_v2(Handle, int, int, int, int, int, int, In, In, int, In, int, Out, int);
int cublasStrsm_v2(Handle, int, int, int, int, int, int, In, In, int, Out, int);
int cublasDtrsm_v2(Handle, int, int, int, int, int, int, In, In, int, Out, int);
int cublasZtrsm_v2(Handle, int, int, int, int, int, int, In, In, int, Out, int);

// The first interface. Complex factors are two numbers side by side, as std::complex is.
int cublasInit();
void cublasSgemm(char, char, int, int, int, float, In, int, In, int, float, Out, int);
void cublasCgemm(char, char, int, int, int, ComplexFloat, In, int, In, int, ComplexFloat, Out, int);
void cublasZgemm(char, char, int, int, int, ComplexDouble, In, int, In, int, ComplexDouble, Out, int);
void cublasDtrmm(char, char, char, char, int, int, double, In, int, Out, int);

int cublasLtMatmulDescCreate(Handle*, int, int);
int cublasLtMatmulDescDestroy(Handle);
int cublasLtMatmulDescSetAttribute(Handle, int, In, std::size_t);
int cublasLtMatrixLayoutCreate(Handle*, int, std::uint64_t, std::uint64_t, std::int64_t);
int cublasLtMatrixLayoutDestroy(Handle);
int cublasLtMatrixLayoutSetAttribute(Handle, int, In, std::size_t);
int cublasLtMatmul(Handle, Handle, In, In, Handle, In, Handle, In, In, Handle, Out, Handle, In, Out, std::size_t,
                   void*);
int cublasLtMatmulPreferenceCreate(Handle*);
int cublasLtMatmulPreferenceDestroy(Handle);
int cublasLtMatmulAlgoGetHeuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, Out, int*);
}
