// Static and dynamic shared memory: transpose with ragged tiles, rotating buffers, several arrays in one dynamic block.
#include "app.h"

__global__ void Transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[32][33];
  const int x = blockIdx.x * 32 + threadIdx.x, y0 = blockIdx.y * 32;
  for (int r = threadIdx.y; r < 32; r += blockDim.y)
    if (x < width && y0 + r < height) tile[r][threadIdx.x] = in[(y0 + r) * width + x];
  __syncthreads();
  const int tx = y0 + threadIdx.x, ty0 = blockIdx.x * 32;
  for (int r = threadIdx.y; r < 32; r += blockDim.y)
    if (tx < height && ty0 + r < width) out[(ty0 + r) * height + tx] = tile[threadIdx.x][r];
}
// One dynamic block cut into three arrays of different types.
__global__ void Mixed(const int* in, double* out, int n) {
  extern __shared__ double pool[];
  double* sums = pool;
  int* values = reinterpret_cast<int*>(sums + blockDim.x);
  unsigned char* flags = reinterpret_cast<unsigned char*>(values + blockDim.x);
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  values[t] = i < n ? in[i] : 0;
  flags[t] = i < n;
  sums[t] = 0;
  __syncthreads();
  for (int k = 0; k <= t; ++k) sums[t] += flags[k] ? values[k] * 0.5 : 0;  // a prefix sum, quadratically
  __syncthreads();
  if (i < n) out[i] = sums[t] + sums[blockDim.x - 1 - t] * 1e-3;
}
// Odd-even transposition sort: two barriers per step, an odd block size.
__global__ void Sort(unsigned* data, int n) {
  __shared__ unsigned s[200];
  const int t = threadIdx.x;
  if (t < n) s[t] = data[t];
  for (int step = 0; step < n; ++step) {
    __syncthreads();
    const int i = 2 * t + (step & 1);
    if (i + 1 < n && s[i] > s[i + 1]) {
      const unsigned swap = s[i];
      s[i] = s[i + 1], s[i + 1] = swap;
    }
  }
  __syncthreads();
  if (t < n) data[t] = s[t];
}

int main() {
  const int width = 301, height = 173;
  std::vector<float> m(width * height);
  for (std::size_t i = 0; i < m.size(); ++i) m[i] = i * 1.25f;
  Buffer<float> dm(m), dt(m.size());
  Transpose<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 7)>>>(dm, dt, width, height);
  CU_LAUNCHED();
  const auto t = dt.Read();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) Same("transpose", y * width + x, t[x * height + y], m[y * width + x]);

  const int n = 1000, block = 96;
  std::vector<int> in(n);
  for (int i = 0; i < n; ++i) in[i] = i * 7 % 31 - 9;
  Buffer<int> din(in);
  Buffer<double> dout(n);
  Mixed<<<(n + block - 1) / block, block, block * 13>>>(din, dout, n);
  CU_LAUNCHED();
  const auto out = dout.Read();
  for (int i = 0; i < n; ++i) {
    const auto prefix = [&](int t) {
      double sum = 0;
      for (int k = i / block * block; k <= i / block * block + t; ++k) sum += k < n ? in[k] * 0.5 : 0;
      return sum;
    };
    Near("mixed", i, out[i], prefix(i % block) + prefix(block - 1 - i % block) * 1e-3, 1e-12);
  }

  std::vector<unsigned> keys(199);
  Random random(8);
  for (auto& key : keys) key = random.Next();
  Buffer<unsigned> dk(keys);
  Sort<<<1, 101>>>(dk, 101);
  CU_LAUNCHED();
  const auto sorted = dk.Read();
  for (int i = 1; i < 101; ++i) True("sorted", sorted[i - 1] <= sorted[i]);
  for (int i = 101; i < 199; ++i) Same("untouched", i, sorted[i], keys[i]);
  return Verdict();
}
