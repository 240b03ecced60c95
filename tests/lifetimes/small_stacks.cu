// Threads with stacks of 32 to 192 KiB: each makes all of its calls on its own, compiles a kernel that nobody has
// launched before, and has the right result. usage: small_stacks
#include <pthread.h>

#include "../apps/app.h"

namespace {

constexpr int kCount = 1000;

// As many kernels as there are sizes, so that each thread has to compile its own.
template <int kSize>
__global__ void Scale(const float* in, float* out, int count) {
  __shared__ float tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < count ? in[i] : 0;
  __syncthreads();
  if (i < count) out[i] = tile[threadIdx.x] * kSize + sqrtf(tile[threadIdx.x ^ 1]) * 0;
}

template <int kSize>
void* Main(void*) {
  float *in = nullptr, *out = nullptr, *host = nullptr;
  cudaStream_t stream;
  cudaEvent_t event;
  CU(cudaMalloc(&in, kCount * sizeof(float)));
  CU(cudaMallocManaged(&out, kCount * sizeof(float)));
  CU(cudaMallocHost(&host, kCount * sizeof(float)));
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
  CU(cudaStreamCreate(&stream));
  CU(cudaEventCreate(&event));
  CU(cudaMemcpyAsync(in, host, kCount * sizeof(float), cudaMemcpyHostToDevice, stream));
  Scale<kSize><<<(kCount + 255) / 256, 256, 0, stream>>>(in, out, kCount);
  CU(cudaGetLastError());
  CU(cudaEventRecord(event, stream));
  CU(cudaEventSynchronize(event));
  CU(cudaStreamSynchronize(stream));
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += out[i] != static_cast<float>(i) * kSize;
  Same("wrong", kSize, wrong, 0);
  CU(cudaEventDestroy(event));
  CU(cudaStreamDestroy(stream));
  CU(cudaFreeHost(host));
  CU(cudaFree(in));
  CU(cudaFree(out));
  return nullptr;
}

template <int kSize>
void Run() {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  True("size", pthread_attr_setstacksize(&attributes, kSize << 10) == 0);
  const bool begun = pthread_create(&thread, &attributes, Main<kSize>, nullptr) == 0;
  if (True("begins", begun)) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace

int main() {
  Run<32>();  // the first call of the process is such a thread's
  Run<48>();
  Run<64>();
  Run<96>();
  Run<128>();
  Run<192>();
  return Verdict();
}
