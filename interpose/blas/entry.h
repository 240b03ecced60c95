// What every generated function of cuBLAS does: pass the call on when there is a real GPU, let no exception out.
#pragma once

#include "interpose/base/log.h"
#include "interpose/blas/call.h"

namespace gridloom::blas {

template <typename Function, typename... Arguments>
int PassTo(const char* library, Function* own, const char* name, Arguments... arguments) {
  return hooks::PassTo(kInternalError, library, own, name, arguments...);
}

template <typename Work>
int Guarded(Work work) {
  return hooks::Guarded(kAllocFailed, kInternalError, work);
}

// The first interface, cublas.h.

/// cuComplex and cuDoubleComplex, as they are passed by value.
template <typename Real>
struct alignas(2 * sizeof(Real)) Complex {
  Real re, im;
};

/// Enumerations by letters, as the BLAS has them: N, T, C for operations, L and U, L and R, N and U for triangles,
/// sides, diagonals.
inline int FromLetter(char letter) {
  switch (letter) {
    case 'N':
    case 'n':
    case 'L':
    case 'l': return 0;
    case 'T':
    case 't':
    case 'U':
    case 'u':
    case 'R':
    case 'r': return 1;
    case 'C':
    case 'c': return 2;
    default: return -1;
  }
}

template <typename Function, typename... Arguments>
void PassOnTo(const char* library, Function* own, const char* name, Arguments... arguments) {
  if (auto* const real = Real(library, own, name)) real(arguments...);
}

/// These functions return nothing; cublasGetError does not know of what failed here, so the log does.
template <typename Work>
void WithoutHandle(const char* name, Work work) {
  const int status = Guarded([&] { return work(Call{nullptr, name, false, true}); });
  if (status != kSuccess) GL_LOG(kError, "%s: status %d", name, status);
}

}  // namespace gridloom::blas
