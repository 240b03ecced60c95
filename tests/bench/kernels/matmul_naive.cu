KERNEL MatMulNaive(const float* a, const float* b, float* c, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[y * n + k], b[k * n + x], sum);
  c[y * n + x] = sum;
}
