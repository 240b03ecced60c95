#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "execution.h"
#include "work.cuh"

namespace order {
namespace {

constexpr std::size_t kCells = 4096;       ///< of each memory
constexpr std::size_t kArena = 16u << 20;  ///< bytes for records
constexpr std::size_t kCellBytes = kWords * sizeof(std::uint32_t);
constexpr int kLanes = 3;
constexpr int kMostGates = 256, kMostThreads = 16;

std::size_t Index(int i) { return static_cast<std::size_t>(i); }

void Must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAIL: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// Host threads that stay: each has a default stream of its own, and streams to capture from.
class Hands {
 public:
  ~Hands() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  /// Starts job(0) … job(count - 1), each on a thread of its own.
  void Start(int count, std::function<void(int)> job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (static_cast<int>(threads_.size()) < count)
      threads_.emplace_back(&Hands::Main, this, static_cast<int>(threads_.size()), round_);
    job_ = std::move(job);
    count_ = count;
    working_ = count;
    ++round_;
    wake_.notify_all();
  }
  /// Whether all have ended in time.
  bool Wait(double seconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    return done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return working_ == 0; });
  }

 private:
  void Main(int number, std::uint64_t seen) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ends_ || round_ != seen; });
      if (ends_) return;
      seen = round_;
      if (number >= count_) continue;
      lock.unlock();
      job_(number);
      lock.lock();
      if (--working_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  std::function<void(int)> job_;
  std::uint64_t round_ = 0;
  int count_ = 0, working_ = 0;
  bool ends_ = false;
};

/// Streams and events that a thread captures with.
struct Lanes {
  cudaStream_t streams[kLanes] = {};
  std::vector<cudaEvent_t> events;
  cudaEvent_t Event(std::size_t i) {
    while (events.size() <= i) {
      cudaEvent_t event;
      Must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event to capture with");
      events.push_back(event);
    }
    return events[i];
  }
  cudaStream_t Stream(int lane) {
    if (streams[lane] == nullptr)
      Must(cudaStreamCreateWithFlags(&streams[lane], cudaStreamNonBlocking), "a stream to capture from");
    return streams[lane];
  }
};

/// Pinned memory, given out piece by piece and taken back all at once.
class Arena {
 public:
  explicit Arena(std::byte* memory) : memory_(memory) {}
  template <typename T>
  T* Take(std::size_t count) {
    used_ = (used_ + 63) / 64 * 64;
    T* const taken = reinterpret_cast<T*>(memory_ + used_);
    used_ += count * sizeof(T);
    if (used_ > kArena) Must(cudaErrorMemoryAllocation, "records");
    std::memset(static_cast<void*>(taken), 0, count * sizeof(T));
    return taken;
  }
  void Clear() { used_ = 0; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

/// What host functions get.
struct HostWork {
  Record* record = nullptr;
  NodeRuns* runs = nullptr;
};
void CUDART_CB CallHostWork(void* data) {
  HostWork* const work = static_cast<HostWork*>(data);
  if (work->record != nullptr) return Perform(work->record, 0, 1);
  const std::uint32_t run = work->runs->next[0]++;
  if (run < work->runs->count) Perform(work->runs->records[run], 0, 1);
  else work->runs->overrun = 1;
}

}  // namespace

struct Stage::Impl {
  Impl();
  ~Impl() = default;  // the process ends, and its memory with it

  std::uint32_t* cells[4] = {};  ///< by Memory: device, pinned, managed, pageable
  std::vector<std::uint32_t> pageable, copy;
  std::byte* arena_memory = nullptr;
  std::uint32_t* flags = nullptr;  ///< of gates
  CUresult (*wait_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned) = nullptr;
  Lanes lanes[kMostThreads];
  Hands hands;
};

namespace {

/// One program's run.
class Run {
 public:
  Run(Stage::Impl& stage, const Model& model, const Limits& limits)
      : stage_(stage), model_(model), limits_(limits), arena_(stage.arena_memory) {}

  std::vector<std::string> Play(void (*report)(const std::vector<std::string>&)) {
    Prepare();
    stage_.hands.Start(model_.threads, [this](int thread) { PlayThread(thread); });
    if (!stage_.hands.Wait(limits_.patience)) {
      Fail("did not end within " + std::to_string(static_cast<int>(limits_.patience)) + " s: " + Places());
      OpenAll();
      if (!stage_.hands.Wait(std::min(limits_.patience, 5.0))) {
        Fail("did not end when all gates had been opened, either: " + Places());
        report(failures_);
        std::_Exit(3);
      }
    }
    Finish();
    return failures_;
  }

 private:
  // --- before ---

