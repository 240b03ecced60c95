// Two elements a thread, a tree in shared memory down to one warp, shuffles for the rest, one atomic a block of 256.
KERNEL Reduce(const int* in, int* out, int n) {
  __shared__ int sums[256];
  const int t = threadIdx.x, i = blockIdx.x * 512 + t;
  int sum = (i < n ? in[i] : 0) + (i + 256 < n ? in[i + 256] : 0);
  sums[t] = sum;
  __syncthreads();
  for (int step = 128; step >= 32; step /= 2) {
    if (t < step) sums[t] = sum = sum + sums[t + step];
    __syncthreads();
  }
  if (t < 32) {
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (t == 0) atomicAdd(out, sum);
  }
}
