// Single-pass prefix sum: blocks take tickets and look back at their predecessors' published sums.
#include "app.h"

constexpr int kBlock = 128;
enum State : unsigned { kEmpty, kSum, kPrefix };

__device__ unsigned long long Pack(State state, unsigned value) {
  return static_cast<unsigned long long>(state) << 32 | value;
}

__global__ void Scan(const unsigned* in, unsigned* out, unsigned long long* states, unsigned* ticket, int n) {
  __shared__ unsigned values[kBlock], block, before;
  const int t = threadIdx.x;
  if (t == 0) block = atomicAdd(ticket, 1u);
  __syncthreads();
  const int i = block * kBlock + t;
  values[t] = i < n ? in[i] : 0;
  for (int step = 1; step < kBlock; step *= 2) {
    __syncthreads();
    const unsigned add = t >= step ? values[t - step] : 0;
    __syncthreads();
    values[t] += add;
  }
  __syncthreads();
  if (t == 0) {
    const unsigned sum = values[kBlock - 1];
    unsigned prefix = 0;
    if (block > 0) {
      atomicExch(&states[block], Pack(kSum, sum));
      for (int k = block - 1; k >= 0;) {
        const unsigned long long state = atomicAdd(&states[k], 0ULL);
        if (state >> 32 == kEmpty) continue;  // spin until the predecessor has published
        prefix += static_cast<unsigned>(state);
        if (state >> 32 == kPrefix) break;
        --k;
      }
    }
    atomicExch(&states[block], Pack(kPrefix, prefix + sum));
    before = prefix;
  }
  __syncthreads();
  if (i < n) out[i] = before + values[t];
}

int main() {
  const int n = 100'001, blocks = (n + kBlock - 1) / kBlock;
  std::vector<unsigned> in(n);
  Random random(15);
  for (auto& v : in) v = random.Next() % 1000;
  Buffer<unsigned> din(in), out(n), ticket(1);
  Buffer<unsigned long long> states(blocks);
  Scan<<<blocks, kBlock>>>(din, out, states, ticket, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  unsigned sum = 0;
  for (int i = 0; i < n; ++i) Same("scan", i, got[i], sum += in[i]);
  return Verdict();
}
