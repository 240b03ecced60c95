/// The largest value, or the sum, of a block of 256 threads: shuffles within a warp, shared memory between warps.
template <bool kSum>
static __device__ float SoftmaxOfBlock(float value) {
  __shared__ float of_warps[8];
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, step);
    value = kSum ? value + other : fmaxf(value, other);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warps[0];
  for (int w = 1; w < 8; ++w) value = kSum ? value + of_warps[w] : fmaxf(value, of_warps[w]);
  __syncthreads();
  return value;
}

// A row a block.
KERNEL Softmax(const float* in, float* out, int columns) {
  const float* row = in + blockIdx.x * columns;
  float* to = out + blockIdx.x * columns;
  float most = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 256) most = fmaxf(most, row[i]);
  most = SoftmaxOfBlock<false>(most);
  for (int i = threadIdx.x; i < columns; i += 256) sum += expf(row[i] - most);
  const float scale = 1.0f / SoftmaxOfBlock<true>(sum);
  for (int i = threadIdx.x; i < columns; i += 256) to[i] = expf(row[i] - most) * scale;
}
