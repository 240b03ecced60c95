// Divergence of every kind: nested loops with break and continue, early return, switch tables, goto into a loop, short
// circuit.
#include "app.h"

__host__ __device__ unsigned Nested(unsigned seed) {
  unsigned sum = 0;
  for (unsigned i = 0; i < seed % 13; ++i) {
    for (unsigned j = i; j < 20; ++j) {
      if ((j * seed) % 7 == 3) continue;
      if ((i * j + seed) % 31 == 5) break;
      sum += i * j + 1;
      if (sum > 5000) return sum;
    }
    unsigned tries = 0;
    do {
      sum ^= sum << 3 ^ i;
    } while ((sum & 15) > 9 && sum % 3 && ++tries < 9);
  }
  return sum;
}
__host__ __device__ unsigned Switch(unsigned v) {
  unsigned r = v;
  for (int k = 0; k < 6; ++k) {
    switch (r % 12) {
      case 0: r += 5; break;
      case 1: r = r * 3 + 1;  // falls through
      case 2: r ^= 0x55; break;
      case 3: return r;
      case 4: r -= 7; break;
      case 5: r = r * r; break;
      case 6: r >>= 2; break;
      case 7: r |= 0x100; break;
      case 8: r = ~r; break;
      case 9: r += k; continue;
      case 10: r *= 17; break;
      default: r /= 3;
    }
    ++r;
  }
  return r;
}
// Two entries into one loop: irreducible control flow.
__host__ __device__ unsigned Irreducible(unsigned v) {
  unsigned n = 0;
  if (v & 1) goto middle;
top:
  v = v * 5 + 3;
  ++n;
  if (n > 40) return v ^ n;
middle:
  v ^= v >> 7;
  n += 2;
  if (v % 11 != 4) goto top;
  if (v % 3 == 0 && n < 30) goto middle;
  return v + n;
}
__host__ __device__ bool Slow(unsigned v, unsigned* count) {
  ++*count;
  return v % 3 == 1;
}
__host__ __device__ unsigned ShortCircuit(unsigned v) {
  unsigned count = 0;
  const bool a = v % 2 == 0 && Slow(v, &count) && Slow(v / 3, &count);
  const bool b = v % 5 == 0 || Slow(v + 1, &count) || Slow(v + 2, &count);
  return count * 4 + a * 2 + b;
}
__global__ void Kernel(unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || i % 97 == 50) return;
  unsigned* o = out + i * 4;
  const unsigned seed = i * 2654435761u >> 8;
  o[0] = Nested(seed), o[1] = Switch(seed), o[2] = Irreducible(seed), o[3] = ShortCircuit(seed);
}

int main() {
  const int n = 3001;
  Buffer<unsigned> out(n * 4);
  Kernel<<<dim3((n + 127) / 128), 128>>>(out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    const unsigned seed = i * 2654435761u >> 8;
    const bool skipped = i % 97 == 50;
    const unsigned want[4] = {Nested(seed), Switch(seed), Irreducible(seed), ShortCircuit(seed)};
    for (int k = 0; k < 4; ++k) Same("flow", i * 10 + k, got[i * 4 + k], skipped ? 0u : want[k]);
  }
  return Verdict();
}
