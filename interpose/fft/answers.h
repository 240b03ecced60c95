// The functions of cuFFT that are looked up by name.
#pragma once

#include <span>

#include "interpose/hooks/answer.h"

namespace gridloom::fft {

std::span<const hooks::Answer> Answers();

}  // namespace gridloom::fft
