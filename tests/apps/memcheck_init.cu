// Global memory that nobody has written: one case for each argument, and right programs in "none". usage: memcheck_init
// CASE
#include <string>
#include <vector>

#include "app.h"

namespace {

constexpr int kCount = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);

struct Gap {
  char small;
  int large;
};

__global__ void Branch(const int* p, int* out) {
  const int value = p[threadIdx.x];
  if (value > 3) out[threadIdx.x] = 7;
}
__global__ void Add(int* p) {
  atomicAdd(p + threadIdx.x, 1);  // atomic
}
/// Written in part: the tail of it was not.
__global__ void WriteHalf(int* p) {
  if (threadIdx.x < kCount / 2) p[threadIdx.x] = threadIdx.x;
}
__global__ void Copy(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void Through(const int* from, int* to) {
  __shared__ int tile[kCount];
  tile[kCount - 1 - threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  to[threadIdx.x] = tile[threadIdx.x] + 1;
}

/// Right: what is not written decides nothing.
__global__ void Structs(const Gap* from, Gap* to, const float4* points, float* out) {
  to[threadIdx.x] = from[threadIdx.x];
  const float4 point = points[threadIdx.x];
  out[threadIdx.x] = point.x + point.y + point.z;
}
__global__ void Sum(const int* p, int n, int* out) {
  const int value = p[threadIdx.x];  // the last ones are read and not used
  const int sum = __reduce_add_sync(0xffffffffu, threadIdx.x < n ? value : 0);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
__global__ void Words(const unsigned* p, unsigned* out) {
  if ((p[threadIdx.x] & 0xff) != 0) out[threadIdx.x] = 1;
}
__global__ void FillPoints(float4* points, Gap* gaps) {
  points[threadIdx.x].x = points[threadIdx.x].y = points[threadIdx.x].z = 1;
  gaps[threadIdx.x].small = 1;
  gaps[threadIdx.x].large = 2;
}

int* Memory(std::size_t bytes = kBytes) {
  int* p = nullptr;
  CU(cudaMalloc(&p, bytes));
  return p;
}

void Right() {
  std::vector<int> host(kCount, 5);
  int *a = Memory(), *b = Memory(), *out = Memory();
  CU(cudaMemset(out, 0, kBytes));
  CU(cudaMemcpy(a, host.data(), kBytes, cudaMemcpyHostToDevice));
  Branch<<<1, kCount>>>(a, out);
  CU(cudaMemcpy(b, a, kBytes, cudaMemcpyDeviceToDevice));
  Branch<<<1, kCount>>>(b, out);
  Copy<<<1, kCount>>>(b, a);
  Branch<<<1, kCount>>>(a, out);
  Through<<<1, kCount>>>(a, b);
  Branch<<<1, kCount>>>(b, out);
  Add<<<1, kCount>>>(b);

  int* const half = Memory();
  WriteHalf<<<1, kCount>>>(half);
  Sum<<<1, kCount>>>(half, kCount / 2, out);
  Branch<<<1, kCount / 2>>>(half, out);
  Copy<<<1, kCount>>>(half, a);  // takes along what it does not know
  Branch<<<1, kCount / 2>>>(a, out);
  CU(cudaMemset2D(reinterpret_cast<char*>(half) + kBytes / 2, kBytes / 8, 0, kBytes / 8, 4));
  Branch<<<1, kCount>>>(half, out);

  auto* const gaps = reinterpret_cast<Gap*>(Memory(2 * kCount * sizeof(Gap)));
  auto* const points = reinterpret_cast<float4*>(Memory(kCount * sizeof(float4)));
  FillPoints<<<1, kCount>>>(points, gaps);
  Structs<<<1, kCount>>>(gaps, gaps + kCount, points, reinterpret_cast<float*>(a));
  Branch<<<1, kCount>>>(a, out);

  // Of each word the first byte.
  auto* const bytes = reinterpret_cast<unsigned char*>(Memory(4 * kCount));
  for (int i = 0; i < kCount; ++i) CU(cudaMemset(bytes + 4 * i, 3, 1));
  Words<<<1, kCount>>>(reinterpret_cast<unsigned*>(bytes), reinterpret_cast<unsigned*>(out));

  int *managed = nullptr, *pinned = nullptr;
  CU(cudaMallocManaged(&managed, kBytes));
  CU(cudaMallocHost(&pinned, kBytes));
  Branch<<<1, kCount>>>(managed, out);
  Branch<<<1, kCount>>>(pinned, out);
  CU(cudaMemcpy(host.data(), out, kBytes, cudaMemcpyDeviceToHost));
  CU(cudaMemcpy(host.data(), half, kBytes, cudaMemcpyDeviceToHost));
  CU(cudaDeviceSynchronize());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "none";
  std::vector<int> host(kCount);
  int *p = Memory(), *q = Memory(), *out = Memory();
  CU(cudaMemset(out, 0, kBytes));
  if (name == "none") Right();
  if (name == "atomic") Add<<<1, kCount>>>(p);
  if (name == "copy-copied") {
    WriteHalf<<<1, kCount>>>(q);
    CU(cudaMemcpy(p, q, kBytes, cudaMemcpyDeviceToDevice));
    CU(cudaMemcpy(host.data(), p, kBytes, cudaMemcpyDeviceToHost));
  }
  if (name == "copy-async") {
    int* fresh = nullptr;
    CU(cudaMallocAsync(&fresh, kBytes, nullptr));
    CU(cudaMemcpy(host.data(), fresh, kBytes, cudaMemcpyDeviceToHost));
    CU(cudaFreeAsync(fresh, nullptr));
  }
  if (name == "copy-anew") {  // what was there is not there any more
    CU(cudaMemset(p, 0, kBytes));
    CU(cudaFree(p));
    p = Memory();
    CU(cudaMemcpy(host.data(), p, kBytes, cudaMemcpyDeviceToHost));
  }
  if (name == "copy-out") {
    WriteHalf<<<1, kCount>>>(p);
    CU(cudaMemcpy(host.data(), p, kBytes, cudaMemcpyDeviceToHost));
  }
  if (name == "copy-out-2d") {
    WriteHalf<<<1, kCount>>>(p);
    CU(cudaMemcpy2D(host.data(), 64, p, 64, 32, 16, cudaMemcpyDeviceToHost));
  }
  if (name == "copy-part") {
    WriteHalf<<<1, kCount>>>(p);
    CU(cudaMemcpy(host.data(), p, kBytes / 2, cudaMemcpyDeviceToHost));
  }
  std::printf("%s: %s\n", name.c_str(), cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
