// GAUSSIAN (Rodinia): elimination in a system of linear equations, two launches a column: the factors of all rows below
// the diagonal, then the rows less so many times the row of the diagonal.
#include "crcs/program.h"

constexpr int kFactorThreads = 512;

__global__ void __launch_bounds__(kFactorThreads) Factors(const float* matrix, float* factors, int size, int column) {
  const int row = blockIdx.x * kFactorThreads + threadIdx.x;
  if (row <= column || row >= size) return;
  factors[row * size + column] = matrix[row * size + column] / matrix[column * size + column];
}

__global__ void Subtract(float* matrix, float* right_side, const float* factors, int size, int column) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < column || x >= size || row <= column || row >= size) return;
  const float factor = factors[row * size + column];
  matrix[row * size + x] = fmaf(-factor, matrix[column * size + x], matrix[row * size + x]);
  if (x == column) right_side[row] = fmaf(-factor, right_side[column], right_side[row]);
}

/// Large on the diagonal, so that no rows need to change places.
std::vector<float> Matrix(int size) {
  std::vector<float> matrix = UniformValues(static_cast<std::size_t>(size) * size, -1, 1, 1);
  for (int i = 0; i < size; ++i) matrix[i * size + i] = static_cast<float>(size);
  return matrix;
}

/// What the program writes: the matrix after elimination, then the right side.
std::vector<float> Eliminated(std::vector<float> matrix, std::vector<float> right_side, int size) {
  for (int column = 0; column < size - 1; ++column) {
    for (int row = column + 1; row < size; ++row) {
      const float factor = matrix[row * size + column] / matrix[column * size + column];
      for (int x = column; x < size; ++x)
        matrix[row * size + x] = std::fma(-factor, matrix[column * size + x], matrix[row * size + x]);
      right_side[row] = std::fma(-factor, right_side[column], right_side[row]);
    }
  }
  matrix.insert(matrix.end(), right_side.begin(), right_side.end());
  return matrix;
}

int main(int argc, char** argv) {
  // The sizes of Fig. 2 did not survive in its text; 1024 is the largest matrix that comes with the suite. The suite
  // subtracts in CTAs of 4 x 4 threads.
  Program program("gaussian", argc, argv, {{"size", 64, 1024, 2, 8192}, {"block", 4, 4, 4, 32, 4}});
  const int size = program["size"], block = program["block"];
  const std::size_t count = static_cast<std::size_t>(size) * size;
  const Input<float> matrix(program, "matrix", count, [size] { return Matrix(size); });
  const Input<float> right_side(program, "right-side", size, [size] { return UniformValues(size, -1, 1, 2); });
  const DeviceArray<float> device_matrix(count), device_right_side(size), factors(count);
  const HostArray<float> result(count + size);

  program.Prelude();
  device_matrix.CopyFrom(matrix.data());
  device_right_side.CopyFrom(right_side.data());
  for (int column = 0; column < size - 1; ++column) {
    Factors<<<Ctas(size, kFactorThreads), kFactorThreads>>>(device_matrix, factors, size, column);
    program.Launched();
    Subtract<<<dim3(Ctas(size, block), Ctas(size, block)), dim3(block, block)>>>(device_matrix, device_right_side,
                                                                                 factors, size, column);
    program.Launched();
  }
  device_matrix.CopyTo(result.data());
  device_right_side.CopyTo(result.data() + count);
  program.Postlude(result);

  return program.Finish(Eliminated(matrix.Values(), right_side.Values(), size));
}
