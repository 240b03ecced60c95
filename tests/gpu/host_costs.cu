// What the host's calls cost, how long works in streams and graphs take to begin, how many kernels run side by side,
// and how fast a GPU begins CTAs. usage: host_costs [kernels in a row, 1000]
#include "probe.h"

namespace {

using probe::DeviceTime;
using probe::HostTime;
using probe::MedianHostTime;
using probe::Print;

constexpr int kRuns = 21;

__global__ void Nothing() {}
__global__ void Spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

void Calls(int row) {
  const auto settle = [] { PROBE(cudaDeviceSynchronize()); };
  Print("launch_call", MedianHostTime(
                           2001, [] { Nothing<<<1, 32>>>(); }, settle));
  std::vector<double> bursts;
  for (int run = 0; run < kRuns; ++run) {
    bursts.push_back(HostTime([&] {
                       for (int i = 0; i < 200; ++i) Nothing<<<1, 32>>>();
                     }) /
                     200);
    settle();
  }
  Print("launch_call_in_burst", probe::Median(bursts));
  Print("launch_and_wait", MedianHostTime(501, [&] {
          Nothing<<<1, 32>>>();
          PROBE(cudaStreamSynchronize(nullptr));
        }));
  Print("wait_for_nothing", MedianHostTime(501, [] { PROBE(cudaStreamSynchronize(nullptr)); }));
  cudaEvent_t event;
  PROBE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  Print("event_record_call", MedianHostTime(
                                 501, [&] { PROBE(cudaEventRecord(event)); }, settle));
  Print("event_query_call", MedianHostTime(501, [&] { PROBE(cudaEventQuery(event)); }));
  Print("stream_query_call", MedianHostTime(501, [&] { PROBE(cudaStreamQuery(nullptr)); }));
  Print("row_of_kernels_each", DeviceTime(9, nullptr, [&] {
                                 for (int i = 0; i < row; ++i) Nothing<<<1, 32>>>();
                               }) / row);
}

void Copies() {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  char *host, *device, *other;
  std::vector<char> pageable(kMost);
  PROBE(cudaMallocHost(&host, kMost));
  PROBE(cudaMalloc(&device, kMost));
  PROBE(cudaMalloc(&other, kMost));
  const auto settle = [] { PROBE(cudaDeviceSynchronize()); };
  for (std::size_t bytes = 4; bytes <= kMost; bytes *= 8) {
    const int runs = bytes > (std::size_t{1} << 20) ? 5 : 51;
    const std::string size = "." + std::to_string(bytes);
    const auto both = [&](const std::string& name, void* to, const void* from, cudaMemcpyKind kind) {
      Print(name + "_call" + size, MedianHostTime(
                                       runs, [&] { PROBE(cudaMemcpyAsync(to, from, bytes, kind)); }, settle));
      Print(name + "_and_wait" + size, MedianHostTime(runs, [&] {
              PROBE(cudaMemcpyAsync(to, from, bytes, kind));
              PROBE(cudaStreamSynchronize(nullptr));
            }));
      Print(name + "_device" + size, DeviceTime(runs, nullptr, [&] { PROBE(cudaMemcpyAsync(to, from, bytes, kind)); }));
    };
    both("to_device", device, host, cudaMemcpyHostToDevice);
    both("to_host", host, device, cudaMemcpyDeviceToHost);
    both("on_device", other, device, cudaMemcpyDeviceToDevice);
    Print("pageable_to_device" + size,
          MedianHostTime(runs, [&] { PROBE(cudaMemcpy(device, pageable.data(), bytes, cudaMemcpyHostToDevice)); }));
    Print("pageable_to_host" + size,
          MedianHostTime(runs, [&] { PROBE(cudaMemcpy(pageable.data(), device, bytes, cudaMemcpyDeviceToHost)); }));
  }
  // Many small copies in one stream: what each takes of the link.
  constexpr int kCopies = 500;
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{65536}}) {
    Print("row_of_copies_each." + std::to_string(bytes),
          DeviceTime(5, nullptr, [&] {
            for (int i = 0; i < kCopies; ++i) PROBE(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice));
          }) / kCopies);
  }
  PROBE(cudaFreeHost(host));
  PROBE(cudaFree(device));
  PROBE(cudaFree(other));
}

