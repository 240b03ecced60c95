// Sparse matrix in ELL form times vector: `width` values a row, those of the same place of all rows side by side; a row
// that has fewer says so by column -1.
KERNEL Ell(const int* columns, const float* values, const float* x, float* y, int rows, int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < width; ++k) {
    const int column = columns[k * rows + row];
    if (column >= 0) sum = fmaf(values[k * rows + row], x[column], sum);
  }
  y[row] = sum;
}
