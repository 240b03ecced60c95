// SPMV: sparse matrix in CSR times a vector, one warp a row: lanes stride over the row, a shuffle tree adds them up.
// Values and columns are read in line; the vector is gathered.
#include <algorithm>

#include "workload.h"

constexpr int kThreads = 256, kRowsPerCta = kThreads / 32;

// Bounded to what the published occupancies leave: six CTAs of 256 threads in 32768 registers.
__global__ void __maxnreg__(20)
    SpmvWarpPerRow(int rows, const int* begins, const int* columns, const float* values, const float* x, float* y) {
  const int row = blockIdx.x * kRowsPerCta + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
#pragma unroll 1
  for (int i = begins[row] + lane; i < begins[row + 1]; i += 32) sum += values[i] * x[columns[i]];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
  if (lane == 0) y[row] = sum;
}

struct Matrix {
  std::vector<int> begins, columns;
  std::vector<float> values;
};

/// Rows of 8 to 24 entries, 16 on average; columns uniform, ascending.
Matrix RandomMatrix(int rows, int column_count) {
  Random random(1);
  Matrix matrix{{0}, {}, {}};
  for (int row = 0; row < rows; ++row) {
    const int entries = 8 + static_cast<int>(random.Next() % 17);
    for (int i = 0; i < entries; ++i) {
      matrix.columns.push_back(static_cast<int>(random.Next() % column_count));
      matrix.values.push_back(random.Uniform(-1, 1));
    }
    std::sort(matrix.columns.end() - entries, matrix.columns.end());
    matrix.begins.push_back(static_cast<int>(matrix.columns.size()));
  }
  return matrix;
}

int main(int argc, char** argv) {
  // The paper: 131072 x 81200, 16 entries a row on average. Scaled, the vector keeps its size: it decides what the
  // caches hold.
  const Sizes sizes(argc, argv, {{"rows", 8192, 131072}, {"columns", 81200, 81200}});
  const int rows = sizes["rows"];
  const Matrix matrix = RandomMatrix(rows, sizes["columns"]);
  std::vector<float> x(sizes["columns"]);
  Random random(2);
  for (float& value : x) value = random.Uniform(-1, 1);
  const Buffer<int> begins(matrix.begins), columns(matrix.columns);
  const Buffer<float> values(matrix.values), device_x(x), device_y(rows);
  SpmvWarpPerRow<<<(rows + kRowsPerCta - 1) / kRowsPerCta, kThreads>>>(rows, begins, columns, values, device_x,
                                                                       device_y);
  CU_LAUNCHED();
  const std::vector<float> y = device_y.Read();
  for (int row = 0; row < rows; ++row) {
    double want = 0;
    for (int i = matrix.begins[row]; i < matrix.begins[row + 1]; ++i)
      want += static_cast<double>(matrix.values[i]) * x[matrix.columns[i]];
    Near("y", row, y[row], want, 1e-4, 1e-5);
  }
  PrintDigest("y", y);
  return Verdict();
}
