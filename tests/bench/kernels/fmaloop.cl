kernel void FmaLoop(global float* out, int rounds) {
  const int i = get_global_id(0);
  float a = i * 1e-6f, b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < rounds; ++k) {
    a = fma(a, 0.999f, 0.5f);
    b = fma(b, 0.998f, 0.25f);
    c = fma(c, 0.997f, 0.125f);
    d = fma(d, 0.996f, 0.0625f);
  }
  out[i] = a + b + c + d;
}
