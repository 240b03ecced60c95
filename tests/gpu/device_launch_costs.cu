// What launches by kernels cost: the warp that calls, the time until the child begins, and how many children a GPU
// begins a second, beside the same children launched by the host. Compiled with -rdc=true. usage: device_launch_costs
// [most children, 65536]
#include <cstdint>

#include "probe.h"

namespace {

using probe::DeviceTime;
using probe::Median;
using probe::Print;

constexpr int kRuns = 21;

enum Kind { kNull, kOwn, kForget, kKinds };
constexpr const char* kNames[] = {"null", "own", "forget"};

__device__ std::uint64_t Now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
  return now;
}

__global__ void Nothing() {}
__global__ void Begin(std::uint64_t* begun) { *begun = Now(); }
struct Wide {
  int words[64];
};
__global__ void NothingOf(Wide) {}

/// Cycles of a warp around its launches: [0] streams are made, [1] the launch.
template <class Launch>
__device__ void Timed(int lanes, Kind kind, long long* cycles, const Launch& launch) {
  if (threadIdx.x >= lanes) return;
  const unsigned mask = lanes == 32 ? 0xFFFFFFFFu : (1u << lanes) - 1;
  cudaStream_t stream = nullptr;
  __syncwarp(mask);
  const long long before = clock64();
  if (kind == kOwn) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  __syncwarp(mask);
  const long long made = clock64();
  if (kind == kForget) stream = cudaStreamFireAndForget;
  launch(stream);
  __syncwarp(mask);
  const long long launched = clock64();
  if (kind == kOwn) cudaStreamDestroy(stream);
  if (threadIdx.x == 0) cycles[0] = made - before, cycles[1] = launched - made;
}

__global__ void Call(int lanes, Kind kind, long long* cycles) {
  Timed(lanes, kind, cycles, [](cudaStream_t stream) { Nothing<<<1, 32, 0, stream>>>(); });
}
__global__ void CallWide(int lanes, Kind kind, long long* cycles) {
  Timed(lanes, kind, cycles, [](cudaStream_t stream) { NothingOf<<<1, 32, 0, stream>>>(Wide{}); });
}
/// Cycles of a warp that takes parameter buffers, [0], and launches, [1], each with one call of the device runtime's.
__global__ void Parts(int lanes, long long* cycles) {
  if (threadIdx.x >= lanes) return;
  const unsigned mask = lanes == 32 ? 0xFFFFFFFFu : (1u << lanes) - 1;
  __syncwarp(mask);
  const long long before = clock64();
  void* const buffer = cudaGetParameterBufferV2(reinterpret_cast<void*>(&Nothing), dim3(1), dim3(32), 0);
  __syncwarp(mask);
  const long long taken = clock64();
  cudaLaunchDeviceV2(buffer, cudaStreamFireAndForget);
  __syncwarp(mask);
  const long long launched = clock64();
  if (threadIdx.x == 0) cycles[0] = taken - before, cycles[1] = launched - taken;
}
/// times: before the call, behind it, the child's first instruction.
__global__ void Delay(Kind kind, std::uint64_t* times) {
  cudaStream_t stream = nullptr;
  if (kind == kOwn) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (kind == kForget) stream = cudaStreamFireAndForget;
  times[0] = Now();
  Begin<<<1, 1, 0, stream>>>(times + 2);
  times[1] = Now();
  if (kind == kOwn) cudaStreamDestroy(stream);
}
__global__ void Many(int children, Kind kind) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= children) return;
  cudaStream_t stream = nullptr;
  if (kind == kOwn) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (kind == kForget) stream = cudaStreamFireAndForget;
  Nothing<<<1, 32, 0, stream>>>();
  if (kind == kOwn) cudaStreamDestroy(stream);
}
/// One behind the other: each launches the next.
__global__ void Chain(int left, bool tail) {
  if (left == 0) return;
  if (tail) Chain<<<1, 1, 0, cudaStreamTailLaunch>>>(left - 1, tail);
  else Chain<<<1, 1, 0, cudaStreamFireAndForget>>>(left - 1, tail);
}

