// GL_CHECK: a broken invariant of our own stops the program with the place and the reason. Never for bad input.
#pragma once

namespace gridloom {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const char* message);

}  // namespace gridloom

#define GL_CHECK(condition, message) \
  (static_cast<bool>(condition) ? void(0) : ::gridloom::CheckFailed(__FILE__, __LINE__, #condition, message))
