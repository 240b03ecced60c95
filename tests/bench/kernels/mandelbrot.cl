#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void Mandelbrot(global int* out, int width, int height, int most) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  const double step = 3.0 / width, real = fma(x + 0.5, step, -2.2), imaginary = fma(y + 0.5 - 0.5 * height, step, 0.01);
  double a = 0, b = 0;
  int rounds = 0;
  while (rounds < most && fma(a, a, b * b) <= 4.0) {
    const double next = fma(a, a, fma(-b, b, real));
    b = fma(a + a, b, imaginary);
    a = next;
    ++rounds;
  }
  out[y * width + x] = rounds;
}
