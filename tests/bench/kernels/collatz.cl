kernel void Collatz(global uint* out, int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
  uint v = ((uint)i * 2654435761u >> 12) + 1, steps = 0;
  while (v != 1 && steps < 1000) v = v & 1 ? 3 * v + 1 : v / 2, ++steps;
  out[i] = steps;
}
