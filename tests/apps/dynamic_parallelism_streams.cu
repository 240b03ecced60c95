// Device-side streams, events, copies, errors and queries; the order of launches in a block's NULL stream; the end of a
// parent.
#include "app.h"

__global__ void Append(int* log, int* count, int value) {
  log[(*count)++] = value;  // in order only if nothing else runs at the same time
}
// The launches of all threads of a block into its NULL stream run one after the other.
__global__ void NullStream(int* log, int* count) {
  for (int i = 0; i < 4; ++i) {
    Append<<<1, 1>>>(log, count, i);
    __syncthreads();
  }
}
__global__ void Fill(int* p, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = value;
}
__global__ void AddTo(int* p, const int* q, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += q[i];
}
__global__ void Streams(int* a, int* b, int n, int* errors) {
  cudaStream_t first, second;
  cudaEvent_t filled;
  int bad = 0;
  bad += cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) != cudaSuccess;
  bad += cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) != cudaSuccess;
  bad += cudaEventCreateWithFlags(&filled, cudaEventDisableTiming) != cudaSuccess;
  Fill<<<(n + 127) / 128, 128, 0, first>>>(a, n, 3);
  bad += cudaEventRecord(filled, first) != cudaSuccess;
  Fill<<<(n + 127) / 128, 128, 0, second>>>(b, n, 4);
  bad += cudaStreamWaitEvent(second, filled, 0) != cudaSuccess;
  AddTo<<<(n + 127) / 128, 128, 0, second>>>(b, a, n);
  bad += cudaEventDestroy(filled) != cudaSuccess;
  bad += cudaStreamDestroy(first) != cudaSuccess;
  bad += cudaStreamDestroy(second) != cudaSuccess;
  *errors = bad;
}
__global__ void Copies(char* to, const char* from, int n, int* errors) {
  int bad = 0;
  bad += cudaMemsetAsync(to, 0, n, 0) != cudaSuccess;  // the library of CUDA 13.0 sets 0 whatever the value
  bad += cudaMemcpyAsync(to + 3, from + 1, n - 10, cudaMemcpyDeviceToDevice, 0) != cudaSuccess;
  bad += cudaGetLastError() != cudaSuccess;
  *errors = bad;
}
__global__ void Never(int* p) { *p = 1; }
__global__ void Errors(int* out) {
  Never<<<1, 2000>>>(out + 20);  // more threads than a block can have
  out[0] = cudaPeekAtLastError();
  out[1] = cudaGetLastError();
  out[2] = cudaGetLastError();
  out[3] = cudaStreamDestroy(reinterpret_cast<cudaStream_t>(0x123456));
  out[4] = cudaGetLastError();
  const char* name = cudaGetErrorName(cudaErrorInvalidValue);
  out[5] = name[0] == 'c' && name[9] == 'I';
}
__global__ void Queries(int* out) {
  cudaGetDevice(&out[0]);
  cudaDeviceGetAttribute(&out[1], cudaDevAttrMaxThreadsPerBlock, 0);
  cudaFuncAttributes attributes;
  out[2] = cudaFuncGetAttributes(&attributes, Fill);
  out[3] = attributes.maxThreadsPerBlock;
  size_t limit = 0;
  out[4] = cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
  out[5] = limit > 0;
  int blocks = 0;
  out[6] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Fill, 128, 0);
  out[7] = blocks > 0;
  void* p = nullptr;
  out[8] = cudaMalloc(&p, 100);
  out[9] = p != nullptr;
  out[10] = cudaFree(p);
}
// A chain of grids, each launched by the one before it; the host's next copy comes after the last of them.
__global__ void Chain(int* count, int left) {
  if (threadIdx.x != 0) return;
  for (volatile int i = 0; i < 2000; ++i) {
  }
  atomicAdd(count, 1);
  if (left > 0) Chain<<<1, 32, 0, cudaStreamFireAndForget>>>(count, left - 1);
}
__global__ void Deep(int* out, int depth) {
  atomicMax(&out[0], depth);
  Deep<<<1, 1>>>(out, depth + 1);
}
__global__ void TailOrder(int* log, int* count) {
  for (int i = 0; i < 3; ++i) Append<<<1, 1, 0, cudaStreamTailLaunch>>>(log, count, 100 + i);
  Append<<<1, 1>>>(log, count, 1);
}
__global__ void TooManyTails(int* p, int n, int* refused) {
  for (int i = 0; i < n; ++i) {
    Fill<<<1, 1, 0, cudaStreamTailLaunch>>>(p, 1, i);
    if (cudaGetLastError() == cudaErrorLaunchPendingCountExceeded) ++*refused;
  }
}
/// Fewer than may be pending (cudaLimitDevRuntimePendingLaunchCount): on a GPU a launch beyond that fails.
__global__ void Many(int* p) {
  Fill<<<1, 1, 0, cudaStreamFireAndForget>>>(p + blockIdx.x * blockDim.x + threadIdx.x, 1, 7);
}

