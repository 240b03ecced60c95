// Draws programs. Each host thread plays scenes one after the other, short sequences of calls that use order in a way
// of their own; the threads' scenes are interleaved at random, and share streams and events.
#include <deque>
#include <utility>

#include "program.h"

namespace order {
namespace {

class Drawing {
 public:
  Drawing(std::uint64_t seed, const Mix& mix) : mix_(mix), numbers_(seed ^ 0x5DEECE66Du) {
    program_.seed = seed;
    program_.threads = numbers_.Chance(40) ? 1 : 1 + numbers_.Below(mix.threads);
    queues_.resize(static_cast<std::size_t>(program_.threads));
    own_streams_.resize(queues_.size());
  }

  Program Draw() {
    for (int thread = 0; thread < program_.threads; ++thread) {
      thread_ = thread;
      MakeStreams(thread == 0 ? 2 : 1);
    }
    const int size = mix_.operations / 2 + numbers_.Below(mix_.operations);
    while (static_cast<int>(program_.operations.size()) < size) {
      thread_ = numbers_.Below(program_.threads);
      if (Queue().empty()) PlayScene();
      if (!Queue().empty()) Emit();
    }
    for (thread_ = 0; thread_ < program_.threads; ++thread_)
      while (!Queue().empty()) Emit();
    return program_;
  }

 private:
  std::deque<Operation>& Queue() { return queues_[static_cast<std::size_t>(thread_)]; }
  void Emit() {
    Operation operation = Queue().front();
    Queue().pop_front();
    operation.id = static_cast<int>(program_.operations.size());
    program_.operations.push_back(operation);
  }
  Operation& Add(Kind kind, int stream = 0, int object = -1) {
    Operation operation;
    operation.kind = kind;
    operation.thread = thread_;
    operation.stream = stream;
    operation.object = object;
    operation.salt = numbers_.Next();
    Queue().push_back(operation);
    return Queue().back();
  }

  /// Mostly short, seldom long: who comes too early has to meet somebody who is late.
  std::uint32_t Spin() {
    const int choice = numbers_.Below(10);
    if (choice < 4 || mix_.spin == 0) return 0;
    return static_cast<std::uint32_t>(numbers_.Next() % (choice < 8 ? mix_.spin / 8 + 1 : mix_.spin));
  }
  std::uint32_t LongSpin() { return mix_.spin / 2 + static_cast<std::uint32_t>(numbers_.Next() % (mix_.spin + 1)); }
  Memory AnyMemory(std::initializer_list<Memory> choices) {
    return choices.begin()[numbers_.Below(static_cast<int>(choices.size()))];
  }

  int NewStream(bool blocking) {
    const int stream = kFirstStream + streams_++;
    Operation& made = Add(Kind::kCreateStream, stream);
    made.blocking = blocking;
    return stream;
  }
  void MakeStreams(int count) {
    for (int i = 0; i < count; ++i) {
      const int stream = NewStream(numbers_.Chance(40));
      own_streams_[static_cast<std::size_t>(thread_)].push_back(stream);
      all_streams_.push_back(stream);
    }
  }
  int AStream() {
    const int choice = numbers_.Below(20);
    if (choice == 0) return kLegacy;
    if (choice <= 2) return kPerThread;
    const std::vector<int>& own = own_streams_[static_cast<std::size_t>(thread_)];
    const std::vector<int>& from = choice <= 13 && !own.empty() ? own : all_streams_;
    return from.empty() ? kPerThread : from[static_cast<std::size_t>(numbers_.Below(static_cast<int>(from.size())))];
  }
  int NewEvent() {
    Add(Kind::kCreateEvent, 0, events_);
    return events_++;
  }
  int AnEvent() {
    if (shared_events_.empty() || numbers_.Chance(40)) {
      shared_events_.push_back(NewEvent());
      return shared_events_.back();
    }
    return shared_events_[static_cast<std::size_t>(numbers_.Below(static_cast<int>(shared_events_.size())))];
  }

  // --- works ---

