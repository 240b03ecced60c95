#include "rewriter/support/check.h"

#include <cstdio>
#include <cstdlib>

namespace gridloom {

void CheckFailed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr, "gridloom: internal error at %s:%d: %s (%s)\n", file, line, message, condition);
  std::abort();
}

}  // namespace gridloom
