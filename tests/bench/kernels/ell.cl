kernel void Ell(global const int* columns, global const float* values, global const float* x, global float* y, int rows,
                int width) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < width; ++k) {
    const int column = columns[k * rows + row];
    if (column >= 0) sum = fma(values[k * rows + row], x[column], sum);
  }
  y[row] = sum;
}
