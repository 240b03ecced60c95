// How fast a kernel that stays hears of the host and answers: through memory of the host that it reads and writes, and
// through copies into device memory beside it, as a runtime does that gives tasks to a resident kernel. usage: mailbox
// [rounds, 2000]
#include <atomic>
#include <cstdint>
#include <thread>

#include "probe.h"

namespace {

using probe::Print;

/// Answers each number in `in` with the same number in `out`, until it is 0xFFFFFFFF.
__global__ void Answer(const volatile unsigned* in, volatile unsigned* out) {
  for (unsigned seen = 0; seen != 0xFFFFFFFFu;) {
    const unsigned now = *in;
    if (now == seen) continue;
    seen = now;
    *out = now;
    __threadfence_system();
  }
}

/// Cycles of a read of host memory and of an atomic on it, one after the other.
__global__ void Reads(volatile unsigned* words, int count, long long* cycles) {
  unsigned at = 0;
  const long long begin = clock64();
  for (int i = 0; i < count; ++i) at = words[at];
  const long long middle = clock64();
  for (int i = 0; i < count; ++i) at = atomicAdd_system(const_cast<unsigned*>(words) + at, 0);
  cycles[0] = (middle - begin) / count;
  cycles[1] = (clock64() - middle) / count + static_cast<long long>(at);
}

double Rounds(int rounds, const volatile unsigned* out, volatile unsigned* in, const unsigned* device_in,
              unsigned* device_out, cudaStream_t kernel, cudaStream_t copies, bool copied) {
  static unsigned* staged = nullptr;
  if (staged == nullptr) PROBE(cudaMallocHost(&staged, sizeof *staged));
  *const_cast<volatile unsigned*>(out) = 0;
  Answer<<<1, 1, 0, kernel>>>(device_in, device_out);
  std::vector<double> times;
  const auto send = [&](unsigned number) {
    if (!copied) {
      *in = number;
      std::atomic_thread_fence(std::memory_order_seq_cst);
      return;
    }
    *staged = number;
    PROBE(cudaMemcpyAsync(const_cast<unsigned*>(device_in), staged, sizeof number, cudaMemcpyHostToDevice, copies));
  };
  for (int round = 1; round <= rounds; ++round) {
    times.push_back(probe::HostTime([&] {
      send(static_cast<unsigned>(round));
      while (*out != static_cast<unsigned>(round)) std::this_thread::yield();
    }));
    if (copied) PROBE(cudaStreamSynchronize(copies));
  }
  send(0xFFFFFFFFu);
  PROBE(cudaStreamSynchronize(kernel));
  return probe::Median(times);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  unsigned *host_in, *host_out, *device_in, *mapped_in, *mapped_out;
  long long* cycles;
  cudaStream_t kernel, copies;
  PROBE(cudaStreamCreateWithFlags(&kernel, cudaStreamNonBlocking));
  PROBE(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  PROBE(cudaHostAlloc(&host_in, 4096, cudaHostAllocMapped));
  PROBE(cudaHostAlloc(&host_out, 4096, cudaHostAllocMapped));
  PROBE(cudaHostGetDevicePointer(&mapped_in, host_in, 0));
  PROBE(cudaHostGetDevicePointer(&mapped_out, host_out, 0));
  PROBE(cudaMalloc(&device_in, 4096));
  PROBE(cudaMemset(device_in, 0, 4096));
  *host_in = 0;
  PROBE(cudaDeviceSynchronize());
  Print("answer.mapped", Rounds(rounds, host_out, host_in, mapped_in, mapped_out, kernel, copies, false));
  Print("answer.copied", Rounds(rounds, host_out, nullptr, device_in, mapped_out, kernel, copies, true));
  for (int i = 0; i < 1024; ++i) host_in[i] = 0;
  PROBE(cudaMallocManaged(&cycles, 2 * sizeof *cycles));
  Reads<<<1, 1, 0, kernel>>>(mapped_in, 200, cycles);
  PROBE(cudaStreamSynchronize(kernel));
  Print("read_of_host_memory_cycles", static_cast<double>(cycles[0]));
  Print("atomic_on_host_memory_cycles", static_cast<double>(cycles[1]));
}
