kernel void SpMV(global const int* starts, global const int* columns, global const float* values, global const float* x, global float* y,
                 int rows) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  float sum = 0;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum = fma(values[k], x[columns[k]], sum);
  y[row] = sum;
}
