// Stream-ordered memory used in no order with its allocation or its free, and copies beyond what they copy from and to:
// one case for each argument. usage: memcheck_streams CASE
#include <cuda.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "app.h"

constexpr int kCount = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);

__device__ int table[10];
__constant__ int factors[10];

__global__ void Use(int* p) {
  p[threadIdx.x] = threadIdx.x + table[0] + factors[0];  // kernels
}
__global__ void Parent(int* p) {
  if (threadIdx.x == 0) Use<<<1, kCount>>>(p);
}

// A write that no fence orders behind anything.
__global__ void Write(int* word) { *word = 1; }

// Flags: who has seen one comes after what its writer has done or seen before.
__global__ void WaitAndUse(volatile int* flag, int* p) {
  while (*flag == 0) {
  }
  __threadfence_system();
  p[threadIdx.x] = threadIdx.x;
}
__global__ void UseAndTell(int* p, volatile int* flag) {
  p[threadIdx.x] = threadIdx.x;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *flag = 1;
}
__global__ void UseAndExchange(int* p, int* flag) {
  p[threadIdx.x] = threadIdx.x;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch_system(flag, 1);
}
__global__ void UseAndWait(volatile int* flag, int* p) {
  p[threadIdx.x] = threadIdx.x;  // kernels
  while (*flag == 0) {
  }
}
__global__ void ReadAndUse(const int* word, int* p) {
  p[threadIdx.x] = *word;  // kernels
}

