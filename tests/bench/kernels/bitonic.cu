// One step of a bitonic sort, a pair a thread.
KERNEL BitonicStep(unsigned* keys, int size, int stride) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = 2 * t - (t & (stride - 1)), j = i + stride;
  const unsigned a = keys[i], b = keys[j];
  if ((a > b) == ((i & size) == 0)) keys[i] = b, keys[j] = a;
}
KERNEL CopyKeys(const unsigned* in, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
