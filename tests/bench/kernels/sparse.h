#pragma once

#include "tests/bench/kernels/common.h"

namespace bench {

/// A graph or sparse matrix: 2 to 30 neighbours a row, half of them near, half anywhere.
struct Sparse {
  Ints starts{0}, columns;
};
inline std::shared_ptr<Sparse> MakeSparse(int rows) {
  auto m = std::make_shared<Sparse>();
  for (int row = 0; row < rows; ++row) {
    const int count = 2 + static_cast<int>(Hash(row) % 29);
    for (int k = 0; k < count; ++k) {
      const unsigned h = Hash(row * 31 + k);
      m->columns.push_back(static_cast<int>(k % 2 ? h % rows : (row + h % 64) % rows));
    }
    m->starts.push_back(static_cast<int>(m->columns.size()));
  }
  return m;
}

}  // namespace bench
