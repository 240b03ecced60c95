// PATH (Rodinia, pathfinder): the cheapest way through a wall of numbers, from row to row to one of the three places
// below. A launch goes some rows on with what it needs of the row before in shared memory, fewer places from row to
// row.
#include "crcs/program.h"

constexpr int kThreads = 256;

/// `rows` rows on, from the costs of the row before `wall`. The border of a CTA is `border` wide, whatever `rows`.
__global__ void __launch_bounds__(kThreads)
    Climb(const int* wall, const int* from, int* to, int columns, int rows, int border) {
  __shared__ int before[kThreads], now[kThreads];
  const int t = threadIdx.x, column = static_cast<int>(blockIdx.x) * (kThreads - 2 * border) + t - border;
  const bool inside = column >= 0 && column < columns;
  if (inside) before[t] = from[column];
  __syncthreads();
  const int left = column == 0 ? t : t - 1, right = column == columns - 1 ? t : t + 1;
  for (int row = 0; row < rows; ++row) {
    const bool known = inside && t > row && t < kThreads - 1 - row;
    if (known) now[t] = wall[row * columns + column] + min(before[t], min(before[left], before[right]));
    __syncthreads();
    if (known) before[t] = now[t];
    __syncthreads();
  }
  if (inside && t >= border && t < kThreads - border) to[column] = before[t];
}

std::vector<int> Digits(std::size_t count) {
  Random random(1);
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(random.Next() % 10);
  return values;
}

std::vector<int> Costs(const Input<int>& wall, int columns, int rows) {
  std::vector<int> before(wall.data(), wall.data() + columns), now(columns);
  for (int row = 1; row < rows; ++row, before.swap(now)) {
    for (int i = 0; i < columns; ++i) {
      const int left = before[std::max(i - 1, 0)], right = before[std::min(i + 1, columns - 1)];
      now[i] = wall[static_cast<std::size_t>(row) * columns + i] + std::min({left, before[i], right});
    }
  }
  return before;
}

int main(int argc, char** argv) {
  // The paper: 100,000 columns, 100 rows, five a launch: 20 launches of 407 CTAs, of which the last goes four rows.
  Program program("path", argc, argv,
                  {{"columns", 10'000, 100'000, 2, 1 << 20}, {"rows", 100, 100, 2, 1000}, {"height", 5, 5, 1, 100}});
  const int columns = program["columns"], rows = program["rows"], height = program["height"];
  const std::size_t count = static_cast<std::size_t>(columns) * rows;
  const Input<int> wall(program, "wall", count, [count] { return Digits(count); });
  const DeviceArray<int> device_wall(count - columns), first(columns), second(columns);
  const HostArray<int> result(columns);

  program.Prelude();
  first.CopyFrom(wall.data());
  device_wall.CopyFrom(wall.data() + columns);
  const DeviceArray<int>*from = &first, *to = &second;
  for (int row = 0; row < rows - 1; row += height, std::swap(from, to)) {
    const int* const next = device_wall + static_cast<std::size_t>(row) * columns;
    Climb<<<Ctas(columns, kThreads - 2 * height), kThreads>>>(next, *from, *to, columns,
                                                              std::min(height, rows - 1 - row), height);
    program.Launched();
  }
  from->CopyTo(result.data());
  program.Postlude(result);

  return program.Finish(Costs(wall, columns, rows));
}