namespace {

struct Streams {
  cudaStream_t a = nullptr, b = nullptr, c = nullptr;
  Streams() {
    CU(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CU(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CU(cudaStreamCreate(&c));
  }
};

int* Allocate(cudaStream_t stream) {
  int* p = nullptr;
  CU(cudaMallocAsync(&p, kBytes, stream));
  return p;
}

/// What one stream has done comes before what the other does next.
void Order(cudaStream_t before, cudaStream_t after) {
  cudaEvent_t event = nullptr;
  CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CU(cudaEventRecord(event, before));
  CU(cudaStreamWaitEvent(after, event));
  CU(cudaEventDestroy(event));
}

void Unordered(const std::string& name, const Streams& s) {
  int* const p = Allocate(s.a);
  if (name == "use-unordered") {
    Use<<<1, kCount, 0, s.b>>>(p);
    CU(cudaDeviceSynchronize());
    CU(cudaFreeAsync(p, s.a));
  }
  if (name == "copy-unordered") {
    CU(cudaMemsetAsync(p, 0, kBytes, s.b));
    CU(cudaDeviceSynchronize());
    CU(cudaFreeAsync(p, s.a));
  }
  if (name == "free-unordered") {  // the use comes first
    int* word = nullptr;
    CU(cudaMallocHost(&word, sizeof(int)));
    *word = 0;
    Order(s.a, s.b);
    Use<<<1, kCount, 0, s.b>>>(p);
    Write<<<1, 1, 0, s.b>>>(word);
    while (*const_cast<volatile int*>(word) == 0) {
    }
    CU(cudaFreeAsync(p, s.a));
  }
  if (name == "use-before-flag" || name == "use-behind-plain-read") {
    int* flag = nullptr;
    CU(cudaMallocHost(&flag, sizeof(int)));
    *flag = 0;
    if (name == "use-before-flag") UseAndWait<<<1, kCount, 0, s.b>>>(flag, p);
    else ReadAndUse<<<1, kCount, 0, s.b>>>(flag, p);
    CU(cudaStreamSynchronize(s.a));
    *const_cast<volatile int*>(flag) = 1;
    CU(cudaDeviceSynchronize());
    CU(cudaFreeAsync(p, s.a));
  }
  if (name == "free-before-allocation") CU(cudaFreeAsync(p, s.b));
  if (name == "double-free") {
    CU(cudaFreeAsync(p, s.a));
    std::printf("second: %s\n", cudaGetErrorName(cudaFreeAsync(p, s.a)));
  }
  if (name == "double-free-late") {  // the first one has run
    CU(cudaFreeAsync(p, s.a));
    CU(cudaStreamSynchronize(s.a));
    std::printf("second: %s\n", cudaGetErrorName(cudaFreeAsync(p, s.a)));
  }
  if (name == "child-unordered") {
    Parent<<<1, 1, 0, s.b>>>(p);
    CU(cudaDeviceSynchronize());
    CU(cudaFreeAsync(p, s.a));
  }
  if (name == "legacy-unordered") {  // s.a is non-blocking
    Use<<<1, kCount>>>(p);
    CU(cudaDeviceSynchronize());
    CU(cudaFreeAsync(p, s.a));
  }
  static_cast<void>(cudaDeviceSynchronize());
}

/// Other work, which the host has seen.
void Elsewhere(cudaStream_t stream) {
  int* const p = Allocate(stream);
  Use<<<1, kCount, 0, stream>>>(p);
  CU(cudaFreeAsync(p, stream));
  CU(cudaStreamSynchronize(stream));
}

/// What the host has seen of other streams says nothing of this one.
void UnorderedLate(const Streams& s) {
  int* const p = Allocate(s.a);
  for (int i = 0; i < 3; ++i) {
    cudaStream_t other = nullptr;
    CU(cudaStreamCreate(&other));
    Elsewhere(other);
    CU(cudaStreamDestroy(other));
  }
  Elsewhere(s.b);
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaDeviceSynchronize());
  CU(cudaFreeAsync(p, s.a));
}

/// Order that was made before the host has seen other streams.
void OrderedLate(const Streams& s) {
  int* p = Allocate(s.a);
  Order(s.a, s.b);
  Elsewhere(s.c);
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaStreamSynchronize(s.b));  // so it has seen what `b` waited for
  Elsewhere(s.c);
  Use<<<1, kCount, 0, s.c>>>(p);
  CU(cudaDeviceSynchronize());
  CU(cudaFreeAsync(p, s.b));
  CU(cudaDeviceSynchronize());
}

/// A launch of an executable graph comes behind the launch before, in whatever stream that was.
void LaunchedAgain(const Streams& s) {
  int* const p = Allocate(s.a);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CU(cudaStreamBeginCapture(s.c, cudaStreamCaptureModeRelaxed));
  Use<<<1, kCount, 0, s.c>>>(p);
  CU(cudaStreamEndCapture(s.c, &graph));
  CU(cudaGraphInstantiate(&exec, graph, 0));
  CU(cudaGraphLaunch(exec, s.a));
  CU(cudaGraphLaunch(exec, s.b));
  CU(cudaFreeAsync(p, s.b));
  CU(cudaDeviceSynchronize());
  CU(cudaGraphExecDestroy(exec));
  CU(cudaGraphDestroy(graph));
}

/// What the default stream does stands between works of blocking streams, even a wait for what is over, or an
/// allocation.
void ThroughDefaultStream(const Streams& s) {
  cudaEvent_t never = nullptr;
  cudaStream_t other = nullptr;
  CU(cudaEventCreate(&never));
  CU(cudaStreamCreate(&other));
  int* const p = Allocate(s.c);
  CU(cudaStreamWaitEvent(nullptr, never));
  Use<<<1, kCount, 0, other>>>(p);
  int* const q = Allocate(nullptr);
  CU(cudaFreeAsync(p, s.c));
  CU(cudaFreeAsync(q, other));
  CU(cudaDeviceSynchronize());
  CU(cudaStreamDestroy(other));
  CU(cudaEventDestroy(never));
}

/// Each of them orders the use.
void Ordered(const Streams& s) {
  int* p = Allocate(s.a);
  Use<<<1, kCount, 0, s.a>>>(p);
  Order(s.a, s.b);
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaMemsetAsync(p, 0, kBytes, s.b));
  Order(s.b, s.a);
  CU(cudaFreeAsync(p, s.a));

  p = Allocate(s.a);
  CU(cudaStreamSynchronize(s.a));
  Use<<<1, kCount, 0, s.b>>>(p);
  cudaEvent_t done = nullptr;
  CU(cudaEventCreate(&done));
  CU(cudaEventRecord(done, s.b));
  CU(cudaEventSynchronize(done));
  CU(cudaFreeAsync(p, s.a));

