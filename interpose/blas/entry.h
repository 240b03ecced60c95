// What every generated function of cuBLAS does: pass the call on when there is a real GPU, let no exception out.
#pragma once

#include <new>

#include "interpose/blas/call.h"

namespace gridloom::blas {

template <typename Function, typename... Arguments>
int PassTo(const char* library, Function* own, const char* name, Arguments... arguments) {
  auto* const real = Real(library, own, name);
  return real == nullptr ? kInternalError : real(arguments...);
}

template <typename Work>
int Guarded(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return kAllocFailed;
  } catch (...) {
    return kInternalError;
  }
}

}  // namespace gridloom::blas
