// Conditional nodes: if with and without else, while, switch, nested; values set by kernels; defaults applied on every
// launch.
#include "app.h"

__global__ void Set(cudaGraphConditionalHandle condition, unsigned value) { cudaGraphSetConditional(condition, value); }
__global__ void SetFrom(cudaGraphConditionalHandle condition, const unsigned* value) {
  cudaGraphSetConditional(condition, *value);
}
__global__ void Add(int* counter, int amount) { *counter += amount; }
// Counts down in the body of a while: goes on as long as something is left.
__global__ void CountDown(cudaGraphConditionalHandle condition, int* left, int* rounds) {
  *rounds += 1;
  *left -= 1;
  cudaGraphSetConditional(condition, *left > 0);
}

template <typename... Args>
cudaGraphNode_t AddKernel(cudaGraph_t graph, cudaGraphNode_t after, void (*kernel)(Args...), Args... args) {
  void* pointers[] = {&args...};
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = reinterpret_cast<void*>(kernel);
  params.kernel.gridDim = dim3(1), params.kernel.blockDim = dim3(1);
  params.kernel.kernelParams = pointers;
  cudaGraphNode_t node;
  CU(cudaGraphAddNode(&node, graph, after ? &after : nullptr, nullptr, after ? 1 : 0, &params));
  return node;
}

struct Conditional {
  cudaGraphNode_t node;
  std::vector<cudaGraph_t> bodies;
};
Conditional AddConditional(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle condition,
                           cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = condition;
  params.conditional.type = type;
  params.conditional.size = size;
  Conditional made;
  CU(cudaGraphAddNode(&made.node, graph, after ? &after : nullptr, nullptr, after ? 1 : 0, &params));
  made.bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + size);
  return made;
}

void Run(cudaGraph_t graph, int times = 1) {
  cudaGraphExec_t exec;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < times; ++i) CU(cudaGraphLaunch(exec, nullptr));
  CU(cudaDeviceSynchronize());
  CU(cudaGraphExecDestroy(exec));
}

cudaGraph_t NewGraph() {
  cudaGraph_t graph;
  CU(cudaGraphCreate(&graph, 0));
  return graph;
}
cudaGraphConditionalHandle NewCondition(cudaGraph_t graph, unsigned value = 0, bool assign = false) {
  cudaGraphConditionalHandle condition;
  CU(cudaGraphConditionalHandleCreate(&condition, graph, value, assign ? cudaGraphCondAssignDefault : 0));
  return condition;
}

void IfElse() {
  Buffer<int> counters(3);
  Buffer<unsigned> value(1);
  for (const unsigned set : {0u, 1u, 7u}) {
    CU(cudaMemset(counters, 0, 3 * sizeof(int)));
    CU(cudaMemcpy(value, &set, sizeof set, cudaMemcpyHostToDevice));
    cudaGraph_t graph = NewGraph();
    const auto condition = NewCondition(graph);
    const auto setter = AddKernel(graph, nullptr, SetFrom, condition, static_cast<const unsigned*>(value));
    const Conditional both = AddConditional(graph, setter, condition, cudaGraphCondTypeIf, 2);
    AddKernel(both.bodies[0], nullptr, Add, static_cast<int*>(counters), 1);
    AddKernel(both.bodies[1], nullptr, Add, static_cast<int*>(counters) + 1, 1);
    AddKernel(graph, both.node, Add, static_cast<int*>(counters) + 2, 1);  // runs either way, after it
    Run(graph, 3);
    CU(cudaGraphDestroy(graph));
    Same("then", set, counters.Read()[0], set ? 3 : 0);
    Same("else", set, counters.Read()[1], set ? 0 : 3);
    Same("after", set, counters.Read()[2], 3);
  }
}

