// 5 x 5 weights in constant memory; blocks of 32 x 8 points keep their surroundings in shared memory. Beyond the edges
// all is 0.
__constant__ float kConvolutionWeights[25] = {-0.02f, 0.01f, 0.03f, 0.01f,  -0.02f, 0.02f, 0.06f,  0.11f, 0.07f,
                                              0.01f,  0.03f, 0.12f, 0.21f,  0.13f,  0.04f, -0.01f, 0.05f, 0.1f,
                                              0.06f,  0.02f, 0.01f, -0.03f, 0.02f,  0.03f, -0.04f};
KERNEL Convolution(const float* in, float* out, int width, int height) {
  __shared__ float tile[12][36];
  const int left = blockIdx.x * 32 - 2, top = blockIdx.y * 8 - 2, tx = threadIdx.x, ty = threadIdx.y;
  for (int y = ty; y < 12; y += 8) {
    for (int x = tx; x < 36; x += 32) {
      const bool inside = left + x >= 0 && left + x < width && top + y >= 0 && top + y < height;
      tile[y][x] = inside ? in[(top + y) * width + left + x] : 0;
    }
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int y = 0; y < 5; ++y)
#pragma unroll
    for (int x = 0; x < 5; ++x) sum = fmaf(kConvolutionWeights[y * 5 + x], tile[ty + y][tx + x], sum);
  const int x = left + 2 + tx, y = top + 2 + ty;
  if (x < width && y < height) out[y * width + x] = sum;
}
