// OpenCL C has no matrix instructions: of a group of 128 items 64 have a query each, and all bring keys and values into
// local memory, as f32, 32 at a time.
kernel void Attention(global const half* queries, global const half* keys, global const half* values,
                      global float* out, int n) {
  local float key_tile[32][64], value_tile[32][64];
  const int t = get_local_id(0), first = get_group_id(0) * 64 + t % 64, head = get_group_id(1) * n * 64;
  float query[64], result[64], score[32], most = -1e30f, sum = 0;
  for (int d = 0; d < 64; ++d) {
    query[d] = vload_half(head + first * 64 + d, queries) * (0.125f * 1.4426950408889634f);
    result[d] = 0;
  }
  for (int tile = 0; tile < n; tile += 32) {
    for (int i = t; i < 32 * 64; i += 128) {
      key_tile[i / 64][i % 64] = vload_half(head + tile * 64 + i, keys);
      value_tile[i / 64][i % 64] = vload_half(head + tile * 64 + i, values);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < 64) {
      float largest = most;
      for (int j = 0; j < 32; ++j) {
        float product = 0;
        for (int d = 0; d < 64; ++d) product = fma(query[d], key_tile[j][d], product);
        score[j] = product;
        largest = fmax(largest, product);
      }
      const float factor = exp2(most - largest);
      most = largest;
      sum *= factor;
      for (int d = 0; d < 64; ++d) result[d] *= factor;
      for (int j = 0; j < 32; ++j) {
        const float weight = exp2(score[j] - most);
        sum += weight;
        for (int d = 0; d < 64; ++d) result[d] = fma(weight, value_tile[j][d], result[d]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t < 64)
    for (int d = 0; d < 64; ++d) out[head + first * 64 + d] = result[d] / sum;
}