  void AddKernel(int stream, std::uint32_t spin, int block = -1) {
    Operation& kernel = Add(Kind::kKernel, stream, block);
    kernel.spin = spin;
    kernel.cooperative = mix_.cooperative && numbers_.Chance(5);
    kernel.grid = numbers_.Chance(70) ? 1 : 2 + numbers_.Below(3);
    kernel.block = numbers_.Chance(60) ? 1 : 32 << numbers_.Below(3);
    kernel.to =
        block >= 0 ? Memory::kBlock : AnyMemory({Memory::kDevice, Memory::kDevice, Memory::kPinned, Memory::kManaged});
  }
  void AddCopy(Kind kind, int stream, int block = -1) {
    Operation& copy = Add(kind, stream, block);
    copy.to =
        block >= 0 ? Memory::kBlock : AnyMemory({Memory::kDevice, Memory::kPinned, Memory::kPinned, Memory::kPageable});
    copy.from = AnyMemory({Memory::kDevice, Memory::kDevice, Memory::kPinned, Memory::kPageable});
  }
  void AddWork(int stream, int block = -1) {
    const int choice = numbers_.Below(12);
    if (choice < 7) return AddKernel(stream, Spin(), block);
    if (choice < 9) return AddCopy(Kind::kCopy, stream, block);
    if (choice < 11 || !mix_.host_functions) {
      Operation& fill = Add(Kind::kMemset, stream, block);
      fill.to = block >= 0 ? Memory::kBlock : AnyMemory({Memory::kDevice, Memory::kPinned, Memory::kManaged});
      return;
    }
    Operation& function = Add(Kind::kHostFunction, stream);
    function.spin = Spin() / 4;
    function.to = AnyMemory({Memory::kPinned, Memory::kPageable, Memory::kManaged});
  }
  void AddHostWork() {
    Operation& work = Add(Kind::kHostWork);
    work.spin = numbers_.Chance(20) ? Spin() : 0;
    work.to = AnyMemory({Memory::kPinned, Memory::kPageable});
  }
  void AddSync(int stream) {
    switch (numbers_.Below(8)) {
      case 0: Add(Kind::kSyncDevice); break;
      case 1: Add(Kind::kPollStream, stream); break;
      case 2: Add(Kind::kPeekStream, stream); break;
      case 3: AddCopy(Kind::kCopySync, kLegacy); break;
      default: Add(Kind::kSyncStream, stream); break;
    }
  }

  // --- scenes ---