  // The default stream and blocking ones wait for each other; a chain of events orders as one does.
  p = Allocate(nullptr);
  Use<<<1, kCount, 0, s.c>>>(p);
  Order(s.c, s.b);
  Use<<<1, kCount, 0, s.b>>>(p);
  Order(s.b, s.a);
  Order(s.a, s.c);
  CU(cudaFreeAsync(p, nullptr));

  p = Allocate(s.a);
  CU(cudaDeviceSynchronize());
  std::vector<int> host(kCount);
  CU(cudaMemcpy(p, host.data(), kBytes, cudaMemcpyHostToDevice));
  CU(cudaFree(p));

  p = Allocate(s.a);
  while (cudaStreamQuery(s.a) == cudaErrorNotReady) {
  }
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaEventRecord(done, s.b));
  while (cudaEventQuery(done) == cudaErrorNotReady) {
  }
  CU(cudaFreeAsync(p, s.c));

  // Who waits for a value waits for whoever writes it.
  unsigned* flag = nullptr;
  CU(cudaMalloc(&flag, sizeof(unsigned)));
  CU(cudaMemset(flag, 0, sizeof(unsigned)));
  CU(cudaDeviceSynchronize());
  p = Allocate(s.a);
  cuStreamWaitValue32(s.b, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  Use<<<1, kCount, 0, s.b>>>(p);
  cuStreamWriteValue32(s.a, reinterpret_cast<CUdeviceptr>(flag), 1, 0);
  Order(s.b, s.a);
  CU(cudaFreeAsync(p, s.a));
  CU(cudaEventDestroy(done));
  CU(cudaDeviceSynchronize());
  CU(cudaFree(flag));
}

/// A graph that allocates and frees: kernels before, between, beside and behind.
void InGraph(const std::string& name, const Streams& s) {
  cudaGraph_t graph = nullptr;
  CU(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams allocate{};
  allocate.poolProps.allocType = cudaMemAllocationTypePinned;
  allocate.poolProps.location = {cudaMemLocationTypeDevice, 0};
  allocate.bytesize = kBytes;
  cudaGraphNode_t begin = nullptr, use = nullptr, end = nullptr, bad = nullptr;
  CU(cudaGraphAddMemAllocNode(&begin, graph, nullptr, 0, &allocate));
  int* p = static_cast<int*>(allocate.dptr);
  void* args[] = {&p};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(Use);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(kCount);
  kernel.kernelParams = args;
  CU(cudaGraphAddKernelNode(&use, graph, &begin, 1, &kernel));
  const bool keeps = name == "graph-outside-unordered" || name == "graph-outside";
  if (!keeps) CU(cudaGraphAddMemFreeNode(&end, graph, &use, 1, p));
  if (name == "graph-after-free") CU(cudaGraphAddKernelNode(&bad, graph, &end, 1, &kernel));
  if (name == "graph-beside-free") CU(cudaGraphAddKernelNode(&bad, graph, &begin, 1, &kernel));
  if (name == "graph-beside-allocation") CU(cudaGraphAddKernelNode(&bad, graph, nullptr, 0, &kernel));
  if (name == "graph-fill-after-free") {
    cudaMemsetParams fill{};
    fill.dst = p;
    fill.elementSize = 4;
    fill.width = kCount;
    fill.height = 1;
    CU(cudaGraphAddMemsetNode(&bad, graph, &end, 1, &fill));
  }
  cudaGraphExec_t exec = nullptr;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  CU(cudaGraphLaunch(exec, s.a));
  if (name == "graph-freed-outside") Use<<<1, kCount, 0, s.a>>>(p);
  if (name == "graph-outside-unordered") Use<<<1, kCount, 0, s.b>>>(p);
  if (name == "graph-outside") Use<<<1, kCount, 0, s.a>>>(p);
  CU(cudaDeviceSynchronize());
  if (keeps) {
    CU(cudaFreeAsync(p, s.a));
    CU(cudaDeviceSynchronize());
  }
  if (name == "graph") {  // again, and once more
    CU(cudaGraphLaunch(exec, s.b));
    CU(cudaGraphLaunch(exec, s.b));
    CU(cudaDeviceSynchronize());
  }
  CU(cudaGraphExecDestroy(exec));
  CU(cudaGraphDestroy(graph));
}

/// The same as a stream's capture: what another stream does joins by events.
void Captured(const Streams& s) {
  cudaGraph_t graph = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  CU(cudaEventCreate(&fork));
  CU(cudaEventCreate(&join));
  CU(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal));
  int* const p = Allocate(s.a);
  CU(cudaEventRecord(fork, s.a));
  CU(cudaStreamWaitEvent(s.b, fork));
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaEventRecord(join, s.b));
  CU(cudaStreamWaitEvent(s.a, join));
  CU(cudaFreeAsync(p, s.a));
  CU(cudaStreamEndCapture(s.a, &graph));
  cudaGraphExec_t exec = nullptr;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  CU(cudaGraphLaunch(exec, s.a));
  CU(cudaDeviceSynchronize());
  CU(cudaGraphExecDestroy(exec));
  CU(cudaGraphDestroy(graph));
}

