// OpenCL C 1.2 has no shuffles: sums over a group of 256 are made by doubling steps in local memory.
int ScanOfGroup(int value, local int* sums) {
  const int t = get_local_id(0);
  sums[t] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < 256; step *= 2) {
    const int other = t >= step ? sums[t - step] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[t] += other;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return sums[t];
}
kernel void ScanTotals(global const int4* in, global int* totals) {
  local int sums[256];
  const int t = get_local_id(0);
  const int4 v = in[get_global_id(0)];
  sums[t] = v.x + v.y + v.z + v.w;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) totals[get_group_id(0)] = sums[0];
}
kernel void ScanOfTotals(global int* totals, int n) {
  local int sums[256], carry;
  const int t = get_local_id(0);
  if (t == 0) carry = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 4 * t; i < n; i += 1024) {
    const int a = totals[i], b = totals[i + 1], c = totals[i + 2], d = totals[i + 3];
    const int last = ScanOfGroup(a + b + c + d, sums) + carry;
    barrier(CLK_LOCAL_MEM_FENCE);
    totals[i] = last - d - c - b - a;
    totals[i + 1] = last - d - c - b;
    totals[i + 2] = last - d - c;
    totals[i + 3] = last - d;
    if (t == 255) carry = last;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
kernel void ScanBlocks(global const int4* in, global const int* before, global int4* out) {
  local int sums[256];
  const int i = get_global_id(0);
  int4 v = in[i];
  v.y += v.x, v.z += v.y, v.w += v.z;
  out[i] = v + (ScanOfGroup(v.w, sums) - v.w + before[get_group_id(0)]);
}
