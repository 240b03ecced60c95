// Tiles of 16 x 16 in shared memory; n is a multiple of 16.
KERNEL MatMulTiled(const float* a, const float* b, float* c, int n) {
  __shared__ float sa[16][16], sb[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  float sum = 0;
  for (int tile = 0; tile < n; tile += 16) {
    sa[ty][tx] = a[y * n + tile + tx];
    sb[ty][tx] = b[(tile + ty) * n + x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) sum = fmaf(sa[ty][k], sb[k][tx], sum);
    __syncthreads();
  }
  c[y * n + x] = sum;
}
