kernel void BitonicStep(global uint* keys, int size, int stride) {
  const int t = get_global_id(0);
  const int i = 2 * t - (t & (stride - 1)), j = i + stride;
  const uint a = keys[i], b = keys[j];
  if ((a > b) == ((i & size) == 0)) keys[i] = b, keys[j] = a;
}
kernel void CopyKeys(global const uint* in, global uint* out, int n) {
  const int i = get_global_id(0);
  if (i < n) out[i] = in[i];
}
