// Clocks, the global timer, nanosleep, and special registers that describe the machine.
#include "app.h"

__global__ void Clocks(long long* out) {
  const long long c0 = clock64();
  const unsigned t0 = clock();
  unsigned long long g0, g1;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g0));
  float x = threadIdx.x;
  for (int i = 0; i < 2000; ++i) x = x * 0.999f + 1;
  __nanosleep(2000);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g1));
  out[0] = clock64() - c0, out[1] = clock() - t0, out[2] = g1 - g0, out[3] = x > 0;
}
__global__ void Registers(unsigned* out, int dynamic) {
  extern __shared__ char pool[];
  unsigned warp, warps, sm, sms, total, dyn;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(total));
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dyn));
  pool[0] = 1;
  __syncthreads();
  unsigned* o = out + (blockIdx.x * blockDim.x + threadIdx.x) * 3;
  o[0] = warp < warps, o[1] = sm < sms, o[2] = dyn == dynamic && total >= dyn && warpSize == 32;
}

int main() {
  Buffer<long long> clocks(4);
  Buffer<unsigned> registers(5 * 70 * 3);
  Clocks<<<1, 1>>>(clocks);
  Registers<<<5, 70, 512>>>(registers, 512);
  CU_LAUNCHED();
  const auto c = clocks.Read();
  True("clock64 advances", c[0] > 0), True("clock advances", c[1] > 0), True("timer advances", c[2] >= 1000),
      True("work", c[3] == 1);
  const auto r = registers.Read();
  for (std::size_t i = 0; i < r.size(); ++i) Same("register", i, r[i], 1u);
  return Verdict();
}
