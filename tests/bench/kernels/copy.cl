kernel void Copy(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  if (i < n) out[i] = in[i];
}
