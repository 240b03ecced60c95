// How long something has taken.
#pragma once

#include <chrono>

namespace gridloom::exec {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace gridloom::exec
