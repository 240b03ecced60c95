// What graphs of copies and kernels cost, by their nodes: chains of (copy in, empty kernel, copy out), of two of the
// three, or of one, side by side. Microseconds for each node: "instantiate" and "upload" of the host; "first_call" and
// "again_call" of the call that launches, the first time without an upload before it, and later; "first" and "again"
// between events around the launch, "uploaded" the first time behind an upload. usage: graph_costs [nodes in all, 960]
#include "probe.h"

namespace {

using probe::HostTime;
using probe::Print;

__global__ void Nothing() {}

constexpr std::size_t kMost = 65536;

struct Chains {
  const char* name;
  bool in, kernel, out;
  int nodes() const { return in + kernel + out; }
};
constexpr Chains kChains[] = {{"kernels", false, true, false},   {"to_device", true, false, false},
                              {"to_host", false, false, true},   {"in_kernel", true, true, false},
                              {"kernel_out", false, true, true}, {"tasks", true, true, true}};

class Graphs {
 public:
  Graphs() {
    PROBE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    PROBE(cudaEventCreate(&begin_));
    PROBE(cudaEventCreate(&end_));
    PROBE(cudaMallocHost(&host_, 2 * kMost));
    PROBE(cudaMalloc(&device_, 2 * kMost));
  }
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  ~Graphs() {
    PROBE(cudaFree(device_));
    PROBE(cudaFreeHost(host_));
    PROBE(cudaEventDestroy(begin_));
    PROBE(cudaEventDestroy(end_));
    PROBE(cudaStreamDestroy(stream_));
  }

  void Measure(const Chains& chains, std::size_t bytes, int branches, int all) {
    const int links = all / chains.nodes(), nodes = links * chains.nodes();
    std::vector<double> instantiate, upload, first_call, again_call, first, again, uploaded;
    for (int run = 0; run < 5; ++run) {
      for (const bool uploads : {false, true}) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        PROBE(cudaGraphCreate(&graph, 0));
        Fill(graph, chains, bytes, branches, links);
        instantiate.push_back(HostTime([&] { PROBE(cudaGraphInstantiate(&exec, graph, 0)); }) / nodes);
        if (uploads) {
          upload.push_back(HostTime([&] {
                             PROBE(cudaGraphUpload(exec, stream_));
                             PROBE(cudaStreamSynchronize(stream_));
                           }) /
                           nodes);
        }
        Launch(exec, nodes, uploads ? nullptr : &first_call, uploads ? &uploaded : &first);
        Launch(exec, nodes, &again_call, &again);
        PROBE(cudaGraphExecDestroy(exec));
        PROBE(cudaGraphDestroy(graph));
      }
    }
    std::string name = std::string(".") + chains.name;
    if (chains.in || chains.out) name += "." + std::to_string(bytes);
    name += ".branches_" + std::to_string(branches);
    Print("instantiate" + name, probe::Median(instantiate));
    Print("upload" + name, probe::Median(upload));
    Print("first_call" + name, probe::Median(first_call));
    Print("again_call" + name, probe::Median(again_call));
    Print("first" + name, probe::Median(first));
    Print("uploaded" + name, probe::Median(uploaded));
    Print("again" + name, probe::Median(again));
  }

 private:
  void Fill(cudaGraph_t graph, const Chains& chains, std::size_t bytes, int branches, int links) {
    cudaKernelNodeParams kernel = {};
    kernel.func = reinterpret_cast<void*>(&Nothing);
    kernel.gridDim = dim3(1), kernel.blockDim = dim3(128);
    std::vector<cudaGraphNode_t> last(static_cast<std::size_t>(branches), nullptr);
    for (int link = 0; link < links; ++link) {
      cudaGraphNode_t& at = last[static_cast<std::size_t>(link % branches)];
      const auto add = [&](const auto& node) {
        const cudaGraphNode_t before = at;
        PROBE(node(&at, &before, before == nullptr ? 0 : 1));
      };
      if (chains.in) {
        add([&](cudaGraphNode_t* made, const cudaGraphNode_t* before, std::size_t count) {
          return cudaGraphAddMemcpyNode1D(made, graph, before, count, device_, host_, bytes, cudaMemcpyHostToDevice);
        });
      }
      if (chains.kernel) {
        add([&](cudaGraphNode_t* made, const cudaGraphNode_t* before, std::size_t count) {
          return cudaGraphAddKernelNode(made, graph, before, count, &kernel);
        });
      }
      if (chains.out) {
        add([&](cudaGraphNode_t* made, const cudaGraphNode_t* before, std::size_t count) {
          return cudaGraphAddMemcpyNode1D(made, graph, before, count, host_ + kMost, device_ + kMost, bytes,
                                          cudaMemcpyDeviceToHost);
        });
      }
    }
  }

  void Launch(cudaGraphExec_t exec, int nodes, std::vector<double>* call, std::vector<double>* device) {
    PROBE(cudaDeviceSynchronize());
    PROBE(cudaEventRecord(begin_, stream_));
    const double us = HostTime([&] { PROBE(cudaGraphLaunch(exec, stream_)); });
    PROBE(cudaEventRecord(end_, stream_));
    PROBE(cudaStreamSynchronize(stream_));
    float ms = 0;
    PROBE(cudaEventElapsedTime(&ms, begin_, end_));
    if (call != nullptr) call->push_back(us / nodes);
    device->push_back(ms * 1000.0 / nodes);
  }

  cudaStream_t stream_{};
  cudaEvent_t begin_{}, end_{};
  char *host_ = nullptr, *device_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 960;
  Nothing<<<1, 128>>>();
  PROBE(cudaDeviceSynchronize());
  Graphs graphs;
  for (const Chains& chains : kChains) {
    for (const int branches : {1, 32}) {
      for (const std::size_t bytes : {std::size_t{1024}, std::size_t{8192}, kMost}) {
        graphs.Measure(chains, bytes, branches, nodes);
        if (!chains.in && !chains.out) break;
      }
    }
  }
}