void Calls() {
  long long* cycles;
  PROBE(cudaMallocManaged(&cycles, 2 * sizeof *cycles));
  for (int kind = 0; kind < kKinds; ++kind) {
    for (const int lanes : {1, 2, 4, 8, 16, 24, 32}) {
      std::vector<double> made, narrow, wide;
      for (int run = 0; run < kRuns; ++run) {
        Call<<<1, 32>>>(lanes, static_cast<Kind>(kind), cycles);
        PROBE(cudaDeviceSynchronize());
        made.push_back(static_cast<double>(cycles[0]));
        narrow.push_back(static_cast<double>(cycles[1]));
        CallWide<<<1, 32>>>(lanes, static_cast<Kind>(kind), cycles);
        PROBE(cudaDeviceSynchronize());
        wide.push_back(static_cast<double>(cycles[1]));
      }
      const std::string name = std::string(".") + kNames[kind] + "." + std::to_string(lanes);
      if (kind == kOwn) Print("stream_cycles" + name, Median(made));
      Print("call_cycles" + name, Median(narrow));
      Print("call_256_bytes_cycles" + name, Median(wide));
    }
  }
  for (const int lanes : {1, 2, 4, 8, 16, 24, 32}) {
    std::vector<double> buffers, launches;
    for (int run = 0; run < kRuns; ++run) {
      Parts<<<1, 32>>>(lanes, cycles);
      PROBE(cudaDeviceSynchronize());
      buffers.push_back(static_cast<double>(cycles[0]));
      launches.push_back(static_cast<double>(cycles[1]));
    }
    Print("buffer_cycles." + std::to_string(lanes), Median(buffers));
    Print("launch_cycles." + std::to_string(lanes), Median(launches));
  }
  PROBE(cudaFree(cycles));
}

void Delays() {
  std::uint64_t* times;
  PROBE(cudaMallocManaged(&times, 3 * sizeof *times));
  for (int kind = 0; kind < kKinds; ++kind) {
    std::vector<double> call, begin;
    for (int run = 0; run < kRuns; ++run) {
      Delay<<<1, 1>>>(static_cast<Kind>(kind), times);
      PROBE(cudaDeviceSynchronize());
      call.push_back((times[1] - times[0]) / 1e3);
      begin.push_back((times[2] - times[0]) / 1e3);
    }
    Print(std::string("call_us.") + kNames[kind], Median(call));
    Print(std::string("call_to_begin_us.") + kNames[kind], Median(begin));
  }
  PROBE(cudaFree(times));
}

void Rates(int most) {
  PROBE(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, most + 1024));
  for (int kind = 0; kind < kKinds; ++kind) {
    for (int children = 1; children <= most; children *= 16) {
      const double us =
          DeviceTime(5, nullptr, [&] { Many<<<(children + 127) / 128, 128>>>(children, static_cast<Kind>(kind)); });
      PROBE(cudaGetLastError());
      Print(std::string("children_us.") + kNames[kind] + "." + std::to_string(children), us);
    }
  }
  std::vector<cudaStream_t> streams(32);
  for (cudaStream_t& stream : streams) PROBE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int children = 1; children <= most; children *= 16) {
    for (const int over : {1, 32}) {
      const double us = probe::MedianHostTime(5, [&] {
        for (int i = 0; i < children; ++i) Nothing<<<1, 32, 0, streams[i % over]>>>();
        PROBE(cudaDeviceSynchronize());
      });
      Print("host_us.streams_" + std::to_string(over) + "." + std::to_string(children), us);
    }
  }
  for (const bool tail : {false, true}) {
    const double few = DeviceTime(5, nullptr, [&] { Chain<<<1, 1>>>(2, tail); });
    const double more = DeviceTime(5, nullptr, [&] { Chain<<<1, 1>>>(22, tail); });
    Print(tail ? "chain_link_us.tail" : "chain_link_us.forget", (more - few) / 20);
  }
}

/// Launches by the host from a module whose kernels launch kernels: of one that does not, of one that could, by turns.
void HostLaunches(const char* when) {
  const std::string name = std::string("host_launch_and_wait.") + when;
  const auto wait = [] { PROBE(cudaDeviceSynchronize()); };
  Print(name + ".plain", probe::MedianHostTime(51, [&] { Nothing<<<1, 32>>>(), wait(); }));
  Print(name + ".parent", probe::MedianHostTime(51, [&] { Call<<<1, 32>>>(0, kForget, nullptr), wait(); }));
  Print(name + ".by_turns", probe::MedianHostTime(51, [&] {
          Nothing<<<1, 32>>>(), wait();
          Call<<<1, 32>>>(0, kForget, nullptr), wait();
        }));
  Print(name + ".device_us", DeviceTime(51, nullptr, [&] { Call<<<1, 32>>>(0, kForget, nullptr); }));
}

}  // namespace

int main(int argc, char** argv) {
  const int most = argc > 1 ? std::atoi(argv[1]) : 65536;
  int khz = 0;
  PROBE(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
  Print("clock_mhz", khz / 1e3);
  HostLaunches("before");
  Calls();
  Delays();
  Rates(most);
  HostLaunches("with_room_for_many");
}
