// CUB: device-wide scan, reduction, radix sort, histogram, selection; block- and warp-wide primitives in a kernel.
#include <algorithm>
#include <cub/cub.cuh>

#include "app.h"

template <class Call>
void WithStorage(Call call) {
  void* storage = nullptr;
  std::size_t bytes = 0;
  CU(call(storage, bytes));
  CU(cudaMalloc(&storage, bytes));
  CU(call(storage, bytes));
  CU_LAUNCHED();
  CU(cudaFree(storage));
}
template <int kThreads>
__global__ void Blocks(const int* in, int* scanned, int* sums) {
  using Scan = cub::BlockScan<int, kThreads>;
  using Reduce = cub::BlockReduce<int, kThreads>;
  using Warp = cub::WarpReduce<int>;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
    typename Warp::TempStorage warp[kThreads / 32];
  } storage;
  const int i = blockIdx.x * kThreads + threadIdx.x, v = in[i];
  int prefix = 0;
  Scan(storage.scan).InclusiveSum(v, prefix);
  scanned[i] = prefix;
  __syncthreads();
  const int total = Reduce(storage.reduce).Sum(v);
  __syncthreads();
  const int warp = Warp(storage.warp[threadIdx.x / 32]).Reduce(v, cuda::maximum<>{});
  if (threadIdx.x == 0) sums[blockIdx.x * 2] = total, sums[blockIdx.x * 2 + 1] = warp;
}
struct Odd {
  __host__ __device__ bool operator()(int v) const { return v & 1; }
};

int main() {
  const int n = 33'333;
  std::vector<int> in(n);
  Random random(61);
  for (auto& v : in) v = static_cast<int>(random.Next() % 1024);
  Buffer<int> d(in), out(n), count(1);
  WithStorage([&](void* s, std::size_t& b) {
    return cub::DeviceScan::InclusiveSum(s, b, static_cast<int*>(d), static_cast<int*>(out), n);
  });
  auto got = out.Read();
  for (int i = 0, sum = 0; i < n; ++i) Same("scan", i, got[i], sum += in[i]);
  WithStorage([&](void* s, std::size_t& b) {
    return cub::DeviceReduce::Max(s, b, static_cast<int*>(d), static_cast<int*>(count), n);
  });
  Same("max", 0, count.Read()[0], *std::max_element(in.begin(), in.end()));
  WithStorage([&](void* s, std::size_t& b) {
    return cub::DeviceRadixSort::SortKeys(s, b, static_cast<int*>(d), static_cast<int*>(out), n);
  });
  auto sorted = in;
  std::sort(sorted.begin(), sorted.end());
  got = out.Read();
  for (int i = 0; i < n; ++i) Same("radix sort", i, got[i], sorted[i]);
  Buffer<int> histogram(16);
  WithStorage([&](void* s, std::size_t& b) {
    return cub::DeviceHistogram::HistogramEven(s, b, static_cast<int*>(d), static_cast<int*>(histogram), 17, 0, 1024,
                                               n);
  });
  const auto bins = histogram.Read();
  for (int k = 0; k < 16; ++k)
    Same("histogram", k, bins[k],
         static_cast<int>(std::count_if(in.begin(), in.end(), [k](int v) { return v / 64 == k; })));
  WithStorage([&](void* s, std::size_t& b) {
    return cub::DeviceSelect::If(s, b, static_cast<int*>(d), static_cast<int*>(out), static_cast<int*>(count), n,
                                 Odd());
  });
  got = out.Read();
  int kept = 0;
  for (int v : in)
    if (v & 1) Same("select", kept, got[kept], v), ++kept;
  Same("selected", 0, count.Read()[0], kept);

  Buffer<int> sums(20);
  Blocks<128><<<10, 128>>>(d, out, sums);
  CU_LAUNCHED();
  got = out.Read();
  const auto s = sums.Read();
  for (int b = 0; b < 10; ++b) {
    int sum = 0, max = 0;
    for (int t = 0; t < 128; ++t)
      Same("block scan", b * 128 + t, got[b * 128 + t], sum += in[b * 128 + t]),
          max = t < 32 ? std::max(max, in[b * 128 + t]) : max;
    Same("block reduce", b, s[b * 2], sum), Same("warp reduce", b, s[b * 2 + 1], max);
  }
  return Verdict();
}
