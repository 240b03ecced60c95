// Micro-benchmarks as programs: what a device is measured by. Prints "name value" lines, times in nanoseconds by
// events; differences of two sizes, so that what a launch costs is not in them. usage: timing_probes [SMS [SCALE]]; a
// real GPU, whose events are 0.5 µs apart at best, needs work that is larger by SCALE (64, say).
// tests/e2e/timing_probes_test.py compares them with the device's file.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

namespace {

__global__ void Chase(void** start, int loads, void*** out) {
  void** at = start;
#pragma unroll 16
  for (int i = 0; i < loads; ++i) at = static_cast<void**>(*at);
  *out = at;
}

__global__ void Copy(const float4* from, float4* to) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

__global__ void FmaChain(float* out, int n, float a, float b) {
  float x = a;
#pragma unroll 512
  for (int i = 0; i < n; ++i) x = fmaf(x, a, b);
  *out = x;
}

__global__ void FmaMany(float* out, int n, float a, float b) {
  float x[8] = {a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7};
#pragma unroll 8
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 8; ++k) x[k] = fmaf(x[k], a, b);
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += x[k];
  if (sum == 12345.f) *out = sum;
}

/// Lane i goes round word i * ways of shared memory: `ways` lanes on one bank.
__global__ void Banks(unsigned* out, int n, int ways) {
  __shared__ unsigned words[32 * 32];
  for (unsigned i = threadIdx.x; i < 32 * 32; i += 32) words[i] = i;
  __syncthreads();
  unsigned at = threadIdx.x * ways;
#pragma unroll 16
  for (int i = 0; i < n; ++i) at = words[at];
  out[threadIdx.x] = at;
}

/// Every `ways`th lane of a warp takes the same path.
__global__ void Diverge(float* out, int n, int ways, float a, float b) {
  float x = a;
  for (int way = 0; way < ways; ++way) {
    if (threadIdx.x % ways == way) {
#pragma unroll 16
      for (int i = 0; i < n; ++i) x = fmaf(x, a, b);
    }
  }
  out[threadIdx.x] = x;
}

__global__ void Hold(float* out, int n, float a, float b) {
  extern __shared__ float room[];
  float x = a;
#pragma unroll 16
  for (int i = 0; i < n; ++i) x = fmaf(x, a, b);
  room[threadIdx.x] = x;
  if (x == 12345.f) *out = room[0];
}

__global__ void Empty() {}