int main() {
  Buffer<int> log(512), count(1), out(64);
  NullStream<<<1, 64>>>(log, count);
  CU_LAUNCHED();
  Same("launches of a block", 0, count.Read()[0], 256);

  const int n = 1000;
  Buffer<int> a(n), b(n);
  Streams<<<1, 1>>>(a, b, n, out);
  CU_LAUNCHED();
  Same("stream errors", 0, out.Read()[0], 0);
  const auto sums = b.Read();
  for (int i = 0; i < n; ++i) Same("streams", i, sums[i], 7);

  std::vector<char> bytes(5000);
  for (int i = 0; i < 5000; ++i) bytes[i] = static_cast<char>(i * 7);
  Buffer<char> from(bytes), to(5000);
  CU(cudaMemset(to, 0x77, 5000));
  Copies<<<1, 1>>>(to, from, 5000, out);
  CU_LAUNCHED();
  Same("copy errors", 0, out.Read()[0], 0);
  const auto copied = to.Read();
  for (int i = 0; i < 5000; ++i)
    Same("copy", i, static_cast<int>(copied[i]), static_cast<int>(i < 3 || i >= 4993 ? 0 : bytes[i - 2]));

  CU(cudaMemset(out, 0, 256));
  Errors<<<1, 1>>>(out);
  CU_LAUNCHED();
  auto o = out.Read();
  Same("peek", 0, o[0], static_cast<int>(cudaErrorInvalidConfiguration));
  Same("get", 0, o[1], static_cast<int>(cudaErrorInvalidConfiguration));
  Same("cleared", 0, o[2], 0);
  Same("bad stream", 0, o[3], static_cast<int>(cudaErrorInvalidValue));
  Same("last", 0, o[4], static_cast<int>(cudaErrorInvalidValue));
  Same("name", 0, o[5], 1);
  Same("not launched", 0, o[20], 0);

  Queries<<<1, 1>>>(out);
  CU_LAUNCHED();
  o = out.Read();
  const int want[] = {0, 1024, 0, 1024, 0, 1, 0, 1, 0, 1, 0};
  for (int i = 0; i < 11; ++i) Same("query", i, o[i], want[i]);

  CU(cudaMemset(count, 0, 4));
  Chain<<<1, 32>>>(count, 20);
  Same("chain", 0, count.Read()[0], 21);  // no other synchronisation than the copy

  CU(cudaMemset(out, 0, 256));
  Deep<<<1, 1>>>(out, 0);
  CU_LAUNCHED();
  o = out.Read();
  // As many as may be pending. Whether the last one is told of it is not the same on a GPU and here.
  Same("depth", 0, o[0], 2048);

  CU(cudaMemset(count, 0, 4));
  TailOrder<<<1, 1>>>(log, count);
  CU_LAUNCHED();
  const auto order = log.Read();
  const int tails[] = {1, 100, 101, 102};
  for (int i = 0; i < 4; ++i) Same("tail order", i, order[i], tails[i]);

  CU(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 100));
  CU(cudaMemset(count, 0, 4));
  TooManyTails<<<1, 1>>>(out, 150, count);
  CU_LAUNCHED();
  Same("refused tails", 0, count.Read()[0], 50);
  Same("last tail", 0, out.Read()[0], 99);
  CU(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2048));

  Buffer<int> many(15 * 128);
  Many<<<15, 128>>>(many);
  CU_LAUNCHED();
  const auto m = many.Read();
  for (int i = 0; i < 15 * 128; ++i) Same("many", i, m[i], 7);
  return Verdict();
}
