kernel void Transpose(global const float* in, global float* out, int width, int height) {
  local float tile[32][33];
  const int tx = get_local_id(0), ty = get_local_id(1);
  int x = get_group_id(0) * 32 + tx, y = get_group_id(1) * 32 + ty;
  for (int k = 0; k < 32; k += 8)
    if (x < width && y + k < height) tile[ty + k][tx] = in[(y + k) * width + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  x = get_group_id(1) * 32 + tx, y = get_group_id(0) * 32 + ty;
  for (int k = 0; k < 32; k += 8)
    if (x < height && y + k < width) out[(y + k) * height + x] = tile[tx][ty + k];
}