/// A graph waits for an event and records one.
void EventsInGraph(const Streams& s) {
  cudaEvent_t before = nullptr, after = nullptr;
  CU(cudaEventCreate(&before));
  CU(cudaEventCreate(&after));
  int* p = Allocate(s.a);
  CU(cudaEventRecord(before, s.a));
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t wait = nullptr, use = nullptr, record = nullptr;
  CU(cudaGraphCreate(&graph, 0));
  CU(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, before));
  void* arguments[] = {&p};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(Use);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(kCount);
  kernel.kernelParams = arguments;
  CU(cudaGraphAddKernelNode(&use, graph, &wait, 1, &kernel));
  CU(cudaGraphAddEventRecordNode(&record, graph, &use, 1, after));
  cudaGraphExec_t exec = nullptr;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  CU(cudaGraphLaunch(exec, s.b));
  CU(cudaStreamWaitEvent(s.a, after));
  CU(cudaFreeAsync(p, s.a));
  CU(cudaDeviceSynchronize());
  CU(cudaGraphExecDestroy(exec));
  CU(cudaGraphDestroy(graph));
  CU(cudaEventDestroy(before));
  CU(cudaEventDestroy(after));
}

void CUDART_CB Tell(void* over) { static_cast<std::atomic<bool>*>(over)->store(true); }

/// A host function says that the stream has come to it.
void HostFunction(const Streams& s) {
  std::atomic<bool> over = false;
  int* const p = Allocate(s.a);
  Use<<<1, kCount, 0, s.a>>>(p);
  CU(cudaLaunchHostFunc(s.a, Tell, &over));
  while (!over) std::this_thread::yield();
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaDeviceSynchronize());
  CU(cudaFreeAsync(p, s.a));
}

void CUDART_CB WaitFor(void* over) {
  while (!static_cast<std::atomic<bool>*>(over)->load()) std::this_thread::yield();
}

/// A host function waits for the program, which has seen the allocation meanwhile: what is behind it is in its stream
/// already.
void WaitingHostFunction(const Streams& s) {
  std::atomic<bool> over = false;
  int* const p = Allocate(s.a);
  CU(cudaLaunchHostFunc(s.b, WaitFor, &over));
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaStreamSynchronize(s.a));
  over = true;
  CU(cudaFreeAsync(p, s.b));
  CU(cudaDeviceSynchronize());
}