template <typename F>
double Nanoseconds(const F& work) {
  static cudaEvent_t begin = nullptr, end = nullptr;
  if (begin == nullptr) {
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  CHECK(cudaEventRecord(begin));
  work();
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  return ms * 1e6;
}

void Print(const char* name, double value) { std::printf("%s %.4f\n", name, value); }

/// A ring of pointers `stride` bytes apart.
void* Ring(std::size_t bytes, std::size_t stride) {
  char* ring = nullptr;
  CHECK(cudaMalloc(&ring, bytes));
  std::vector<char*> host(bytes / sizeof(char*));
  for (std::size_t at = 0; at < bytes; at += stride) {
    const std::size_t next = at + stride < bytes ? at + stride : 0;
    host[at / sizeof(char*)] = ring + next;
  }
  CHECK(cudaMemcpy(ring, host.data(), bytes, cudaMemcpyHostToDevice));
  return ring;
}

double PerLoad(void* first, void* second, int loads, int more) {
  void*** out = nullptr;
  CHECK(cudaMalloc(&out, sizeof *out));
  if (first == second) {  // so that the caches have what they can have
    Chase<<<1, 1>>>(static_cast<void**>(first), loads, out);
    CHECK(cudaDeviceSynchronize());
  }
  const double less_ns = Nanoseconds([&] { Chase<<<1, 1>>>(static_cast<void**>(first), loads, out); });
  const double more_ns = Nanoseconds([&] { Chase<<<1, 1>>>(static_cast<void**>(second), more, out); });
  return (more_ns - less_ns) / (more - loads);
}

void Latencies(int scale) {
  void* small = Ring(4 << 10, 128);
  Print("l1_load", PerLoad(small, small, 1024 * scale, 4096 * scale));
  void* medium = Ring(1 << 20, 128);
  Print("l2_load", PerLoad(medium, medium, 3 * 8192 * scale, 4 * 8192 * scale));
  // Each load touches a line that was never touched.
  constexpr std::size_t kFar = (256 << 10) + 8448;
  Print("dram_load", PerLoad(Ring(64 * kFar * scale, kFar), Ring(128 * kFar * scale, kFar), 32 * scale, 96 * scale));
}

void Bandwidth(int scale) {
  const std::size_t kMost = std::size_t{48 << 20} * scale;
  float4 *from = nullptr, *to = nullptr;
  CHECK(cudaMalloc(&from, kMost));
  CHECK(cudaMalloc(&to, kMost));
  const auto copy = [&](std::size_t bytes) {
    return Nanoseconds([&] { Copy<<<bytes / sizeof(float4) / 256, 256>>>(from, to); });
  };
  const double less = copy(kMost / 3), more = copy(kMost);
  Print("copy_bytes_per_ns", 2.0 * (kMost - kMost / 3) / (more - less));
  std::vector<char> host(8 << 20);
  Print("to_device_ns",
        Nanoseconds([&] { CHECK(cudaMemcpyAsync(from, host.data(), host.size(), cudaMemcpyHostToDevice)); }));
  Print("to_host_ns",
        Nanoseconds([&] { CHECK(cudaMemcpyAsync(host.data(), from, host.size(), cudaMemcpyDeviceToHost)); }));
}

void Arithmetic(int sms, int scale) {
  float* out = nullptr;
  CHECK(cudaMalloc(&out, 4096));
  const auto chain = [&](int n) { return Nanoseconds([&] { FmaChain<<<1, 32>>>(out, n, 0.5f, 1.f); }); };
  const double short_chain = chain(1024 * scale);
  Print("fma_latency", (chain(4096 * scale) - short_chain) / (3072 * scale));
  const auto many = [&](int n) { return Nanoseconds([&] { FmaMany<<<sms, 512>>>(out, n, 0.5f, 1.f); }); };
  const double few = many(32 * scale);
  Print("fma_lanes_per_sm_and_ns", 512.0 * 8 * 64 * scale / (many(96 * scale) - few));
  for (const int ways : {1, 2, 4, 8, 16, 32}) {
    char name[32];
    std::snprintf(name, sizeof name, "banks_%d", ways);
    const auto banks = [&](int n) {
      return Nanoseconds([&] { Banks<<<1, 32>>>(reinterpret_cast<unsigned*>(out), n, ways); });
    };
    const double less = banks(256 * scale);
    Print(name, (banks(1024 * scale) - less) / (768 * scale));
  }
  for (const int ways : {1, 2, 4, 8, 16, 32}) {
    char name[32];
    std::snprintf(name, sizeof name, "diverge_%d", ways);
    const auto diverge = [&](int n) { return Nanoseconds([&] { Diverge<<<1, 32>>>(out, n, ways, 0.5f, 1.f); }); };
    const double less = diverge(256 * scale);
    Print(name, (diverge(1024 * scale) - less) / (768 * scale));
  }
}

void Launches(int sms, int scale) {
  float* out = nullptr;
  CHECK(cudaMalloc(&out, 4));
  // 40 KiB of shared memory a block: the device file tells how many an SM holds.
  for (const int waves : {1, 2, 4}) {
    char name[32];
    std::snprintf(name, sizeof name, "hold_%d", waves);
    const auto hold = [&](int n) {
      return Nanoseconds([&] { Hold<<<sms * waves, 32, 40 << 10>>>(out, n, 0.5f, 1.f); });
    };
    const double less = hold(512 * scale);
    Print(name, (hold(2048 * scale) - less) / scale);
  }
  const auto launch = [&](int n) {
    return Nanoseconds([&] {
      for (int i = 0; i < n; ++i) Empty<<<1, 32>>>();
    });
  };
  const double one = launch(1);
  Print("launch_alone", one);
  Print("launch_more", (launch(1 + 20 * scale) - one) / (20 * scale));
}

}  // namespace

/// The argument is the number of SMs: of the device that is simulated, which the program does not see.
int main(int argc, char** argv) {
  const int sms = argc > 1 ? std::atoi(argv[1]) : 1;
  const int scale = argc > 2 ? std::atoi(argv[2]) : 1;
  Latencies(scale);
  Bandwidth(scale);
  Arithmetic(sms, scale);
  Launches(sms, scale);
  return 0;
}
