// See nvrtc.cpp.
#pragma once

#include <span>

#include "interpose/hooks/answer.h"

namespace gridloom::hooks {

std::span<const Answer> NvrtcAnswers();

}  // namespace gridloom::hooks