/// A graph waits for a value that a stream writes; the host looks for one, and for the time between two events.
void Values(const Streams& s) {
  unsigned* flags = nullptr;
  CU(cudaMallocHost(&flags, 2 * sizeof(unsigned)));
  flags[0] = flags[1] = 0;
  int* p = Allocate(s.a);
  cudaGraph_t graph = nullptr;
  CU(cudaStreamBeginCapture(s.b, cudaStreamCaptureModeRelaxed));
  cuStreamWaitValue32(s.b, reinterpret_cast<CUdeviceptr>(flags), 1, CU_STREAM_WAIT_VALUE_GEQ);
  Use<<<1, kCount, 0, s.b>>>(p);
  CU(cudaStreamEndCapture(s.b, &graph));
  cudaGraphExec_t exec = nullptr;
  CU(cudaGraphInstantiate(&exec, graph, 0));
  CU(cudaGraphLaunch(exec, s.b));
  cuStreamWriteValue32(s.a, reinterpret_cast<CUdeviceptr>(flags), 1, 0);
  Order(s.b, s.a);
  CU(cudaFreeAsync(p, s.a));
  CU(cudaDeviceSynchronize());

  p = Allocate(s.a);
  cuStreamWriteValue32(s.a, reinterpret_cast<CUdeviceptr>(flags + 1), 1, 0);
  while (*const_cast<volatile unsigned*>(flags + 1) == 0) std::this_thread::yield();
  Use<<<1, kCount, 0, s.c>>>(p);
  cudaEvent_t begin = nullptr, end = nullptr;
  CU(cudaEventCreate(&begin));
  CU(cudaEventCreate(&end));
  CU(cudaEventRecord(begin, s.c));
  CU(cudaEventRecord(end, s.c));
  float time = 0;
  while (cudaEventElapsedTime(&time, begin, end) == cudaErrorNotReady) std::this_thread::yield();
  CU(cudaFreeAsync(p, s.a));
  CU(cudaDeviceSynchronize());
  CU(cudaEventDestroy(begin));
  CU(cudaEventDestroy(end));
  CU(cudaGraphExecDestroy(exec));
  CU(cudaGraphDestroy(graph));
  CU(cudaFreeHost(flags));
}

/// Memory that host and device share: pinned, managed, or the host's own.
enum class Shared : std::uint8_t { kPinned, kManaged, kRegistered };
constexpr Shared kEverySort[] = {Shared::kPinned, Shared::kManaged, Shared::kRegistered};

/// A flag in such memory, as the host and as the device sees it.
struct HostFlag {
  explicit HostFlag(Shared sort) {
    if (sort == Shared::kPinned) CU(cudaMallocHost(&host, sizeof(int)));
    if (sort == Shared::kManaged) CU(cudaMallocManaged(&host, sizeof(int)));
    device = host;
    if (sort == Shared::kRegistered) {
      host = new int;
      CU(cudaHostRegister(host, sizeof(int), cudaHostRegisterMapped));
      CU(cudaHostGetDevicePointer(&device, host, 0));
    }
    Set(0);
  }
  void Set(int value) { *const_cast<volatile int*>(host) = value; }
  void Wait() const {
    while (*const_cast<volatile int*>(host) == 0) std::this_thread::yield();
  }
  int *host = nullptr, *device = nullptr;
};

/// The host has seen the allocation when it lets the kernel go on. What comes behind the kernel comes behind that, in
/// other streams as well, though it was there before the flag was set.
void FlagOfHost(Shared sort, const Streams& s) {
  HostFlag flag(sort);
  int* const p = Allocate(s.a);
  WaitAndUse<<<1, kCount, 0, s.b>>>(flag.device, p);
  Use<<<1, kCount, 0, s.b>>>(p);
  Order(s.b, s.c);
  Use<<<1, kCount, 0, s.c>>>(p);
  CU(cudaFreeAsync(p, s.c));
  CU(cudaStreamSynchronize(s.a));
  flag.Set(1);
  CU(cudaDeviceSynchronize());
}

/// A kernel tells the host that it is done with the memory.
void FlagOfKernel(Shared sort, const Streams& s) {
  for (const bool exchanges : {false, true}) {
    HostFlag flag(sort);
    int* const p = Allocate(s.a);
    Order(s.a, s.b);
    Use<<<1, kCount, 0, s.b>>>(p);
    if (exchanges) UseAndExchange<<<1, kCount, 0, s.b>>>(p, flag.device);
    else UseAndTell<<<1, kCount, 0, s.b>>>(p, flag.device);
    flag.Wait();
    CU(cudaFreeAsync(p, s.a));
    CU(cudaDeviceSynchronize());
  }
}

