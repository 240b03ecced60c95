// Changes of an executable graph while launches of it are queued or run: each launch does what the graph was when it
// was launched, also in bodies that run later.
#include "spin.h"

__global__ void Add(int* counter, int amount) { *counter += amount; }
__global__ void CountDown(cudaGraphConditionalHandle condition, int* left) {
  *left -= 1;
  cudaGraphSetConditional(condition, *left > 0);
}
__global__ void Spin(long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

template <typename... Args>
cudaGraphNode_t AddKernel(cudaGraph_t graph, cudaGraphNode_t after, void (*kernel)(Args...), Args... args) {
  void* pointers[] = {&args...};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(kernel);
  params.gridDim = dim3(1), params.blockDim = dim3(1);
  params.kernelParams = pointers;
  cudaGraphNode_t node;
  CU(cudaGraphAddKernelNode(&node, graph, after ? &after : nullptr, after ? 1 : 0, &params));
  return node;
}

// As in the body of a while loop, which is submitted turn by turn.
struct Loop {
  explicit Loop(int amount, int* counter, int* left) {
    CU(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle condition;
    CU(cudaGraphConditionalHandleCreate(&condition, graph, 1, cudaGraphCondAssignDefault));
    const auto spin = AddKernel(graph, nullptr, Spin, 1'000'000LL);
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = condition;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    cudaGraphNode_t loop;
    CU(cudaGraphAddNode(&loop, graph, &spin, nullptr, 1, &params));
    const auto add = AddKernel(params.conditional.phGraph_out[0], nullptr, Add, counter, amount);
    AddKernel(params.conditional.phGraph_out[0], add, CountDown, condition, left);
    AddKernel(graph, loop, Add, counter, 1000 * amount);
  }
  ~Loop() { CU(cudaGraphDestroy(graph)); }
  cudaGraph_t graph = nullptr;
};

void Loops() {
  constexpr int kTurns = 10;
  for (int round = 0; round < 6; ++round) {
    Buffer<int> counter(1);
    Buffer<int> left(std::vector<int>{kTurns});
    Loop one(1, counter, left), hundred(100, counter, left);
    cudaGraphExec_t exec;
    CU(cudaGraphInstantiate(&exec, one.graph, 0));
    CU(cudaGraphLaunch(exec, nullptr));
    if (round % 2 == 1) CU(cudaMemsetAsync(left, 0, sizeof(int), nullptr));  // before the next launch: one turn
    cudaGraphExecUpdateResultInfo info;
    CU(cudaGraphExecUpdate(exec, hundred.graph, &info));
    if (round % 2 == 1) CU(cudaGraphLaunch(exec, nullptr));
    CU(cudaGraphExecDestroy(exec));
    CU(cudaDeviceSynchronize());
    Same("loop", round, counter.Read()[0], kTurns + 1000 + (round % 2 == 1 ? 100 + 100'000 : 0));
  }
}

// Parameters of a node, a node that is switched off, the graph of a child node: each changed between launches that are
// queued.
void QueuedLaunches() {
  Buffer<int> digits(1), other(1);
  cudaGraph_t graph, child, new_child;
  CU(cudaGraphCreate(&graph, 0));
  CU(cudaGraphCreate(&child, 0));
  CU(cudaGraphCreate(&new_child, 0));
  AddKernel(child, nullptr, AppendDigit, static_cast<int*>(other), 1);
  AddKernel(new_child, nullptr, AppendDigit, static_cast<int*>(other), 2);
  const auto digit = AddKernel(graph, nullptr, AppendDigit, static_cast<int*>(digits), 1);
  cudaGraphNode_t child_node;
  CU(cudaGraphAddChildGraphNode(&child_node, graph, &digit, 1, child));
  cudaGraphExec_t exec;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  Spin<<<1, 1>>>(5'000'000);
  int want = 0;
  for (int i = 1; i <= 8; ++i) {
    int* out = digits;
    void* pointers[] = {&out, &i};
    cudaKernelNodeParams params = {};
    params.func = reinterpret_cast<void*>(AppendDigit);
    params.gridDim = dim3(1), params.blockDim = dim3(1);
    params.kernelParams = pointers;
    CU(cudaGraphExecKernelNodeSetParams(exec, digit, &params));
    CU(cudaGraphNodeSetEnabled(exec, digit, i % 3 != 0));
    if (i == 4) CU(cudaGraphExecChildGraphNodeSetParams(exec, child_node, new_child));
    CU(cudaGraphLaunch(exec, nullptr));
    if (i % 3 != 0) want = want * 10 + i;
  }
  CU(cudaDeviceSynchronize());
  Same("digits", 0, digits.Read()[0], want);
  Same("children", 0, other.Read()[0], 11122222);
  // An update that is refused changes nothing.
  cudaGraph_t shorter;
  CU(cudaGraphCreate(&shorter, 0));
  AddKernel(shorter, nullptr, AppendDigit, static_cast<int*>(digits), 9);
  cudaGraphExecUpdateResultInfo info;
  Error("another shape", cudaGraphExecUpdate(exec, shorter, &info), cudaErrorGraphExecUpdateFailure);
  CU(cudaMemset(digits, 0, sizeof(int)));
  CU(cudaGraphLaunch(exec, nullptr));
  CU(cudaDeviceSynchronize());
  Same("refused", 0, digits.Read()[0], 8);
  CU(cudaGraphExecDestroy(exec));
  for (const cudaGraph_t one : {graph, child, new_child, shorter}) CU(cudaGraphDestroy(one));
}

// A stream takes a bounded number of nodes in advance: when so many launches are through, most nodes have run.
void BoundedQueue() {
  constexpr int kNodes = 100, kLaunches = 200, kDepth = 4096;
  int* count = nullptr;
  CU(cudaHostAlloc(&count, sizeof(int), cudaHostAllocMapped));
  *count = 0;
  cudaGraph_t graph;
  CU(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t last = nullptr;
  for (int i = 0; i < kNodes; ++i) last = AddKernel(graph, last, Add, count, 1);
  cudaGraphExec_t exec;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  Spin<<<1, 1>>>(20'000'000);
  for (int i = 0; i < kLaunches; ++i) CU(cudaGraphLaunch(exec, nullptr));
  True("bounded queue", *static_cast<volatile int*>(count) >= kNodes * kLaunches - kDepth);
  CU(cudaDeviceSynchronize());
  Same("all ran", 0, *count, kNodes * kLaunches);
  CU(cudaGraphExecDestroy(exec));
  CU(cudaGraphDestroy(graph));
  CU(cudaFreeHost(count));
}

int main() {
  Loops();
  QueuedLaunches();
  BoundedQueue();
  return Verdict();
}
