// Four independent chains of fused multiply-adds.
KERNEL FmaLoop(float* out, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i * 1e-6f, b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < rounds; ++k) {
    a = fmaf(a, 0.999f, 0.5f);
    b = fmaf(b, 0.998f, 0.25f);
    c = fmaf(c, 0.997f, 0.125f);
    d = fmaf(d, 0.996f, 0.0625f);
  }
  out[i] = a + b + c + d;
}
