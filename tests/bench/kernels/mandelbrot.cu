// How many rounds each point takes to leave the circle. Every product is part of a fused operation, so that all forms
// of the kernel round alike.
KERNEL Mandelbrot(int* out, int width, int height, int most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
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
