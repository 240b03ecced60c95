// Kernels of this process that are interpreted while their machine code may still come, for who measures speed.
#pragma once

#include <cstddef>

namespace gridloom::exec {

/// How many there are now whose machine code has been asked for. Thread-safe.
std::size_t AwaitedKernels();

}  // namespace gridloom::exec
