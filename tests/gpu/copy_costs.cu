// How long small copies take an engine from one another: all copies wait behind a kernel that holds until the host has
// given them all, so the time from then on is the device's alone. "to_device.BYTES.STREAMS" and so on are microseconds
// a copy; "task" is a copy in, a kernel of 128 threads and a copy out in one of the streams. usage: copy_costs [copies
// in all, 960]
#include "probe.h"

namespace {

using probe::Print;

__global__ void Nothing() {}
/// Stays until the host has written a number that is not 0.
__global__ void Hold(const volatile unsigned* open) {
  while (*open == 0) {
  }
}

class Streams {
 public:
  explicit Streams(int count) : streams_(static_cast<std::size_t>(count)), ends_(streams_.size()) {
    PROBE(cudaHostAlloc(&open_, sizeof *open_, cudaHostAllocMapped));
    PROBE(cudaStreamCreateWithFlags(&hold_, cudaStreamNonBlocking));
    PROBE(cudaEventCreate(&begin_));
    PROBE(cudaEventCreate(&end_));
    for (cudaStream_t& stream : streams_) PROBE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t& event : ends_) PROBE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  ~Streams() {
    for (cudaStream_t stream : streams_) PROBE(cudaStreamDestroy(stream));
    for (cudaEvent_t event : ends_) PROBE(cudaEventDestroy(event));
    PROBE(cudaEventDestroy(begin_));
    PROBE(cudaEventDestroy(end_));
    PROBE(cudaStreamDestroy(hold_));
    PROBE(cudaFreeHost(const_cast<unsigned*>(open_)));
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// Microseconds of the device for `count` calls of `work`(number, stream), which take turns among the streams.
  template <class Work>
  double Time(int count, const Work& work) {
    std::vector<double> times;
    for (int run = 0; run < 7; ++run) {
      *open_ = 0;
      Hold<<<1, 1, 0, hold_>>>(open_);
      PROBE(cudaEventRecord(begin_, hold_));
      for (cudaStream_t stream : streams_) PROBE(cudaStreamWaitEvent(stream, begin_, 0));
      for (int i = 0; i < count; ++i) work(i, streams_[static_cast<std::size_t>(i) % streams_.size()]);
      for (std::size_t i = 0; i < streams_.size(); ++i) {
        PROBE(cudaEventRecord(ends_[i], streams_[i]));
        PROBE(cudaStreamWaitEvent(hold_, ends_[i], 0));
      }
      PROBE(cudaEventRecord(end_, hold_));
      *open_ = 1;
      PROBE(cudaStreamSynchronize(hold_));
      float ms = 0;
      PROBE(cudaEventElapsedTime(&ms, begin_, end_));
      times.push_back(ms * 1000.0);
    }
    return probe::Median(times);
  }

 private:
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> ends_;
  cudaStream_t hold_{};
  cudaEvent_t begin_{}, end_{};
  volatile unsigned* open_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  // A stream holds about a thousand calls before the host must wait.
  const int copies = argc > 1 ? std::atoi(argv[1]) : 960;
  constexpr std::size_t kMost = 65536;
  char *host, *device;
  PROBE(cudaMallocHost(&host, 2 * kMost));
  PROBE(cudaMalloc(&device, 2 * kMost));
  Nothing<<<1, 128>>>();
  PROBE(cudaDeviceSynchronize());
  for (const int count : {1, 2, 8, 32}) {
    Streams streams(count);
    const std::string in = ".streams_" + std::to_string(count);
    Print("kernels" + in,
          streams.Time(copies, [](int, cudaStream_t stream) { Nothing<<<1, 128, 0, stream>>>(); }) / copies);
    for (const std::size_t bytes :
         {std::size_t{4}, std::size_t{256}, std::size_t{1024}, std::size_t{4096}, std::size_t{16384}, kMost}) {
      const std::string name = "." + std::to_string(bytes) + in;
      const auto to_device = [&](cudaStream_t stream) {
        PROBE(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
      };
      const auto to_host = [&](cudaStream_t stream) {
        PROBE(cudaMemcpyAsync(host + kMost, device + kMost, bytes, cudaMemcpyDeviceToHost, stream));
      };
      Print("to_device" + name, streams.Time(copies, [&](int, cudaStream_t stream) { to_device(stream); }) / copies);
      Print("to_host" + name, streams.Time(copies, [&](int, cudaStream_t stream) { to_host(stream); }) / copies);
      const auto task = [&](int, cudaStream_t stream) {
        to_device(stream);
        Nothing<<<1, 128, 0, stream>>>();
        to_host(stream);
      };
      const int tasks = copies / 3;
      Print("task" + name, streams.Time(tasks, task) / tasks);
    }
  }
  PROBE(cudaFreeHost(host));
  PROBE(cudaFree(device));
}
