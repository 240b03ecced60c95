// Green contexts: kernels of each run on its own SMs, as %smid tells; a cooperative grid is as large as they hold, and
// comes to its barriers; memory is shared with the primary context.
#include <cooperative_groups.h>

#include <set>

#include "driver.h"

__global__ void WhichSm(unsigned* sms) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x == 0) sms[blockIdx.x] = sm;
}

__global__ void Sum(unsigned* values, unsigned* total) {
  const auto grid = cooperative_groups::this_grid();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = i;
  grid.sync();
  if (i != 0) return;
  *total = 0;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *total += values[k];
}

std::set<unsigned> SmsOf(CUstream stream) {
  constexpr unsigned kCtas = 1000;
  Buffer<unsigned> sms(kCtas);
  WhichSm<<<kCtas, 64, 0, stream>>>(sms);
  DRV(cuStreamSynchronize(stream));
  const auto read = sms.Read();
  return {read.begin(), read.end()};
}

int Cooperative(CUstream stream, unsigned ctas) {
  constexpr unsigned kThreads = 256;
  Buffer<unsigned> values(ctas * kThreads), total(1);
  unsigned *v = values, *t = total;
  void* arguments[] = {&v, &t};
  const int status = cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Sum), ctas, kThreads, arguments, 0, stream);
  if (status != cudaSuccess) return status;
  DRV(cuStreamSynchronize(stream));
  const unsigned n = ctas * kThreads;
  Same("sum of a cooperative grid", ctas, total.Read()[0], n * (n - 1) / 2);
  return status;
}

int main() {
  CU(cudaFree(nullptr));
  CUdevResource all, parts[2], rest;
  DRV(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned groups = 2;
  DRV(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 20));
  Same("groups", 0, groups, 2u);
  CUgreenCtx green[2];
  CUstream streams[2];
  for (int i = 0; i < 2; ++i) {
    CUdevResourceDesc desc;
    DRV(cuDevResourceGenerateDesc(&desc, &parts[i], 1));
    DRV(cuGreenCtxCreate(&green[i], desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    DRV(cuGreenCtxStreamCreate(&streams[i], green[i], CU_STREAM_NON_BLOCKING, 0));
  }
  const auto first = SmsOf(streams[0]), second = SmsOf(streams[1]), whole = SmsOf(nullptr);
  Same("SMs of the first", 0, first.size(), std::size_t{parts[0].sm.smCount});
  Same("SMs of the second", 0, second.size(), std::size_t{parts[1].sm.smCount});
  Same("SMs without a green context", 0, whole.size(), std::size_t{all.sm.smCount});
  for (const unsigned sm : first) Same("an SM of both", sm, second.count(sm), std::size_t{0});

  int per_sm = 0;
  CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, Sum, 256, 0));
  const unsigned most = per_sm * parts[0].sm.smCount;
  Same("a grid that fits", 0, Cooperative(streams[0], most), static_cast<int>(cudaSuccess));
  Same("a grid that does not", 0, Cooperative(streams[0], most + 1),
       static_cast<int>(cudaErrorCooperativeLaunchTooLarge));
  Same("the same on all SMs", 0, Cooperative(nullptr, most + 1), static_cast<int>(cudaSuccess));

  // Current, for the runtime API, too.
  CUcontext context, current;
  DRV(cuCtxFromGreenCtx(&context, green[0]));
  DRV(cuCtxPushCurrent(context));
  cudaStream_t stream;
  CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Same("a stream made meanwhile", 0, SmsOf(stream) == first, true);
  Same("the default stream", 0, SmsOf(nullptr) == first, true);
  CU(cudaStreamDestroy(stream));
  CU(cudaDeviceSynchronize());
  DRV(cuCtxPopCurrent(&current));
  Same("what was current", 0, current == context, true);
  for (int i = 0; i < 2; ++i) {
    DRV(cuStreamDestroy(streams[i]));
    DRV(cuGreenCtxDestroy(green[i]));
  }
  Same("SMs afterwards", 0, SmsOf(nullptr).size(), whole.size());
  return Verdict();
}