  void Prepare() {
    for (int memory = 0; memory < 4; ++memory) counts_[memory] = 0;
    for (const Cell& cell : model_.cells)
      if (cell.memory != Memory::kBlock)
        counts_[Index(static_cast<int>(cell.memory))] =
            std::max(counts_[Index(static_cast<int>(cell.memory))], cell.index + 1);
    for (const int count : counts_)
      if (static_cast<std::size_t>(count) > kCells) Must(cudaErrorMemoryAllocation, "cells");
    stage_.copy.assign(Index(counts_[0]) * kWords, 0);
    for (int memory = 1; memory < 4; ++memory)
      std::memset(stage_.cells[memory], 0, Index(counts_[memory]) * kCellBytes);
    for (const Cell& cell : model_.cells) {
      if (cell.memory == Memory::kBlock) continue;
      std::uint32_t* const words =
          cell.memory == Memory::kDevice ? stage_.copy.data() + Index(cell.index) * kWords : Place(cell);
      for (int word = 0; word < kWords; ++word) words[word] = cell.initial.word(word);
    }
    Must(cudaMemcpy(stage_.cells[0], stage_.copy.data(), stage_.copy.size() * sizeof(std::uint32_t),
                    cudaMemcpyHostToDevice),
         "cells");
    Must(cudaDeviceSynchronize(), "before the program");
    std::memset(stage_.flags, 0, kMostGates * sizeof(std::uint32_t));
    for (auto& made : made_) made.store(0);
    for (const Cell& cell : model_.cells)
      if (cell.block >= 0) block_cells_[cell.block] = std::max(block_cells_[cell.block], cell.index + 1);
    for (const Operation& operation : model_.operations) PrepareObject(operation);
    records_.resize(model_.accesses.size());
    for (std::size_t i = 0; i < records_.size(); ++i) records_[i] = arena_.Take<Record>(1);
    host_works_.resize(model_.operations.size());
    PrepareVariants();
  }
  /// Threads find objects in tables, which do not change while they do.
  void PrepareObject(const Operation& operation) {
    switch (operation.kind) {
      case Kind::kCreateStream: streams_[operation.stream] = nullptr; break;
      case Kind::kCreateEvent: events_[operation.object] = nullptr; break;
      case Kind::kCreatePool: pools_[operation.object] = nullptr; break;
      case Kind::kMakeGraph: graphs_[operation.object] = nullptr, made_by_[operation.object] = &operation; break;
      case Kind::kAlloc:
      case Kind::kMalloc: blocks_[operation.object] = nullptr; break;
      case Kind::kFreeAsync:
      case Kind::kFree: freed_[operation.object] = true; break;
      default: break;
    }
  }
  void PrepareVariants() {
    for (const Variant& variant : model_.variants) {
      std::vector<LeafState>& states = variants_.emplace_back();
      for (const Leaf& leaf : variant.leaves) {
        LeafState state;
        if (leaf.node == nullptr) {
          state.condition = arena_.Take<ConditionRuns>(1);
          std::uint8_t* const values = arena_.Take<std::uint8_t>(leaf.conditions.size() + 1);
          std::copy(leaf.conditions.begin(), leaf.conditions.end(), values);
          state.condition->values = values;
          state.condition->count = static_cast<std::uint32_t>(leaf.conditions.size());
        } else {
          state.runs = arena_.Take<NodeRuns>(1);
          Record** const records = arena_.Take<Record*>(leaf.runs.size() + 1);
          for (std::size_t i = 0; i < leaf.runs.size(); ++i) records[i] = records_[Index(leaf.runs[i])];
          state.runs->records = records;
          state.runs->count = static_cast<std::uint32_t>(leaf.runs.size());
          state.host.runs = state.runs;
        }
        states.push_back(state);
      }
    }
  }

  std::uint32_t* Place(const Cell& cell) const {
    if (cell.memory == Memory::kBlock)
      return static_cast<std::uint32_t*>(blocks_.at(cell.block)) + Index(cell.index) * kWords;
    return stage_.cells[static_cast<int>(cell.memory)] + Index(cell.index) * kWords;
  }
  std::uint32_t* PlaceOf(int cell) const { return Place(model_.cells[Index(cell)]); }

  /// Writes down what the access has to do, as late as that can be known.
  Record* Fill(int number) {
    const Access& access = model_.accesses[Index(number)];
    Record* const record = records_[Index(number)];
    record->spin = access.spin;
    record->read_count = static_cast<std::uint32_t>(access.reads.size());
    for (std::size_t i = 0; i < access.reads.size(); ++i)
      record->reads[i] = {PlaceOf(access.reads[i].cell), access.reads[i].value.base, access.reads[i].value.step};
    if (access.cell >= 0) {
      record->own = PlaceOf(access.cell);
      record->base = access.value.base, record->step = access.value.step;
      record->checks_before = access.knows_before;
      record->before_base = access.before.base, record->before_step = access.before.step;
    }
    return record;
  }
  void PerformHere(int number) {
    if (number >= 0) Perform(Fill(number), 0, 1);
  }

