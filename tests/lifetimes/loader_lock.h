#pragma once

#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

/// What came of a part; `missing` is null when nothing is missing. Ends the program when something is.
inline void Report(const char* where, const char* missing) {
  std::printf("%s: %s\n", where, missing != nullptr ? missing : "done");
  std::fflush(stdout);
  if (missing != nullptr) _exit(1);
}
