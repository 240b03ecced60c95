// See jit_link.cpp.
#pragma once

#include <span>

#include "interpose/hooks/answer.h"

namespace gridloom::hooks {

std::span<const Answer> JitLinkAnswers();

}  // namespace gridloom::hooks