  // --- the calls ---

  void PlayThread(int thread) {
    Must(cudaSetDevice(0), "cudaSetDevice");
    int made = 0;
    for (std::size_t i = 0; i < model_.operations.size(); ++i) {
      if (model_.operations[i].thread != thread) continue;
      for (const auto& [other, count] : model_.calls[i].waits)
        while (made_[Index(other)].load(std::memory_order_acquire) < count) std::this_thread::yield();
      WaitUntilEntered(model_.calls[i].entered);
      at_[Index(thread)].store(static_cast<int>(i));
      PerformHere(model_.calls[i].before);
      enters_[Index(thread)].store(made + 1);
      const cudaError_t error = Make(static_cast<int>(i));
      if (error != cudaSuccess) {
        Fail(Describe(model_.operations[i]) + ": " + cudaGetErrorName(error));
        OpenAll();
      }
      made_[Index(thread)].store(++made, std::memory_order_release);
    }
    at_[Index(thread)].store(-1);
  }

  /// Until the other thread is in its call, most likely.
  void WaitUntilEntered(std::pair<int, int> entered) const {
    if (entered.first < 0) return;
    const auto& made = made_[Index(entered.first)];
    const auto& enters = enters_[Index(entered.first)];
    while (made.load() <= entered.second && enters.load() <= entered.second) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::duration<double>(limits_.pause));
  }

  cudaStream_t Stream(int stream) const {
    if (stream == kLegacy) return limits_.sabotage == Sabotage::kLegacy ? cudaStreamPerThread : cudaStreamLegacy;
    if (stream < 1'000'000) return streams_.at(stream);
    return cudaStreamPerThread;
  }

