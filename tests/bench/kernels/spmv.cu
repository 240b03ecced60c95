// Sparse matrix (CSR) times vector, a row a thread.
KERNEL SpMV(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum = fmaf(values[k], x[columns[k]], sum);
  y[row] = sum;
}
