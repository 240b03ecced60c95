// OpenCL C 1.2 has no way for items to find others with their digit: 32 items of a group have 64 keys in a row each,
// and counters of its own.
kernel void RadixCount(global const uint* keys, global uint* counts, int shift) {
  local uint bins[256];
  const int t = get_local_id(0);
  bins[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = t; i < 2048; i += 256) atomic_inc(&bins[keys[get_group_id(0) * 2048 + i] >> shift & 255]);
  barrier(CLK_LOCAL_MEM_FENCE);
  counts[t * get_num_groups(0) + get_group_id(0)] = bins[t];
}
kernel void RadixPlaces(global uint* counts, int n) {
  local uint sums[256];
  const int t = get_local_id(0), part = n / 256;
  uint sum = 0;
  for (int i = 0; i < part; ++i) sum += counts[t * part + i];
  sums[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0;
  for (int before = 0; before < t; ++before) sum += sums[before];
  for (int i = 0; i < part; ++i) {
    const uint count = counts[t * part + i];
    counts[t * part + i] = sum;
    sum += count;
  }
}
kernel void RadixScatter(global const uint* keys, global const uint* places, global uint* out, int shift) {
  local uint counts[32][256];
  const int t = get_local_id(0);
  const uint group = get_group_id(0);
  if (t < 32) {
    for (int digit = 0; digit < 256; ++digit) counts[t][digit] = 0;
    for (int i = 0; i < 64; ++i) ++counts[t][keys[group * 2048 + t * 64 + i] >> shift & 255];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint place = places[t * get_num_groups(0) + group];
  for (int item = 0; item < 32; ++item) {
    const uint count = counts[item][t];
    counts[item][t] = place;
    place += count;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (t < 32) {
    for (int i = 0; i < 64; ++i) {
      const uint key = keys[group * 2048 + t * 64 + i];
      out[counts[t][key >> shift & 255]++] = key;
    }
  }
}