  cudaError_t Make(int i) {
    const Operation& operation = model_.operations[Index(i)];
    const Call& call = model_.calls[Index(i)];
    const cudaStream_t stream = call.stream >= 0 ? Stream(call.stream) : nullptr;
    switch (operation.kind) {
      case Kind::kKernel: return LaunchWork(operation, stream, Fill(call.access));
      case Kind::kGate: return LaunchGate(operation, stream, Fill(call.access));
      case Kind::kOpenGate: return Open(operation.object);
      case Kind::kHostFunction:
        host_works_[Index(i)].record = Fill(call.access);
        return cudaLaunchHostFunc(stream, CallHostWork, &host_works_[Index(i)]);
      case Kind::kHostWork: PerformHere(call.access); return cudaSuccess;
      case Kind::kCopy:
      case Kind::kCopySync:
      case Kind::kMemset:
      case Kind::kMemsetSync: return Behind(call, MakeCopy(i, stream));
      case Kind::kRecord: return cudaEventRecord(events_.at(operation.object), stream);
      case Kind::kWaitEvent:
        if (limits_.sabotage == Sabotage::kWaits) return cudaSuccess;
        return cudaStreamWaitEvent(stream, events_.at(operation.object), 0);
      case Kind::kSyncEvent:
        if (limits_.sabotage == Sabotage::kEvents) return Behind(call, cudaSuccess);
        return Behind(call, cudaEventSynchronize(events_.at(operation.object)));
      case Kind::kSyncStream:
        if (limits_.sabotage == Sabotage::kStreams) return Behind(call, cudaSuccess);
        return Behind(call, cudaStreamSynchronize(stream));
      case Kind::kSyncDevice:
        if (limits_.sabotage == Sabotage::kDevice) return Behind(call, cudaSuccess);
        return Behind(call, cudaDeviceSynchronize());
      case Kind::kPollEvent: return Behind(call, Poll([&] { return cudaEventQuery(events_.at(operation.object)); }));
      case Kind::kPollStream: return Behind(call, Poll([&] { return cudaStreamQuery(stream); }));
      case Kind::kPeekEvent: return Peek(i, cudaEventQuery(events_.at(operation.object)));
      case Kind::kPeekStream: return Peek(i, cudaStreamQuery(stream));
      default: return MakeObject(i, stream);
    }
  }
  cudaError_t LaunchWork(const Operation& operation, cudaStream_t stream, Record* record) {
    if (!operation.cooperative) {
      Work<<<operation.grid, operation.block, 0, stream>>>(record);
      return cudaGetLastError();
    }
    void* parameters[] = {&record};
    return cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Work), dim3(static_cast<unsigned>(operation.grid)),
                                       dim3(static_cast<unsigned>(operation.block)), parameters, 0, stream);
  }
  cudaError_t LaunchGate(const Operation& operation, cudaStream_t stream, Record* record) {
    std::uint32_t* const flag = stage_.flags + operation.object;
    if (!operation.in_stream) {
      Gate<<<1, 1, 0, stream>>>(flag, record);
      return cudaGetLastError();
    }
    if (stage_.wait_value(stream, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ) != CUDA_SUCCESS)
      return cudaErrorUnknown;
    Work<<<1, 1, 0, stream>>>(record);
    return cudaGetLastError();
  }
  /// The host's thread looks at once when the call has answered.
  cudaError_t Behind(const Call& call, cudaError_t error) {
    if (error == cudaSuccess) PerformHere(call.after);
    return error;
  }
  template <typename Query>
  cudaError_t Poll(Query query) {
    cudaError_t error = query();
    for (; error == cudaErrorNotReady; error = query()) std::this_thread::yield();
    return error;
  }
  cudaError_t Peek(int i, cudaError_t error) {
    const Call& call = model_.calls[Index(i)];
    if (error == cudaErrorNotReady) {
      if (call.ready == Call::Ready::kYes)
        Fail(Describe(model_.operations[Index(i)]) + ": not ready, but all of it was awaited before");
      return cudaSuccess;
    }
    if (error == cudaSuccess && call.ready == Call::Ready::kNo && !opened_all_.load())
      Fail(Describe(model_.operations[Index(i)]) + ": success, but a kernel before it waits for the host");
    return Behind(call, error);
  }
  cudaError_t Open(int gate) {
    reinterpret_cast<std::atomic<std::uint32_t>*>(stage_.flags)[gate].store(1, std::memory_order_release);
    return cudaSuccess;
  }
  void OpenAll() {
    opened_all_.store(true);
    for (int gate = 0; gate < kMostGates; ++gate) Open(gate);
  }
  cudaError_t MakeCopy(int i, cudaStream_t stream) {
    const Operation& operation = model_.operations[Index(i)];
    const Access& access = model_.accesses[Index(model_.calls[Index(i)].access)];
    void* const to = PlaceOf(access.cell);
    const int byte = static_cast<int>(access.value.base & 0xFF);
    if (operation.kind == Kind::kMemset) return cudaMemsetAsync(to, byte, kCellBytes, stream);
    if (operation.kind == Kind::kMemsetSync) return cudaMemset(to, byte, kCellBytes);
    const void* const from = PlaceOf(access.source);
    if (operation.kind == Kind::kCopy) return cudaMemcpyAsync(to, from, kCellBytes, cudaMemcpyDefault, stream);
    return cudaMemcpy(to, from, kCellBytes, cudaMemcpyDefault);
  }

  cudaError_t MakeObject(int i, cudaStream_t stream) {
    const Operation& operation = model_.operations[Index(i)];
    const Call& call = model_.calls[Index(i)];
    const int object = operation.object;
    switch (operation.kind) {
      case Kind::kCreateStream:
        return cudaStreamCreateWithPriority(&streams_[operation.stream],
                                            operation.blocking ? cudaStreamDefault : cudaStreamNonBlocking,
                                            operation.salt % 4 == 0 ? -1 : 0);
      case Kind::kDestroyStream: {
        const cudaStream_t ended = streams_[operation.stream];
        streams_[operation.stream] = nullptr;
        return cudaStreamDestroy(ended);
      }
      case Kind::kCreateEvent:
        return cudaEventCreateWithFlags(&events_[object], (operation.salt & 1 ? cudaEventDisableTiming : 0) |
                                                              (operation.salt & 2 ? cudaEventBlockingSync : 0));
      case Kind::kDestroyEvent: return cudaEventDestroy(std::exchange(events_[object], nullptr));
      case Kind::kCreatePool: {
        cudaMemPoolProps properties = {};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        return cudaMemPoolCreate(&pools_[object], &properties);
      }
      case Kind::kDestroyPool: return cudaMemPoolDestroy(std::exchange(pools_[object], nullptr));
      case Kind::kAlloc:
        if (operation.other >= 0)
          return cudaMallocFromPoolAsync(&blocks_[object], BlockBytes(operation), pools_.at(operation.other), stream);
        return cudaMallocAsync(&blocks_[object], BlockBytes(operation), stream);
      case Kind::kMalloc: return cudaMalloc(&blocks_[object], BlockBytes(operation));
      case Kind::kFreeAsync: return FreeAsync(i, stream);
      case Kind::kFree:
        if (limits_.sabotage == Sabotage::kFree) return Behind(call, cudaSuccess);
        return Behind(call, cudaFree(blocks_.at(object)));
      case Kind::kMakeGraph: return MakeGraph(i);
      case Kind::kLaunchGraph:
        for (const int run : call.runs) Fill(run);
        return cudaGraphLaunch(graphs_.at(object), stream);
      case Kind::kUpdateGraph: return UpdateGraph(i);
      case Kind::kDestroyGraph: return cudaGraphExecDestroy(std::exchange(graphs_[object], nullptr));
      default: return cudaErrorUnknown;
    }
  }
  std::size_t BlockBytes(const Operation& operation) {
    static constexpr std::size_t kSizes[] = {512, 4096, 65536};
    const auto cells = block_cells_.find(operation.object);
    return std::max(kSizes[operation.salt % 3], cells == block_cells_.end() ? 0 : Index(cells->second) * kCellBytes);
  }
  cudaError_t FreeAsync(int i, cudaStream_t stream) {
    const Operation& operation = model_.operations[Index(i)];
    const Call& call = model_.calls[Index(i)];
    if (call.other_stream >= 0) {
      cudaEvent_t event;
      cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      if (error == cudaSuccess) error = cudaEventRecord(event, Stream(call.other_stream));
      if (error == cudaSuccess) error = cudaStreamWaitEvent(stream, event, 0);
      if (error == cudaSuccess) error = cudaEventDestroy(event);
      if (error != cudaSuccess) return error;
    }
    return cudaFreeAsync(blocks_.at(operation.object), stream);
  }

  // --- graphs ---

  struct LeafState {
    NodeRuns* runs = nullptr;
    ConditionRuns* condition = nullptr;
    HostWork host;
  };
  /// Takes the leaves of a variant one after the other while a graph is built.
  struct Leaves {
    const Variant& variant;
    std::vector<LeafState>& states;
    std::size_t next = 0;
  };

  cudaError_t NewGraph(int i, cudaGraph_t* graph) {
    const int variant = model_.calls[Index(i)].variant;
    Leaves leaves{model_.variants[Index(variant)], variants_[Index(variant)]};
    const Operation& operation = model_.operations[Index(i)];
    const Operation& made = *made_by_.at(operation.object);
    const std::vector<GraphNode>& nodes = made.nodes;
    if (made.captured) return Capture(stage_.lanes[operation.thread], nodes, leaves, graph);
    cudaError_t error = cudaGraphCreate(graph, 0);
    if (error == cudaSuccess) error = Build(*graph, *graph, nodes, leaves);
    return error;
  }
  cudaError_t MakeGraph(int i) {
    const Operation& operation = model_.operations[Index(i)];
    cudaGraph_t graph = nullptr;
    cudaError_t error = NewGraph(i, &graph);
    if (error == cudaSuccess && operation.cloned) {
      cudaGraph_t clone = nullptr;
      error = cudaGraphClone(&clone, graph);
      if (error == cudaSuccess) error = cudaGraphDestroy(graph);
      graph = clone;
    }
    if (error == cudaSuccess) error = cudaGraphInstantiate(&graphs_[operation.object], graph, 0);
    if (error == cudaSuccess) error = cudaGraphDestroy(graph);
    return error;
  }
  cudaError_t UpdateGraph(int i) {
    const Operation& operation = model_.operations[Index(i)];
    cudaGraph_t graph = nullptr;
    cudaError_t error = NewGraph(i, &graph);
    cudaGraphExecUpdateResultInfo info;
    if (error == cudaSuccess) error = cudaGraphExecUpdate(graphs_.at(operation.object), graph, &info);
    if (error == cudaSuccess) error = cudaGraphDestroy(graph);
    return error;
  }

  cudaError_t Build(cudaGraph_t graph, cudaGraph_t root, const std::vector<GraphNode>& nodes, Leaves& leaves) {
    std::vector<cudaGraphNode_t> made(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      std::vector<cudaGraphNode_t> after;
      for (const int other : nodes[k].after) after.push_back(made[Index(other)]);
      const cudaError_t error = BuildNode(graph, root, nodes[k], after, leaves, &made[k]);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  cudaError_t BuildNode(cudaGraph_t graph, cudaGraph_t root, const GraphNode& node,
                        const std::vector<cudaGraphNode_t>& after, Leaves& leaves, cudaGraphNode_t* made) {
    switch (node.kind) {
      case GraphNode::Kind::kEmpty: return cudaGraphAddEmptyNode(made, graph, after.data(), after.size());
      case GraphNode::Kind::kChild: {
        cudaGraph_t child;
        cudaError_t error = cudaGraphCreate(&child, 0);
        if (error == cudaSuccess) error = Build(child, root, node.body, leaves);
        if (error == cudaSuccess) error = cudaGraphAddChildGraphNode(made, graph, after.data(), after.size(), child);
        if (error == cudaSuccess) error = cudaGraphDestroy(child);
        return error;
      }
      case GraphNode::Kind::kIf:
      case GraphNode::Kind::kWhile: return BuildCondition(graph, root, node, after, leaves, made);
      default: break;
    }
    const Leaf& leaf = leaves.variant.leaves[leaves.next];
    LeafState& state = leaves.states[leaves.next++];
    switch (node.kind) {
      case GraphNode::Kind::kKernel:
        return BuildKernel(graph, reinterpret_cast<void*>(WorkOfNode), GridOf(node), {&state.runs}, after, made);
      case GraphNode::Kind::kMemset: {
        cudaMemsetParams params = {};
        params.dst = PlaceOf(leaf.cell);
        params.value = leaf.fill.base;
        params.elementSize = 4, params.width = kWords, params.height = 1;
        return cudaGraphAddMemsetNode(made, graph, after.data(), after.size(), &params);
      }
      case GraphNode::Kind::kCopy:
        return cudaGraphAddMemcpyNode1D(made, graph, after.data(), after.size(), PlaceOf(leaf.cell),
                                        PlaceOf(leaf.source), kCellBytes, cudaMemcpyDefault);
      default: {
        cudaHostNodeParams params = {CallHostWork, &state.host};
        return cudaGraphAddHostNode(made, graph, after.data(), after.size(), &params);
      }
    }
  }
  cudaError_t BuildKernel(cudaGraph_t graph, void* kernel, int grid, std::vector<void*> parameters,
                          const std::vector<cudaGraphNode_t>& after, cudaGraphNode_t* made) {
    cudaKernelNodeParams params = {};
    params.func = kernel;
    params.gridDim = dim3(static_cast<unsigned>(grid)), params.blockDim = dim3(1);
    params.kernelParams = parameters.data();
    return cudaGraphAddKernelNode(made, graph, after.data(), after.size(), &params);
  }
  /// An `if` with the kernel that sets it before it; a `while` whose first turn the default allows, with that kernel at
  /// its body's end.
  cudaError_t BuildCondition(cudaGraph_t graph, cudaGraph_t root, const GraphNode& node,
                             std::vector<cudaGraphNode_t> after, Leaves& leaves, cudaGraphNode_t* made) {
    const bool loops = node.kind == GraphNode::Kind::kWhile;
    cudaGraphConditionalHandle condition;
    cudaError_t error = cudaGraphConditionalHandleCreate(&condition, root, loops, cudaGraphCondAssignDefault);
    if (error != cudaSuccess) return error;
    if (!loops) {
      LeafState& state = leaves.states[leaves.next++];
      error = BuildKernel(graph, reinterpret_cast<void*>(SetCondition), 1, {&condition, &state.condition}, after, made);
      if (error != cudaSuccess) return error;
      after = {*made};
    }
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = condition;
    params.conditional.type = loops ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
    params.conditional.size = 1;
    error = cudaGraphAddNode(made, graph, after.data(), nullptr, after.size(), &params);
    if (error != cudaSuccess) return error;
    const cudaGraph_t body = params.conditional.phGraph_out[0];
    error = Build(body, root, node.body, leaves);
    if (error != cudaSuccess || !loops) return error;
    std::size_t count = 0;
    error = cudaGraphGetNodes(body, nullptr, &count);
    std::vector<cudaGraphNode_t> all(count);
    if (error == cudaSuccess) error = cudaGraphGetNodes(body, all.data(), &count);
    if (error != cudaSuccess) return error;
    LeafState& state = leaves.states[leaves.next++];
    cudaGraphNode_t last;
    return BuildKernel(body, reinterpret_cast<void*>(SetCondition), 1, {&condition, &state.condition}, all, &last);
  }

  /// The same nodes by capture of up to three streams.
  cudaError_t Capture(Lanes& lanes, const std::vector<GraphNode>& nodes, Leaves& leaves, cudaGraph_t* graph) {
    const cudaStream_t origin = lanes.Stream(0);
    const std::size_t root = nodes.size();
    for (std::size_t k = 0; k <= nodes.size() + kLanes; ++k) lanes.Event(k);
    for (int lane = 0; lane < kLanes; ++lane) lanes.Stream(lane);
    cudaError_t error = cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal);
    if (error == cudaSuccess) error = cudaEventRecord(lanes.Event(root), origin);
    for (int lane = 1; lane < kLanes && error == cudaSuccess; ++lane)
      error = cudaStreamWaitEvent(lanes.Stream(lane), lanes.Event(root), 0);
    for (std::size_t k = 0; k < nodes.size() && error == cudaSuccess; ++k) {
      const cudaStream_t stream = lanes.Stream(nodes[k].lane);
      for (const int other : nodes[k].after)
        if (error == cudaSuccess) error = cudaStreamWaitEvent(stream, lanes.Event(Index(other)), 0);
      if (error == cudaSuccess) error = CaptureNode(nodes[k], stream, leaves);
      if (error == cudaSuccess) error = cudaEventRecord(lanes.Event(k), stream);
    }
    for (int lane = 1; lane < kLanes && error == cudaSuccess; ++lane) {
      error = cudaEventRecord(lanes.Event(root + Index(lane)), lanes.Stream(lane));
      if (error == cudaSuccess) error = cudaStreamWaitEvent(origin, lanes.Event(root + Index(lane)), 0);
    }
    const cudaError_t ended = cudaStreamEndCapture(origin, graph);
    return error != cudaSuccess ? error : ended;
  }
  cudaError_t CaptureNode(const GraphNode& node, cudaStream_t stream, Leaves& leaves) {
    const Leaf& leaf = leaves.variant.leaves[leaves.next];
    LeafState& state = leaves.states[leaves.next++];
    switch (node.kind) {
      case GraphNode::Kind::kKernel: WorkOfNode<<<GridOf(node), 1, 0, stream>>>(state.runs); return cudaGetLastError();
      case GraphNode::Kind::kMemset:
        return cudaMemsetAsync(PlaceOf(leaf.cell), static_cast<int>(leaf.fill.base & 0xFF), kCellBytes, stream);
      case GraphNode::Kind::kCopy:
        return cudaMemcpyAsync(PlaceOf(leaf.cell), PlaceOf(leaf.source), kCellBytes, cudaMemcpyDefault, stream);
      default: return cudaLaunchHostFunc(stream, CallHostWork, &state.host);
    }
  }

  // --- afterwards ---

  void Finish() {
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) Fail(std::string("at the end: ") + cudaGetErrorName(error));
    JudgeRecords();
    JudgeCells();
    CleanUp();
  }
  void JudgeRecords() {
    for (std::size_t i = 0; i < model_.accesses.size(); ++i) {
      const Access& access = model_.accesses[i];
      const Record& record = *records_[i];
      if (record.fault != Record::kNone) Fail(DescribeFault(static_cast<int>(i), record));
      if (access.cell < 0 || access.agent == Agent::kCopy || access.agent == Agent::kMemset) continue;
      for (int block = 0; block < access.grid; ++block) {
        if (record.runs[block] != 1)
          Fail(model_.WorkName(static_cast<int>(i)) + ": block " + std::to_string(block) + " ran " +
               std::to_string(record.runs[block]) + " times");
      }
    }
    for (const auto& variant : variants_) {
      for (const LeafState& state : variant) {
        if (state.runs != nullptr && state.runs->overrun != 0)
          Fail("a graph's node ran more often than it was launched");
        if (state.condition != nullptr &&
            (state.condition->overrun != 0 || state.condition->next != state.condition->count))
          Fail("a condition was set " + std::to_string(state.condition->next) + " times, not " +
               std::to_string(state.condition->count));
      }
    }
  }
  std::string DescribeFault(int number, const Record& record) const {
    const Access& access = model_.accesses[Index(number)];
    char words[64];
    std::string text =
        Describe(model_.operations[Index(access.operation)]) + (access.leaf >= 0 ? ", " + model_.WorkName(number) : "");
    if (record.fault == Record::kRead) {
      const Access::Read& read = access.reads[record.fault_read];
      std::snprintf(words, sizeof words, "saw %08x, not %08x", record.seen,
                    read.value.word(static_cast<int>(record.fault_word)));
      text += ": " + model_.CellName(read.cell) + " word " + std::to_string(record.fault_word) +
              (record.fault_late != 0 ? " at its end " : " at its begin ") + words + " (" +
              Whose(read.cell, record.seen, record.fault_word) + "); " + model_.WorkName(read.other) +
              (read.too_early ? " has to come behind it" : " has to come before it");
    } else {
      std::snprintf(words, sizeof words, "%08x", record.seen);
      text += ": its own cell " + model_.CellName(access.cell) +
              (record.fault == Record::kOwnBefore ? " had before it " : " was changed meanwhile to ") + words + " (" +
              Whose(access.cell, record.seen, record.fault_word) + ")";
    }
    return text;
  }
  /// Whose value that is.
  std::string Whose(int cell, std::uint32_t seen, std::uint32_t word) const {
    const Value initial = model_.cells[Index(cell)].initial;
    for (std::size_t i = 0; i < model_.accesses.size(); ++i) {
      if (model_.accesses[i].cell < 0) continue;
      const std::uint32_t value = model_.accesses[i].value.word(static_cast<int>(word));
      if (value == seen) return "what " + model_.WorkName(static_cast<int>(i)) + " writes";
      if (~value == seen) return model_.WorkName(static_cast<int>(i)) + " is at it";
    }
    return initial.word(static_cast<int>(word)) == seen ? "nobody has written it" : "nobody writes that";
  }
  void JudgeCells() {
    if (cudaMemcpy(stage_.copy.data(), stage_.cells[0], stage_.copy.size() * sizeof(std::uint32_t),
                   cudaMemcpyDeviceToHost) != cudaSuccess)
      return Fail("the cells cannot be read");
    for (std::size_t c = 0; c < model_.cells.size(); ++c) {
      const Cell& cell = model_.cells[c];
      if (cell.memory == Memory::kBlock) continue;
      const std::uint32_t* const words =
          cell.memory == Memory::kDevice ? stage_.copy.data() + Index(cell.index) * kWords : Place(cell);
      for (int word = 0; word < kWords; ++word) {
        if (words[word] == cell.final.word(word)) continue;
        char text[128];
        std::snprintf(text, sizeof text, " word %d has %08x at the end, not %08x (", word, words[word],
                      cell.final.word(word));
        Fail(model_.CellName(static_cast<int>(c)) + text +
             Whose(static_cast<int>(c), words[word], static_cast<std::uint32_t>(word)) + ")" +
             (cell.writers.empty() ? "" : ", written by " + model_.WorkName(cell.writers.back())));
        break;
      }
    }
  }
  void CleanUp() {
    for (const auto& [number, block] : blocks_) {
      if (block != nullptr && !freed_[number]) Expect(cudaFree(block), "cudaFree at the end");
    }
    for (const auto& [number, graph] : graphs_)
      if (graph != nullptr) Expect(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy at the end");
    for (const auto& [number, event] : events_)
      if (event != nullptr) Expect(cudaEventDestroy(event), "cudaEventDestroy at the end");
    for (const auto& [number, stream] : streams_)
      if (stream != nullptr) Expect(cudaStreamDestroy(stream), "cudaStreamDestroy at the end");
    for (const auto& [number, pool] : pools_)
      if (pool != nullptr) Expect(cudaMemPoolDestroy(pool), "cudaMemPoolDestroy at the end");
  }
  void Expect(cudaError_t error, const char* what) {
    if (error != cudaSuccess) Fail(std::string(what) + ": " + cudaGetErrorName(error));
  }

  void Fail(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failures_.push_back(text);
  }
  std::string Places() const {
    std::string text;
    for (int thread = 0; thread < model_.threads; ++thread) {
      const int at = at_[Index(thread)].load();
      if (at >= 0) text += (text.empty() ? "" : "; ") + std::string("in ") + Describe(model_.operations[Index(at)]);
    }
    return text.empty() ? "all calls have answered" : text;
  }

  Stage::Impl& stage_;
  const Model& model_;
  const Limits& limits_;
  Arena arena_;
  int counts_[4] = {};
  std::vector<Record*> records_;
  std::vector<HostWork> host_works_;
  std::vector<std::vector<LeafState>> variants_;
  std::map<int, cudaStream_t> streams_;
  std::map<int, cudaEvent_t> events_;
  std::map<int, cudaMemPool_t> pools_;
  std::map<int, cudaGraphExec_t> graphs_;
  std::map<int, const Operation*> made_by_;
  std::map<int, void*> blocks_;
  std::map<int, bool> freed_;
  std::map<int, int> block_cells_;
  std::atomic<int> made_[kMostThreads] = {}, at_[kMostThreads] = {}, enters_[kMostThreads] = {};
  std::atomic<bool> opened_all_{false};
  std::mutex mutex_;
  std::vector<std::string> failures_;
};

}  // namespace

