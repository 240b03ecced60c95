// Programs with one known defect each, chosen by name; memcheck_test.py knows what memcheck has to say. The line of a
// defect is marked with its name.
#include <string>

#include "app.h"

__device__ int table[10];

__global__ void WritePast(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) p[i] = i;  // write-past
}
__global__ void ReadPast(const float4* p, float* out) {
  out[threadIdx.x] = p[threadIdx.x].w;  // read-past
}
__global__ void Before(int* p) {
  p[-1 - static_cast<int>(threadIdx.x)] = 3;  // before
}
__global__ void Freed(int* p) {
  p[threadIdx.x] = 1;  // freed freed-async
}
__global__ void Null(int* p) {
  p[5] = 1;  // null
}
__global__ void Misaligned(char* p) {
  *reinterpret_cast<int*>(p + 2) = 5;  // misaligned
}
__global__ void Global(int i) {
  table[threadIdx.x + i] = 1;  // variable
}
__global__ void Uninitialised(int* out) {
  __shared__ int tile[64];
  if (threadIdx.x < 63) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // uninitialised
}
__global__ void UninitialisedBranch(int* out) {
  __shared__ int tile[64];
  if (threadIdx.x < 63) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const int mine = tile[threadIdx.x];
  if (mine * 2 + 1 > 40) out[threadIdx.x] = atomicAdd(out + 100, 1);  // uninitialised-branch
}
/// The partial sum of a second warp that does not exist.
__global__ void UninitialisedSum(int* out) {
  __shared__ int sums[32];
  if (threadIdx.x == 0) sums[0] = 496;
  __syncthreads();
  int total = sums[threadIdx.x % 2];
  for (int step = 1; step < 2; step *= 2) total += __shfl_xor_sync(~0u, total, step);
  if (threadIdx.x == 0) *out = total;  // uninitialised-sum
}
/// Reads what nobody has written, and uses none of it.
struct Gap {
  char tag;
  double value;
};
__global__ void UnusedReads(int* out, int n) {
  __shared__ int tile[64];
  __shared__ Gap gaps[64];
  __shared__ float4 points[64];
  if (threadIdx.x < n) tile[threadIdx.x] = threadIdx.x;
  Gap gap{'a', 1.5 * threadIdx.x};
  gaps[threadIdx.x] = gap;
  points[threadIdx.x].x = points[threadIdx.x].y = points[threadIdx.x].z = threadIdx.x;
  __syncthreads();
  const int candidate = tile[threadIdx.x];
  const int chosen = threadIdx.x < n ? candidate : -1;
  const Gap other = gaps[63 - threadIdx.x];
  gaps[63 - threadIdx.x] = other;
  const float4 point = points[threadIdx.x];
  reinterpret_cast<Gap*>(out)[threadIdx.x] = other;
  reinterpret_cast<float4*>(out)[64 + threadIdx.x] = point;
  out[768 + threadIdx.x] = chosen + static_cast<int>(point.x + point.y * point.z);
}
__global__ void ReadAfterWrite(int* out) {
  __shared__ int tile[128];
  tile[threadIdx.x] = threadIdx.x;             // race-raw
  out[threadIdx.x] = tile[127 - threadIdx.x];  // race-raw
}
__global__ void WriteAfterRead(int* out) {
  __shared__ int tile[128];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const int other = tile[127 - threadIdx.x];  // race-war
  tile[threadIdx.x] = other;                  // race-war
  __syncthreads();
  out[threadIdx.x] = tile[0];
}
__global__ void WriteAfterWrite(int* out) {
  __shared__ int last;
  last = threadIdx.x;  // race-waw
  __syncthreads();
  out[threadIdx.x] = last;
}
__global__ void Dynamic(int* out) {
  extern __shared__ int room[];
  room[threadIdx.x] = threadIdx.x;  // dynamic
  __syncthreads();
  out[threadIdx.x] = room[threadIdx.x];
}
__global__ void Heap(int* out) {
  int* const block = static_cast<int*>(malloc(16));
  block[0] = 1;
  *out = block[threadIdx.x + 4];  // heap
  free(block);
}
/// One line, and 16 instructions.
__global__ void Unrolled(int* p) {
#pragma unroll
  for (int i = 0; i < 16; ++i) p[1000 + 32 * i + threadIdx.x] = i;  // unrolled
}
__global__ void DoubleFree() {
  void* const block = malloc(16);
  free(block);
  free(block);  // double-free
}
__global__ void Right(int* p, int n) {
  __shared__ int tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? p[i] : 0;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(p + n, tile[0]);
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "none";
  int* p = nullptr;
  CU(cudaMalloc(&p, 1000 * sizeof(int)));
  int* out = nullptr;
  CU(cudaMalloc(&out, 1024 * sizeof(int)));
  CU(cudaMemset(p, 0, 1000 * sizeof(int)));
  if (name == "none") Right<<<4, 256>>>(p, 999);
  if (name == "write-past") WritePast<<<4, 256>>>(p, 1000);
  if (name == "read-past") ReadPast<<<1, 251>>>(reinterpret_cast<float4*>(p), reinterpret_cast<float*>(out));
  if (name == "before") Before<<<1, 2>>>(out);
  if (name == "freed") cudaFree(p), Freed<<<1, 32>>>(p);
  if (name == "freed-async") {
    CU(cudaMallocAsync(&p, 100, nullptr));
    CU(cudaFreeAsync(p, nullptr));
    Freed<<<1, 16>>>(p);
  }
  if (name == "null") Null<<<1, 1>>>(nullptr);
  if (name == "misaligned") Misaligned<<<1, 1>>>(reinterpret_cast<char*>(p));
  if (name == "variable") Global<<<1, 8>>>(4);
  if (name == "uninitialised") Uninitialised<<<1, 64>>>(out);
  if (name == "uninitialised-branch") UninitialisedBranch<<<1, 64>>>(out);
  if (name == "uninitialised-sum") UninitialisedSum<<<1, 32>>>(out);
  if (name == "none") UnusedReads<<<1, 64>>>(out, 50);
  if (name == "race-raw") ReadAfterWrite<<<1, 128>>>(out);
  if (name == "race-war") WriteAfterRead<<<1, 128>>>(out);
  if (name == "race-waw") WriteAfterWrite<<<1, 128>>>(out);
  if (name == "dynamic") Dynamic<<<1, 64, 32 * sizeof(int)>>>(out);
  if (name == "heap") Heap<<<1, 1>>>(out);
  if (name == "unrolled") Unrolled<<<1, 32>>>(p);
  if (name == "double-free") DoubleFree<<<1, 1>>>();
  if (name == "host-double-free") cudaFree(out), cudaFree(out);
  if (name == "host-free") cudaFree(p + 1);
  if (name == "copy") cudaMemcpy(out, p, 1024 * sizeof(int), cudaMemcpyDeviceToDevice);
  std::printf("%s: %s\n", name.c_str(), cudaGetErrorName(cudaDeviceSynchronize()));
  if (name == "leak") return 0;
  cudaFree(p);
  if (name != "host-double-free") cudaFree(out);
  return 0;
}