/// A kernel waits for the host, which waits for another kernel.
void FlagsThroughHost(const Streams& s) {
  HostFlag done(Shared::kPinned), go(Shared::kManaged);
  int* const p = Allocate(s.a);
  WaitAndUse<<<1, kCount, 0, s.b>>>(go.device, p);
  UseAndTell<<<1, kCount, 0, s.a>>>(p, done.device);
  done.Wait();
  go.Set(1);
  CU(cudaFreeAsync(p, s.b));
  CU(cudaDeviceSynchronize());
}

void Copies(const std::string& name) {
  int *device = nullptr, *pinned = nullptr;
  std::vector<int> host(4096);
  void* symbol = nullptr;
  CU(cudaMalloc(&device, 4000));
  CU(cudaMallocHost(&pinned, 4000));
  CU(cudaGetSymbolAddress(&symbol, table));
  cudaError_t status = cudaSuccess;
  if (name == "copy-symbol") status = cudaMemcpy(symbol, host.data(), 48, cudaMemcpyHostToDevice);
  if (name == "copy-constant") {
    CU(cudaGetSymbolAddress(&symbol, factors));
    status = cudaMemcpy(host.data(), symbol, 44, cudaMemcpyDeviceToHost);
  }
  if (name == "fill-symbol") status = cudaMemset(static_cast<char*>(symbol) + 36, 0, 8);
  if (name == "copy-pinned") status = cudaMemcpy(device, pinned + 10, 4000, cudaMemcpyHostToDevice);
  if (name == "copy-to-pinned") status = cudaMemcpyAsync(pinned + 1, device, 4000, cudaMemcpyDeviceToHost);
  if (name == "copy-2d") status = cudaMemcpy2D(device, 512, host.data(), 512, 500, 9, cudaMemcpyHostToDevice);
  if (name == "copy-2d-pinned") status = cudaMemcpy2D(device, 400, pinned, 520, 400, 8, cudaMemcpyHostToDevice);
  if (name == "fill-2d") status = cudaMemset2D(device, 512, 1, 500, 9);
  if (name == "copy-3d" || name == "copies") {
    cudaMemcpy3DParms parameters{};
    parameters.srcPtr = make_cudaPitchedPtr(host.data(), 100, 100, 10);
    parameters.dstPtr = make_cudaPitchedPtr(device, 100, 100, 10);
    parameters.extent = make_cudaExtent(100, 10, name == "copies" ? 4 : 5);
    parameters.kind = cudaMemcpyHostToDevice;
    status = cudaMemcpy3D(&parameters);
  }
  if (name == "copies") {
    CU(cudaMemcpyToSymbol(table, host.data(), 40));
    CU(cudaMemcpyFromSymbol(host.data(), factors, 36, 4));
    CU(cudaMemcpy(device, pinned, 4000, cudaMemcpyHostToDevice));
    CU(cudaMemcpy2D(device, 500, pinned, 500, 400, 8, cudaMemcpyHostToDevice));
    CU(cudaMemset(static_cast<char*>(symbol) + 36, 0, 4));
    CU(cudaMemset2D(device, 1000, 1, 500, 4));
  }
  std::printf("status: %s\n", cudaGetErrorName(status));
  CU(cudaFree(device));
  CU(cudaFreeHost(pinned));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "none";
  const Streams streams;
  if (name == "none") {
    OrderedLate(streams);
    LaunchedAgain(streams);
    ThroughDefaultStream(streams);
    Ordered(streams);
    InGraph("graph", streams);
    InGraph("graph-outside", streams);
    Captured(streams);
    EventsInGraph(streams);
    HostFunction(streams);
    WaitingHostFunction(streams);
    Values(streams);
    const Streams others;  // that have not waited for values, after which everything counts as ordered
    for (const Shared sort : kEverySort) {
      FlagOfHost(sort, others);
      FlagOfKernel(sort, others);
    }
    FlagsThroughHost(others);
    Copies("copies");
  } else if (name.starts_with("graph")) InGraph(name, streams);
  else if (name != "copy-unordered" && (name.starts_with("copy") || name.starts_with("fill"))) Copies(name);
  else if (name == "use-unordered-late") UnorderedLate(streams);
  else Unordered(name, streams);
  std::printf("%s: %s\n", name.c_str(), cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