Stage::Impl::Impl() : pageable(kCells * kWords) {
  void* memory = nullptr;
  Must(cudaMalloc(&memory, kCells * kCellBytes), "cudaMalloc");
  cells[0] = static_cast<std::uint32_t*>(memory);
  Must(cudaHostAlloc(&memory, kCells * kCellBytes, cudaHostAllocDefault), "cudaHostAlloc");
  cells[1] = static_cast<std::uint32_t*>(memory);
  Must(cudaMallocManaged(&memory, kCells * kCellBytes), "cudaMallocManaged");
  cells[2] = static_cast<std::uint32_t*>(memory);
  cells[3] = pageable.data();
  Must(cudaHostAlloc(&memory, kArena, cudaHostAllocDefault), "cudaHostAlloc");
  arena_memory = static_cast<std::byte*>(memory);
  Must(cudaHostAlloc(&memory, kMostGates * sizeof(std::uint32_t), cudaHostAllocDefault), "cudaHostAlloc");
  flags = static_cast<std::uint32_t*>(memory);
  cudaDriverEntryPointQueryResult found;
  void* function = nullptr;
  Must(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function, 12000, cudaEnableDefault, &found),
       "cuStreamWaitValue32");
  wait_value = reinterpret_cast<decltype(wait_value)>(function);
}

Stage::Stage() : impl_(std::make_unique<Impl>()) {}
Stage::~Stage() = default;

std::vector<std::string> Stage::Play(const Model& model, const Limits& limits,
                                     void (*report)(const std::vector<std::string>&)) {
  return Run(*impl_, model, limits).Play(report);
}

}  // namespace order
