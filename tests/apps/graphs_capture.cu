// Graphs from stream capture: fork and join over streams, repeated launches, copies and host functions inside, update,
// clone.
#include "spin.h"

__global__ void Scale(float* v, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = v[i] * factor + 1;
}
__global__ void Sum(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
int g_host_calls = 0;

cudaGraph_t Capture(cudaStream_t main_stream, cudaStream_t side, float* a, float* b, float* c, const float* host, int n,
                    float factor) {
  cudaEvent_t fork, join;
  CU(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CU(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CU(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
  CU(cudaMemcpyAsync(a, host, n * sizeof(float), cudaMemcpyHostToDevice, main_stream));
  CU(cudaEventRecord(fork, main_stream));
  CU(cudaStreamWaitEvent(side, fork, 0));
  CU(cudaMemsetAsync(b, 0, n * sizeof(float), side));
  Scale<<<(n + 63) / 64, 64, 0, side>>>(b, 2, n);
  CU(cudaEventRecord(join, side));
  Scale<<<(n + 63) / 64, 64, 0, main_stream>>>(a, factor, n);
  CU(cudaStreamWaitEvent(main_stream, join, 0));
  Sum<<<(n + 63) / 64, 64, 0, main_stream>>>(a, b, c, n);
  CU(cudaLaunchHostFunc(
      main_stream, [](void*) { ++g_host_calls; }, nullptr));
  cudaStreamCaptureStatus status;
  CU(cudaStreamIsCapturing(main_stream, &status));
  True("capturing", status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  CU(cudaStreamEndCapture(main_stream, &graph));
  CU(cudaEventDestroy(fork));
  CU(cudaEventDestroy(join));
  return graph;
}

/// A stream that joined and led back may be destroyed before the capture ends.
static void DestroyJoinedStream(cudaStream_t stream, float* a, int n) {
  cudaStream_t side;
  cudaEvent_t fork, join;
  CU(cudaStreamCreate(&side));
  CU(cudaEventCreate(&fork));
  CU(cudaEventCreate(&join));
  CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CU(cudaEventRecord(fork, stream));
  CU(cudaStreamWaitEvent(side, fork, 0));
  CU(cudaMemsetAsync(a, 0, n * sizeof(float), side));
  CU(cudaEventRecord(join, side));
  CU(cudaStreamWaitEvent(stream, join, 0));
  CU(cudaStreamDestroy(side));
  CU(cudaEventDestroy(fork));
  CU(cudaEventDestroy(join));
  cudaGraph_t graph = nullptr;
  CU(cudaStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  CU(cudaGraphGetNodes(graph, nullptr, &nodes));
  Same("nodes of a destroyed stream", 0, nodes, std::size_t{1});
  CU(cudaGraphDestroy(graph));
}

int main() {
  const int n = 1000;
  float* host = nullptr;
  CU(cudaMallocHost(&host, n * sizeof(float)));
  for (int i = 0; i < n; ++i) host[i] = i;
  Buffer<float> a(n), b(n), c(n);
  cudaStream_t stream, side;
  CU(cudaStreamCreate(&stream));
  CU(cudaStreamCreate(&side));
  cudaGraph_t graph = Capture(stream, side, a, b, c, host, n, 3);
  Same("nothing ran", 0, c.Read()[5], 0.0f);
  std::size_t nodes = 0, edges = 0;
  CU(cudaGraphGetNodes(graph, nullptr, &nodes));
  CU(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  Same("nodes", 0, nodes, std::size_t{6}), Same("edges", 0, edges, std::size_t{6});
  cudaGraphExec_t exec = nullptr;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    host[7] = round * 100;
    CU(cudaGraphLaunch(exec, stream));
    CU(cudaStreamSynchronize(stream));
    const auto got = c.Read();
    for (int i = 0; i < n; ++i) Same("graph", i, got[i], host[i] * 3 + 1 + 1);
  }
  Same("host calls", 0, g_host_calls, 3);

  // The same topology with another factor updates the executable.
  cudaGraph_t other = Capture(stream, side, a, b, c, host, n, 5);
  cudaGraphExecUpdateResultInfo info = {};
  CU(cudaGraphExecUpdate(exec, other, &info));
  True("update", info.result == cudaGraphExecUpdateSuccess);
  CU(cudaGraphLaunch(exec, stream));
  CU(cudaGraphLaunch(exec, stream));
  CU(cudaStreamSynchronize(stream));
  const auto updated = c.Read();
  for (int i = 0; i < n; ++i) Same("updated", i, updated[i], host[i] * 5 + 1 + 1);

  cudaGraph_t clone = nullptr;
  CU(cudaGraphClone(&clone, graph));
  CU(cudaGraphDestroy(graph));
  cudaGraphExec_t cloned = nullptr;
  CU(cudaGraphInstantiate(&cloned, clone, 0));
  CU(cudaGraphLaunch(cloned, nullptr));
  CU(cudaDeviceSynchronize());
  Same("clone", 9, c.Read()[9], 9.0f * 3 + 2);

  // What may not be captured is an error and invalidates the capture.
  CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Error("synchronize while capturing", cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t broken = nullptr;
  Error("invalidated", cudaStreamEndCapture(stream, &broken), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  True("no graph", broken == nullptr);
  DestroyJoinedStream(stream, a, n);
  CU(cudaGraphExecDestroy(exec));
  CU(cudaGraphExecDestroy(cloned));
  return Verdict();
}
