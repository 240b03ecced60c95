// Shape of a grid, a block or a cluster, and an index in one.
#pragma once

#include <cstdint>

namespace gridloom::exec {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

}  // namespace gridloom::exec
