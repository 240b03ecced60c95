// OpenCL C 1.2 has no shuffles: the tree goes on in local memory.
kernel void Reduce(global const int* in, global int* out, int n) {
  local int sums[256];
  const int t = get_local_id(0), i = get_group_id(0) * 512 + t;
  sums[t] = (i < n ? in[i] : 0) + (i + 256 < n ? in[i + 256] : 0);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) atomic_add(out, sums[0]);
}