  void PlayScene() {
    const int choice = numbers_.Below(100);
    if (choice < 25) return Works();
    if (choice < 50) return ForkAndJoin();
    if (choice < 56 && mix_.gates != Mix::Gates::kNone) return Gate();
    if (choice < 62 && mix_.gates != Mix::Gates::kNone && mix_.meanwhile && program_.threads > 1) return Meanwhile();
    if (choice < 68 && mix_.destroy) return DestroyStream();
    if (choice < 76 && mix_.blocks) return Block();
    if (choice < 84 && mix_.pools) return PoolBlock();
    if (choice < 95 && mix_.graphs) return Graph();
    if (choice < 97) return ThroughLegacyStream();
    return Synchronous();
  }
  void Works() {
    const int stream = AStream();
    for (int i = 1 + numbers_.Below(3); i > 0; --i) AddWork(stream);
    if (numbers_.Chance(30)) AddSync(stream);
  }
  void Synchronous() {
    if (numbers_.Chance(50)) AddHostWork();
    if (numbers_.Chance(50)) {
      AddCopy(Kind::kCopySync, kLegacy);
    } else {
      Operation& fill = Add(Kind::kMemsetSync, kLegacy);
      fill.to = AnyMemory({Memory::kDevice, Memory::kPinned, Memory::kManaged});
    }
    if (numbers_.Chance(50)) AddHostWork();
  }
  /// Two blocking streams have nothing between them but a work of the legacy stream that takes no time.
  void ThroughLegacyStream() {
    const int before = NewStream(true), behind = NewStream(true);
    AddKernel(before, LongSpin());
    int block = -1;
    switch (numbers_.Below(mix_.pools ? 3 : 2)) {
      case 0: Add(Kind::kWaitEvent, kLegacy, NewEvent()); break;  // never recorded
      case 1: {
        const int other = NewStream(false), event = NewEvent();
        Add(Kind::kRecord, other, event);
        Add(Kind::kSyncEvent, 0, event);
        Add(Kind::kWaitEvent, kLegacy, event);
        break;
      }
      default: Add(Kind::kAlloc, kLegacy, block = blocks_++); break;
    }
    AddWork(behind);
    if (block >= 0) Add(Kind::kFreeAsync, kLegacy, block);
  }
  void ForkAndJoin() {
    const int from = AStream(), to = AStream();
    const int event = AnEvent();
    AddWork(from);
    Add(Kind::kRecord, from, event);
    if (numbers_.Chance(30)) AddWork(from);
    Add(Kind::kWaitEvent, to, event);
    const int choice = numbers_.Below(5);
    if (choice == 0) Add(Kind::kRecord, from, event);  // the wait is for the record before
    if (choice == 1) {
      Add(Kind::kDestroyEvent, 0, event);
      Forget(event);
    }
    AddWork(to);
    if (choice == 2) Add(numbers_.Chance(50) ? Kind::kSyncEvent : Kind::kPollEvent, 0, event);
    if (choice == 3) Add(Kind::kPeekEvent, 0, event);
    if (choice >= 2 && numbers_.Chance(50)) AddHostWork();
  }
  void Forget(int event) {
    for (std::size_t i = 0; i < shared_events_.size(); ++i)
      if (shared_events_[i] == event) shared_events_.erase(shared_events_.begin() + static_cast<long>(i--));
  }
  /// The host awaits what lies before a kernel that waits for it, and looks at what lies behind.
  void Gate() {
    const int stream = numbers_.Chance(70) ? AStream() : NewStream(false);
    const int before = NewEvent(), behind = NewEvent();
    if (numbers_.Chance(60)) AddWork(stream);
    Add(Kind::kRecord, stream, before);
    const int gate = gates_++;
    Operation& closed = Add(Kind::kGate, stream, gate);
    closed.spin = Spin() / 8;
    closed.in_stream = numbers_.Chance(25);
    closed.to = AnyMemory({Memory::kDevice, Memory::kPinned, Memory::kManaged});
    if (numbers_.Chance(60)) AddWork(stream);
    Add(Kind::kRecord, stream, behind);
    if (numbers_.Chance(50)) {
      const int other = AStream();
      Add(Kind::kWaitEvent, other, behind);
      AddWork(other);
    }
    for (int i = numbers_.Below(3); i > 0; --i) AddWhileClosed(stream, before, behind);
    if (numbers_.Chance(70)) Add(numbers_.Chance(60) ? Kind::kSyncEvent : Kind::kPollEvent, 0, before);
    if (numbers_.Chance(40)) Add(Kind::kPeekEvent, 0, behind);
    if (numbers_.Chance(30)) Add(Kind::kDestroyEvent, 0, behind);
    Add(Kind::kOpenGate, 0, gate);
    if (numbers_.Chance(40)) Add(Kind::kSyncStream, stream);
  }
  /// While one thread waits for a kernel that waits for the host, another one gives a second such kernel, and opens the
  /// first. These calls come one after the other in the program.
  void Meanwhile() {
    const int waits = thread_, gives = (thread_ + 1 + numbers_.Below(program_.threads - 1)) % program_.threads;
    const int first = gates_++, second = gates_++;
    int stream = 0;
    AddNow(waits, [&] {
      stream = NewStream(numbers_.Chance(50));
      const int event = NewEvent();
      Add(Kind::kGate, stream, first);
      if (numbers_.Chance(50)) AddWork(stream);
      Add(Kind::kRecord, stream, event);
      switch (numbers_.Below(5)) {
        case 0: Add(Kind::kSyncEvent, 0, event); break;
        case 1: Add(Kind::kSyncDevice); break;
        case 2: Add(Kind::kCopy, stream).to = Memory::kPageable; break;
        case 3: {
          Operation& copy = Add(Kind::kCopy, stream);
          copy.from = copy.to = Memory::kPinned;
          break;
        }
        default: Add(Kind::kSyncStream, stream); break;
      }
    });
    const int waiting = program_.operations.back().id;
    AddNow(gives, [&] {
      Add(Kind::kGate, stream, second).other = waiting;
      Add(Kind::kOpenGate, 0, first);
    });
    AddNow(waits, [&] { Add(Kind::kOpenGate, 0, second); });
  }
  /// Adds calls of a thread that come next in the program, whatever its scene still has to do.
  template <typename Scene>
  void AddNow(int thread, Scene scene) {
    const int before = std::exchange(thread_, thread);
    std::deque<Operation> rest;
    rest.swap(Queue());
    scene();
    while (!Queue().empty()) Emit();
    rest.swap(Queue());
    thread_ = before;
  }
  void AddWhileClosed(int stream, int before, int behind) {
    switch (numbers_.Below(6)) {
      case 0: Add(Kind::kPeekStream, stream); break;
      case 1: Add(Kind::kPeekEvent, 0, numbers_.Chance(50) ? before : behind); break;
      case 2: AddHostWork(); break;
      case 3: {
        const int other = AStream();
        AddWork(other);
        if (numbers_.Chance(60)) Add(Kind::kSyncStream, other);
        break;
      }
      case 4: {
        const int other = AStream();
        Add(Kind::kWaitEvent, other, before);
        AddCopy(Kind::kCopy, other);
        break;
      }
      default: AddWork(stream); break;
    }
  }
  /// A stream ends with work left to do.
  void DestroyStream() {
    const int stream = NewStream(numbers_.Chance(30));
    const int event = NewEvent();
    if (numbers_.Chance(30)) Add(Kind::kWaitEvent, stream, AnEvent());
    AddKernel(stream, LongSpin());
    if (numbers_.Chance(50)) AddWork(stream);
    if (numbers_.Chance(50)) Add(Kind::kRecord, stream, event);
    Add(Kind::kDestroyStream, stream);
    switch (numbers_.Below(4)) {
      case 0: Add(Kind::kSyncDevice); break;
      case 1: {
        const int other = AStream();
        Add(Kind::kWaitEvent, other, event);
        AddWork(other);
        break;
      }
      case 2: AddWork(kLegacy); break;
      default: Add(Kind::kSyncEvent, 0, event); break;
    }
  }
  /// Memory is freed that a kernel has not done with, and is somebody else's then.
  void Block() {
    const int stream = numbers_.Chance(60) ? AStream() : NewStream(false);
    const int first = blocks_++;
    Add(Kind::kMalloc, 0, first);
    AddKernel(stream, LongSpin(), first);
    AddWork(stream, first);
    if (mix_.destroy && numbers_.Chance(40)) Add(Kind::kDestroyStream, stream);
    Add(Kind::kFree, 0, first);
    if (numbers_.Chance(30)) return;
    const int second = blocks_++;
    Add(Kind::kMalloc, 0, second);
    AddWork(AStream(), second);
    if (numbers_.Chance(50)) Add(Kind::kFree, 0, second);
  }
  void PoolBlock() {
    const int stream = AStream();
    int pool = -1;
    if (numbers_.Chance(40)) {
      pool = pools_++;
      Add(Kind::kCreatePool, 0, pool);
    }
    for (int turns = 1 + numbers_.Below(3); turns > 0; --turns) {
      const int block = blocks_++;
      Add(Kind::kAlloc, stream, block).other = pool;
      AddKernel(stream, Spin(), block);
      if (numbers_.Chance(50)) AddWork(stream, block);
      if (pool >= 0 && turns == 1) Add(Kind::kDestroyPool, 0, pool);
      if (numbers_.Chance(30)) {
        const int other = AStream(), event = NewEvent();
        Add(Kind::kRecord, stream, event);
        Add(Kind::kWaitEvent, other, event);
        AddWork(other, block);
        Add(Kind::kFreeAsync, other, block);
      } else if (numbers_.Chance(85)) {
        Add(Kind::kFreeAsync, stream, block);
      }
    }
  }

