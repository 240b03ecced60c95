// A call of cuBLAS that is answered here: the handle's stream and pointer mode, cuBLAS's own functions, its
// enumerations. Numbers are those of the toolkit's cublas_api.h and library_types.h.
#pragma once

#include <cstdint>
#include <optional>

#include "interpose/api/cuda_types.h"
#include "interpose/blas/device/product.h"
#include "interpose/hooks/own_kernels.h"

namespace gridloom::blas {

/// cublasStatus_t.
enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15,
};

/// cublasOperation_t.
enum Op : int { kOpN = 0, kOpT = 1, kOpC = 2 };

using Index = std::int64_t;

/// What the letter in a function's name says: elements of the factors, of alpha and beta, of the result.
struct Types {
  Element matrix, factor, result;
};
inline constexpr Types kH{Element::kF16, Element::kF16, Element::kF16}, kS{Element::kF32, Element::kF32, Element::kF32},
    kD{Element::kF64, Element::kF64, Element::kF64}, kC{Element::kC32, Element::kC32, Element::kC32},
    kZ{Element::kC64, Element::kC64, Element::kC64}, kHSH{Element::kF16, Element::kF32, Element::kF16},
    kHSS{Element::kF16, Element::kF32, Element::kF32}, kTST{Element::kBf16, Element::kF32, Element::kBf16},
    kTSS{Element::kBf16, Element::kF32, Element::kF32};

/// The element a cudaDataType names; none for those that no function here takes.
std::optional<Element> ElementOf(int data_type);
/// The elements of alpha and beta for a cublasComputeType_t, or a cudaDataType as before cuBLAS 11; none when it is not
/// known.
std::optional<Element> FactorOf(int compute_type, bool complex);
Index SizeOf(Element element);
bool IsComplex(Element element);
/// The real numbers of which `element` is made.
Element RealOf(Element element);

struct Call {
  void* handle;
  const char* name;
  bool wide;                     ///< a function whose name ends in _64: arrays of integers hold 64-bit ones
  bool first_interface = false;  ///< of cublas.h: there is no handle, factors lie on the host
};

/// The stream that cublasSetKernelStream chose for the first interface.
void SetKernelStream(cuda::CUstream stream);

/// The handle's stream, and whether alpha and beta lie in device memory.
struct Settings {
  cuda::CUstream stream;
  bool device_factors;
};
Status ReadSettings(const Call& call, Settings* settings);

/// A factor at `pointer`, on the host or in device memory.
Factor FactorAt(const void* pointer, Element element, bool on_device);
Factor One();

/// Starts the kernel of a product on a stream of the current context. Products without elements succeed at once.
Status Launch(const char* name, const Product& product, cuda::CUstream stream);

/// The same for the solution of a triangle of at most kSolveRows rows.
Status Launch(const char* name, const Solve& solve, cuda::CUstream stream);
/// Memory of the stream's order, of the current context.
Status Allocate(Index bytes, cuda::CUstream stream, std::uint64_t* address);
Status Free(std::uint64_t address, cuda::CUstream stream);

using hooks::PassOn;
using hooks::Real;

}  // namespace gridloom::blas
