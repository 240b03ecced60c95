kernel void MatMulTiled(global const float* a, global const float* b, global float* c, int n) {
  local float sa[16][16], sb[16][16];
  const int tx = get_local_id(0), ty = get_local_id(1), x = get_global_id(0), y = get_global_id(1);
  float sum = 0;
  for (int tile = 0; tile < n; tile += 16) {
    sa[ty][tx] = a[y * n + tile + tx];
    sb[ty][tx] = b[(tile + ty) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < 16; ++k) sum = fma(sa[ty][k], sb[k][tx], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = sum;
}