  GraphNode::Kind NodeKind(int depth, bool captured) {
    const int choice = numbers_.Below(20);
    if (choice < 10) return GraphNode::Kind::kKernel;
    if (choice < 12) return GraphNode::Kind::kMemset;
    if (choice < 14) return GraphNode::Kind::kCopy;
    if (choice < 15) return mix_.host_functions ? GraphNode::Kind::kHost : GraphNode::Kind::kKernel;
    if (captured) return GraphNode::Kind::kKernel;
    if (choice < 16) return GraphNode::Kind::kEmpty;
    if (depth == 1 && choice > 18 && mix_.conditions) return GraphNode::Kind::kIf;
    if (depth != 0) return GraphNode::Kind::kKernel;
    if (choice < 17) return GraphNode::Kind::kChild;
    if (!mix_.conditions) return GraphNode::Kind::kKernel;
    return choice < 18 ? GraphNode::Kind::kIf : GraphNode::Kind::kWhile;
  }
  /// Bodies of conditions may not hold host's works, children no conditions.
  static bool MayHold(int depth, bool in_condition, GraphNode::Kind kind) {
    const bool condition = kind == GraphNode::Kind::kIf || kind == GraphNode::Kind::kWhile;
    if (!in_condition) return depth == 0 || !condition;
    return kind == GraphNode::Kind::kKernel || kind == GraphNode::Kind::kMemset || kind == GraphNode::Kind::kEmpty ||
           condition;
  }
  std::vector<GraphNode> Nodes(int count, int depth, bool captured, bool in_condition) {
    std::vector<GraphNode> nodes;
    for (int i = 0; i < count; ++i) {
      GraphNode node;
      node.kind = NodeKind(depth, captured);
      if (!MayHold(depth, in_condition, node.kind)) node.kind = GraphNode::Kind::kKernel;
      node.salt = numbers_.Next();
      node.lane = numbers_.Below(3);
      if (node.kind == GraphNode::Kind::kKernel || node.kind == GraphNode::Kind::kHost) node.spin = Spin() / 2;
      for (int other = 0; other < i; ++other) {
        // The stream's own order.
        const bool lane = captured && nodes[static_cast<std::size_t>(other)].lane == node.lane;
        if (numbers_.Chance(other == i - 1 ? 60 : 25) || lane) node.after.push_back(other);
      }
      if (node.kind == GraphNode::Kind::kChild) node.body = Nodes(1 + numbers_.Below(3), 1, false, in_condition);
      if (node.kind == GraphNode::Kind::kIf)
        node.turns = numbers_.Below(2), node.body = Nodes(1 + numbers_.Below(2), depth + 1, false, true);
      if (node.kind == GraphNode::Kind::kWhile)
        node.turns = 1 + numbers_.Below(4), node.body = Nodes(1 + numbers_.Below(2), 1, false, true);
      nodes.push_back(node);
    }
    return nodes;
  }
  void Graph() {
    const int graph = graphs_++;
    Operation& made = Add(Kind::kMakeGraph, 0, graph);
    made.captured = numbers_.Chance(35);
    made.nodes = Nodes(1 + numbers_.Below(5), 0, made.captured, false);
    made.cloned = !made.captured && numbers_.Chance(25);
    for (const GraphNode& node : made.nodes)  // what has conditions cannot be cloned
      if (node.kind == GraphNode::Kind::kIf || node.kind == GraphNode::Kind::kWhile) made.cloned = false;
    int stream = AStream();
    for (int turns = 1 + numbers_.Below(4); turns > 0; --turns) {
      if (numbers_.Chance(40)) AddWork(stream);
      Add(Kind::kLaunchGraph, stream, graph);
      if (mix_.updates && numbers_.Chance(40)) Add(Kind::kUpdateGraph, 0, graph);
      if (numbers_.Chance(40)) AddWork(stream);
      if (numbers_.Chance(30)) stream = AStream();
      if (numbers_.Chance(15)) AddSync(stream);
    }
    if (mix_.destroy && numbers_.Chance(50)) Add(Kind::kDestroyGraph, 0, graph);
    else if (numbers_.Chance(30)) Add(Kind::kSyncStream, stream);
  }

  const Mix& mix_;
  Numbers numbers_;
  Program program_;
  int thread_ = 0;
  std::vector<std::deque<Operation>> queues_;
  std::vector<std::vector<int>> own_streams_;
  std::vector<int> all_streams_, shared_events_;
  int streams_ = 0, events_ = 0, gates_ = 0, blocks_ = 0, pools_ = 0, graphs_ = 0;
};

}  // namespace

Program Draw(std::uint64_t seed, const Mix& mix) { return Drawing(seed, mix).Draw(); }

}  // namespace order
