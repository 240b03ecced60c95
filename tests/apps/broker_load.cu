// A steady load for tests of the broker: the same launches until BROKER_LOAD_LAUNCHES (5; 0: for ever) of them have
// run, each in a grid that is larger than any device, their results checked at the end. BROKER_LOAD_ROUNDS: how long a
// launch takes. BROKER_LOAD_MEMORY: bytes to allocate first.
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kThreads = 128;
constexpr int kCtas = 4096;

__global__ void Step(unsigned* values, unsigned rounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = values[i];
  for (unsigned r = 0; r < rounds; ++r) v = v * 1664525u + 1013904223u;
  values[i] = v;
}

unsigned long long Number(const char* name, unsigned long long otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

bool Good(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return true;
  std::printf("%s: %s\n", what, cudaGetErrorString(status));
  return false;
}

}  // namespace

int main() {
  const unsigned long long launches = Number("BROKER_LOAD_LAUNCHES", 5), bytes = Number("BROKER_LOAD_MEMORY", 1);
  const unsigned rounds = static_cast<unsigned>(Number("BROKER_LOAD_ROUNDS", 64));
  std::size_t free = 0, total = 0;
  if (!Good(cudaMemGetInfo(&free, &total), "memory info")) return 1;
  std::printf("total %zu, free %zu\n", total, free);
  void* ballast = nullptr;
  if (!Good(cudaMalloc(&ballast, bytes), "ballast")) return 1;
  unsigned* values = nullptr;
  if (!Good(cudaMalloc(&values, sizeof(unsigned) * kCtas * kThreads), "values")) return 1;
  if (!Good(cudaMemset(values, 0, sizeof(unsigned) * kCtas * kThreads), "fill")) return 1;
  unsigned expected = 0;
  for (unsigned long long i = 0; launches == 0 || i < launches; ++i) {
    Step<<<kCtas, kThreads>>>(values, rounds);
    if (!Good(cudaDeviceSynchronize(), "launch")) return 1;
    for (unsigned r = 0; r < rounds; ++r) expected = expected * 1664525u + 1013904223u;
  }
  std::vector<unsigned> host(kCtas * kThreads);
  if (!Good(cudaMemcpy(host.data(), values, sizeof(unsigned) * host.size(), cudaMemcpyDeviceToHost), "copy")) return 1;
  for (const unsigned value : host) {
    if (value != expected) {
      std::printf("FAIL: %u instead of %u\n", value, expected);
      return 1;
    }
  }
  std::printf("PASS: %llu launches\n", launches);
  return 0;
}
