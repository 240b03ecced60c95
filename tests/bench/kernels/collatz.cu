// Steps of the Collatz sequence of scattered starting values: each lane leaves its loop at another time.
KERNEL Collatz(unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = (static_cast<unsigned>(i) * 2654435761u >> 12) + 1, steps = 0;
  while (v != 1 && steps < 1000) v = v & 1 ? 3 * v + 1 : v / 2, ++steps;
  out[i] = steps;
}