void While() {
  Buffer<int> state(2);  // left, rounds
  for (const int start : {1, 5, 100}) {
    const int begin[2] = {start, 0};
    CU(cudaMemcpy(state, begin, sizeof begin, cudaMemcpyHostToDevice));
    cudaGraph_t graph = NewGraph();
    const auto condition = NewCondition(graph, 1, true);
    const Conditional loop = AddConditional(graph, nullptr, condition, cudaGraphCondTypeWhile, 1);
    AddKernel(loop.bodies[0], nullptr, CountDown, condition, static_cast<int*>(state), static_cast<int*>(state) + 1);
    Run(graph);
    Same("rounds", start, state.Read()[1], start);
    Run(graph);  // the default lets the body run once more
    Same("rounds again", start, state.Read()[1], start + 1);
    CU(cudaGraphDestroy(graph));
  }
}

void Switch() {
  Buffer<int> counters(4);
  Buffer<unsigned> value(1);
  cudaGraph_t graph = NewGraph();
  const auto condition = NewCondition(graph);
  const auto setter = AddKernel(graph, nullptr, SetFrom, condition, static_cast<const unsigned*>(value));
  const Conditional choice = AddConditional(graph, setter, condition, cudaGraphCondTypeSwitch, 4);
  for (int i = 0; i < 4; ++i) AddKernel(choice.bodies[i], nullptr, Add, static_cast<int*>(counters) + i, i + 1);
  for (const unsigned set : {2u, 0u, 3u, 3u, 4u, 100u}) {  // beyond the last: none
    CU(cudaMemcpy(value, &set, sizeof set, cudaMemcpyHostToDevice));
    Run(graph);
  }
  const int want[4] = {1, 0, 3, 8};
  for (int i = 0; i < 4; ++i) Same("case", i, counters.Read()[i], want[i]);
  CU(cudaGraphDestroy(graph));
}

// A while whose body, filled by capture, has an if that runs in every second round.
void Nested() {
  Buffer<int> state(4);  // left, rounds, inner, parity
  const int begin[4] = {9, 0, 0, 0};
  CU(cudaMemcpy(state, begin, sizeof begin, cudaMemcpyHostToDevice));
  cudaGraph_t graph = NewGraph();
  const auto outer = NewCondition(graph, 1, true), inner = NewCondition(graph);
  const Conditional loop = AddConditional(graph, nullptr, outer, cudaGraphCondTypeWhile, 1);
  cudaStream_t stream;
  CU(cudaStreamCreate(&stream));
  CU(cudaStreamBeginCaptureToGraph(stream, loop.bodies[0], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  CountDown<<<1, 1, 0, stream>>>(outer, state, static_cast<int*>(state) + 1);
  CU(cudaStreamEndCapture(stream, nullptr));
  std::size_t nodes = 1;
  cudaGraphNode_t counted;
  CU(cudaGraphGetNodes(loop.bodies[0], &counted, &nodes));
  const auto setter = AddKernel(loop.bodies[0], counted, Set, inner, 1u);
  const Conditional once = AddConditional(loop.bodies[0], setter, inner, cudaGraphCondTypeIf, 1);
  AddKernel(once.bodies[0], nullptr, Add, static_cast<int*>(state) + 2, 1);
  Run(graph);
  Same("rounds", 0, state.Read()[1], 9);
  Same("inner", 0, state.Read()[2], 9);
  CU(cudaStreamDestroy(stream));
  CU(cudaGraphDestroy(graph));
}

void Refusals() {
  cudaGraph_t graph = NewGraph();
  cudaGraphConditionalHandle condition = NewCondition(graph);
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = condition;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 2;
  cudaGraphNode_t node;
  Error("a while with two bodies", cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params), cudaErrorInvalidValue);
  params.conditional.size = 1;
  params.conditional.handle = condition + 8;
  Error("a foreign handle", cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params), cudaErrorInvalidValue);
  CU(cudaGraphDestroy(graph));
  cudaGetLastError();
}

int main() {
  IfElse();
  While();
  Switch();
  Nested();
  Refusals();
  return Verdict();
}
