// The functions of cuBLAS that are looked up by name.
#pragma once

#include <span>

#include "interpose/hooks/answer.h"

namespace gridloom::blas {

std::span<const hooks::Answer> Answers();

}  // namespace gridloom::blas
