kernel void Histogram(global const uint* in, global uint* out, int n) {
  local uint bins[256];
  const int t = get_local_id(0);
  bins[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_add(&bins[in[i] & 255], 1u);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&out[t], bins[t]);
}