/// Kernels that take a while, each in a stream of its own: the time of all, by how many there are, says how many run
/// side by side.
void Concurrency(int mhz) {
  constexpr int kMost = 512;
  constexpr double kEachUs = 200;
  std::vector<cudaStream_t> streams(kMost);
  for (cudaStream_t& stream : streams) PROBE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int kernels = 1; kernels <= kMost; kernels *= 2) {
    const double us = MedianHostTime(5, [&] {
      for (int i = 0; i < kernels; ++i) Spin<<<1, 32, 0, streams[i]>>>(static_cast<long long>(kEachUs * mhz));
      PROBE(cudaDeviceSynchronize());
    });
    Print("kernels_of_200_us." + std::to_string(kernels), us);
  }
  for (const int over : {1, 2, 8, 32, 128}) {
    constexpr int kKernels = 4096;
    const double us = MedianHostTime(5, [&] {
      for (int i = 0; i < kKernels; ++i) Nothing<<<1, 128, 0, streams[i % over]>>>();
      PROBE(cudaDeviceSynchronize());
    });
    Print("empty_kernels_each.streams_" + std::to_string(over), us / kKernels);
  }
  for (cudaStream_t stream : streams) PROBE(cudaStreamDestroy(stream));
}

/// Kernels in a graph: one behind the other, or `branches` rows side by side.
void Graphs(int row) {
  cudaStream_t stream;
  PROBE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const int branches : {1, 8, 32, 128}) {
    cudaGraph_t graph;
    PROBE(cudaGraphCreate(&graph, 0));
    std::vector<cudaGraphNode_t> last(branches);
    cudaKernelNodeParams node = {};
    node.func = reinterpret_cast<void*>(&Nothing);
    node.gridDim = dim3(1), node.blockDim = dim3(128);
    for (int i = 0; i < row; ++i) {
      cudaGraphNode_t* before = &last[i % branches];
      PROBE(cudaGraphAddKernelNode(before, graph, before, i < branches ? 0 : 1, &node));
    }
    cudaGraphExec_t exec;
    const double make = HostTime([&] { PROBE(cudaGraphInstantiate(&exec, graph, 0)); });
    const std::string name = ".branches_" + std::to_string(branches);
    PROBE(cudaGraphLaunch(exec, stream));
    PROBE(cudaStreamSynchronize(stream));
    Print("graph_instantiate_each" + name, make / row);
    Print("graph_launch_call_each" + name,
          MedianHostTime(
              9, [&] { PROBE(cudaGraphLaunch(exec, stream)); }, [&] { PROBE(cudaStreamSynchronize(stream)); }) /
              row);
    Print("graph_kernels_each" + name, DeviceTime(9, stream, [&] { PROBE(cudaGraphLaunch(exec, stream)); }) / row);
    PROBE(cudaGraphExecDestroy(exec));
    PROBE(cudaGraphDestroy(graph));
  }
  PROBE(cudaStreamDestroy(stream));
}

void Ctas() {
  for (const int threads : {32, 128, 512, 1024}) {
    for (const int ctas : {132, 13200, 132000}) {
      const double us = DeviceTime(9, nullptr, [&] { Nothing<<<ctas, threads>>>(); });
      Print("empty_ctas." + std::to_string(threads) + "." + std::to_string(ctas), us);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int row = argc > 1 ? std::atoi(argv[1]) : 1000;
  int khz = 0;
  PROBE(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
  Print("clock_mhz", khz / 1e3);
  Spin<<<1, 32>>>(khz * 100LL);  // the clocks rise
  PROBE(cudaDeviceSynchronize());
  Calls(row);
  Copies();
  Concurrency(khz / 1000);
  Graphs(row);
  Ctas();
}
