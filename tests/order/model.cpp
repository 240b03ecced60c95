#include "model.h"

#include <algorithm>
#include <map>
#include <set>

namespace order {
namespace {

constexpr int kThreadStreams = 1'000'000;  ///< the number of thread t's default stream is this and t
constexpr std::size_t kMostReads = 6;

std::uint64_t Mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
  return Numbers(a + 0x632BE59BD9B4E019u * b + 0xD6E8FEB86659FD93u * c).Next();
}

bool IsWork(Kind kind) {
  switch (kind) {
    case Kind::kKernel:
    case Kind::kHostFunction:
    case Kind::kCopy:
    case Kind::kCopySync:
    case Kind::kMemset:
    case Kind::kMemsetSync:
    case Kind::kGate:
    case Kind::kRecord:
    case Kind::kWaitEvent:
    case Kind::kAlloc:
    case Kind::kFreeAsync:
    case Kind::kLaunchGraph: return true;
    default: return false;
  }
}
bool UsesStream(Kind kind) {
  return IsWork(kind) || kind == Kind::kSyncStream || kind == Kind::kPollStream || kind == Kind::kPeekStream ||
         kind == Kind::kDestroyStream;
}
bool UsesEvent(Kind kind) {
  switch (kind) {
    case Kind::kRecord:
    case Kind::kWaitEvent:
    case Kind::kSyncEvent:
    case Kind::kPollEvent:
    case Kind::kPeekEvent:
    case Kind::kDestroyEvent: return true;
    default: return false;
  }
}
bool IsHost(Memory memory) { return memory == Memory::kPinned || memory == Memory::kPageable; }

/// Which calls of a program can be made, and which calls of other threads each has to come behind.
class Resolved {
 public:
  Resolved(const Program& program, const std::set<int>& plain_gates)
      : threads_(program.threads), made_(static_cast<std::size_t>(program.threads)) {
    std::map<int, int> opens;  // gate to the operation that opens it
    for (const Operation& operation : program.operations)
      if (operation.kind == Kind::kOpenGate) opens.emplace(operation.object, operation.id);
    for (Operation operation : program.operations) {
      if (operation.kind == Kind::kGate &&
          (plain_gates.count(operation.object) != 0 || opens.count(operation.object) == 0)) {
        operation.kind = Kind::kKernel, operation.object = -1;
      }
      behind_.clear();
      if (Take(operation)) Add(operation);
    }
  }

  std::vector<Operation> operations;
  std::vector<Call> calls;
  std::vector<int> record;  ///< of a call about an event: the call that recorded it last, or -1
  /// kOpenGate: the gate's; kFreeAsync, kFree: the allocation; kLaunchGraph: the launch before, or -1.
  std::vector<int> launch;
  std::vector<int> during;         ///< kGate: the call of another thread that waits already when it is launched, or -1
  std::map<int, int> alloc, free;  ///< block to calls
  std::map<int, bool> blocking;    ///< created stream to whether it is a blocking one

  /// Whether the host made the call `a`, and had its answer, before it made `b`.
  bool Before(int a, int b) const { return known_[Index(b)][Index(operations[Index(a)].thread)] > place_[Index(a)]; }

 private:
  struct Object {
    bool alive = true;
    int change = -1;        ///< the call that last made or changed it
    std::vector<int> uses;  ///< since then
    int variant = -1;       ///< a graph's
    int stream = 0;         ///< a block's
    int last_launch = -1;
    int record = -1;
  };
  static std::size_t Index(int i) { return static_cast<std::size_t>(i); }
  int next() const { return static_cast<int>(operations.size()); }

  void Behind(int call) {
    if (call >= 0) behind_.push_back(call);
  }
  void Use(Object& object) {
    Behind(object.change);
    object.uses.push_back(next());
  }
  void Change(Object& object) {
    Behind(object.change);
    for (const int use : object.uses) Behind(use);
    object.uses.clear();
    object.change = next();
  }
  static Object* Find(std::map<int, Object>& objects, int number) {
    const auto found = objects.find(number);
    return found != objects.end() && found->second.alive ? &found->second : nullptr;
  }
  static bool New(std::map<int, Object>& objects, int number, int call) {
    Object made;
    made.change = call;
    return objects.emplace(number, made).second;
  }
  int StreamNumber(const Operation& operation) const {
    return operation.stream == kPerThread ? kThreadStreams + operation.thread : operation.stream;
  }

  /// Whether the call can be made; notes what it comes behind.
  bool Take(Operation& operation) {
    const Kind kind = operation.kind;
    record_ = launch_ = variant_ = other_stream_ = during_ = -1;
    Object* stream = nullptr;
    if (UsesStream(kind) && operation.stream >= kFirstStream) {
      stream = Find(streams_, operation.stream);
      if (stream == nullptr) return false;
    }
    if (UsesEvent(kind) && Find(events_, operation.object) == nullptr) return false;
    if (!TakeOther(operation)) return false;
    if (UsesEvent(kind)) {
      Object& event = events_[operation.object];
      record_ = event.record;
      if (kind == Kind::kRecord || kind == Kind::kDestroyEvent) Change(event);
      else Use(event);
      if (kind == Kind::kRecord) event.record = next();
      if (kind == Kind::kDestroyEvent) event.alive = false;
    }
    if (stream != nullptr) {
      if (kind != Kind::kDestroyStream) {
        Use(*stream);
      } else {
        if (!stream->alive || operation.stream < kFirstStream) return false;
        Change(*stream);
        stream->alive = false;
      }
    }
    return kind != Kind::kDestroyStream || stream != nullptr;
  }

  /// Of calls about gates, graphs, blocks and pools, and those that make objects.
  bool TakeOther(Operation& operation) {
    switch (operation.kind) {
      case Kind::kCreateStream:
        blocking[operation.stream] = operation.blocking;
        return New(streams_, operation.stream, next());
      case Kind::kCreateEvent: return New(events_, operation.object, next());
      case Kind::kCreatePool: return New(pools_, operation.object, next());
      case Kind::kGate: return TakeGate(operation);
      case Kind::kOpenGate: return TakeOpen(operation);
      case Kind::kDestroyPool: return TakeDestroyPool(operation);
      case Kind::kAlloc:
      case Kind::kMalloc: return TakeAlloc(operation);
      case Kind::kFreeAsync:
      case Kind::kFree: return TakeFree(operation);
      case Kind::kMakeGraph:
      case Kind::kLaunchGraph:
      case Kind::kUpdateGraph:
      case Kind::kDestroyGraph: return TakeGraph(operation);
      case Kind::kKernel:
      case Kind::kMemset:
      case Kind::kCopy: {
        Object* const block = operation.object >= 0 ? Find(blocks_, operation.object) : nullptr;
        if (block == nullptr) operation.object = -1;
        else Behind(block->change);
        return true;
      }
      case Kind::kSyncDevice:  // an error while any stream of the device is captured
        Use(capture_);
        return true;
      default: return true;
    }
  }
  bool TakeGate(Operation& operation) {
    const auto found = index_.find(operation.other);
    during_ = found != index_.end() && operations[Index(found->second)].thread != operation.thread ? found->second : -1;
    if (during_ < 0) {
      operation.other = -1;
    } else if (const int place = place_[Index(during_)]; place > 0) {
      Behind(made_[Index(operations[Index(during_)].thread)][Index(place - 1)]);
    }
    return New(gates_, operation.object, next());
  }
  bool TakeOpen(const Operation& operation) {
    Object* const gate = Find(gates_, operation.object);
    if (gate == nullptr) return false;
    launch_ = gate->change;
    Change(*gate);
    gate->alive = false;
    return true;
  }
  bool TakeDestroyPool(const Operation& operation) {
    Object* const pool = Find(pools_, operation.object);
    if (pool == nullptr) return false;
    Change(*pool);
    pool->alive = false;
    return true;
  }
  bool TakeAlloc(Operation& operation) {
    Object* const pool =
        operation.kind == Kind::kAlloc && operation.other >= 0 ? Find(pools_, operation.other) : nullptr;
    if (pool == nullptr) operation.other = -1;
    if (!New(blocks_, operation.object, next())) return false;
    blocks_[operation.object].stream = operation.kind == Kind::kAlloc ? StreamNumber(operation) : -1;
    if (pool != nullptr) Use(*pool);
    alloc[operation.object] = next();
    return true;
  }
  bool TakeFree(const Operation& operation) {
    Object* const block = Find(blocks_, operation.object);
    if (block == nullptr) return false;
    if ((block->stream >= 0) != (operation.kind == Kind::kFreeAsync)) return false;
    if (operation.kind == Kind::kFreeAsync && block->stream != StreamNumber(operation)) {
      // It goes behind the stream that the block came from, which has to be there.
      const bool thread_stream = block->stream >= kThreadStreams;
      if (thread_stream ? block->stream != kThreadStreams + operation.thread
                        : block->stream != kLegacy && Find(streams_, block->stream) == nullptr)
        return false;
      if (!thread_stream && block->stream != kLegacy) Use(streams_[block->stream]);
      other_stream_ = block->stream;
    }
    launch_ = alloc[operation.object];
    Change(*block);
    block->alive = false;
    free[operation.object] = next();
    return true;
  }
  bool TakeGraph(const Operation& operation) {
    if (operation.kind == Kind::kMakeGraph) {
      if (!New(graphs_, operation.object, next())) return false;
      graphs_[operation.object].variant = variant_ = variants_++;
      if (operation.captured) captured_.insert(operation.object), Change(capture_);
      return true;
    }
    Object* const graph = Find(graphs_, operation.object);
    if (graph == nullptr) return false;
    Change(*graph);
    if (operation.kind == Kind::kUpdateGraph && captured_.count(operation.object) != 0) Change(capture_);
    if (operation.kind == Kind::kUpdateGraph) graph->variant = variants_++;
    variant_ = graph->variant;
    launch_ = graph->last_launch;
    if (operation.kind == Kind::kLaunchGraph) graph->last_launch = next();
    if (operation.kind == Kind::kDestroyGraph) graph->alive = false;
    return true;
  }

  void Add(const Operation& operation) {
    std::vector<int>& made = made_[Index(operation.thread)];
    std::vector<int> known = made.empty() ? std::vector<int>(Index(threads_), 0) : known_[Index(made.back())];
    Call call;
    std::map<int, int> waits;
    for (const int other : behind_) {
      const int thread = operations[Index(other)].thread;
      if (thread == operation.thread) continue;
      waits[thread] = std::max(waits[thread], place_[Index(other)] + 1);
      for (std::size_t t = 0; t < known.size(); ++t) known[t] = std::max(known[t], known_[Index(other)][t]);
    }
    for (const auto& [thread, count] : waits) {
      known[Index(thread)] = std::max(known[Index(thread)], count);
      call.waits.push_back({thread, count});
    }
    known[Index(operation.thread)] = static_cast<int>(made.size());
    call.stream = UsesStream(operation.kind) ? StreamNumber(operation) : -1;
    call.variant = variant_;
    call.other_stream = other_stream_;
    if (during_ >= 0) call.entered = {operations[Index(during_)].thread, place_[Index(during_)]};
    during.push_back(during_);
    index_[operation.id] = next();
    place_.push_back(static_cast<int>(made.size()));
    made.push_back(next());
    known_.push_back(std::move(known));
    calls.push_back(std::move(call));
    record.push_back(record_);
    launch.push_back(launch_);
    operations.push_back(operation);
  }

  int threads_;
  int variants_ = 0;
  std::vector<std::vector<int>> made_;  ///< each thread's calls
  /// For each call, how many calls of each thread have answered before it is made.
  std::vector<std::vector<int>> known_;
  std::vector<int> place_;  ///< of each call in its thread
  std::map<int, Object> streams_, events_, gates_, graphs_, blocks_, pools_;
  Object capture_;          ///< stands for the right to capture
  std::set<int> captured_;  ///< graphs
  std::vector<int> behind_;
  std::map<int, int> index_;  ///< id to call
  int record_ = -1, launch_ = -1, variant_ = -1, other_stream_ = -1, during_ = -1;
};

/// Nodes of the calls and works, the edges that are promised, and those that may be there besides.
class Order {
 public:
  int AddNode() {
    promised.emplace_back();
    possible.emplace_back();
    return static_cast<int>(promised.size()) - 1;
  }
  void Promise(int from, int to) {
    if (from != to) promised[static_cast<std::size_t>(from)].push_back(to);
  }
  void Allow(int from, int to) {
    if (from != to) possible[static_cast<std::size_t>(from)].push_back(to);
  }
  /// What comes before each node by what is promised.
  std::vector<Nodes> Ancestors() const {
    const std::size_t size = promised.size();
    std::vector<int> missing(size, 0);
    for (const auto& after : promised)
      for (const int to : after) ++missing[static_cast<std::size_t>(to)];
    std::vector<int> ready;
    for (std::size_t i = 0; i < size; ++i)
      if (missing[i] == 0) ready.push_back(static_cast<int>(i));
    std::vector<Nodes> ancestors(size, Nodes(size));
    sorted.clear();
    while (!ready.empty()) {
      const int node = ready.back();
      ready.pop_back();
      sorted.push_back(node);
      for (const int to : promised[static_cast<std::size_t>(node)]) {
        Nodes& those = ancestors[static_cast<std::size_t>(to)];
        those.AddAll(ancestors[static_cast<std::size_t>(node)]);
        those.Add(node);
        if (--missing[static_cast<std::size_t>(to)] == 0) ready.push_back(to);
      }
    }
    return ancestors;
  }

  std::vector<std::vector<int>> promised, possible;
  mutable std::vector<int> sorted;  ///< the nodes in an order that keeps what is promised
};

}  // namespace

/// Makes a model: the order first, then what each access reads.
class Builder {
 public:
  Builder(Model& model, const Program& program, const Mix& mix) : model_(model), mix_(mix) {
    std::set<int> plain_gates;
    for (;;) {
      Resolved resolved(program, plain_gates);
      resolved_ = &resolved;
      model_.operations = resolved.operations;
      model_.calls = resolved.calls;
      Reset();
      for (int i = 0; i < static_cast<int>(model_.operations.size()); ++i) AddCall(i);
      AllowUnordered();
      const int gate = NeverOpens();
      if (gate >= 0) {
        plain_gates.insert(gate);
        continue;
      }
      for (const auto& [open, work] : gate_edges_) order_.Promise(open, work);
      model_.ancestors = order_.Ancestors();
      for (std::size_t i = 0; i < order_.promised.size(); ++i)
        for (const int to : order_.promised[i]) before_[static_cast<std::size_t>(to)].push_back(static_cast<int>(i));
      PlaceCells();
      DecideQueries();
      AssignValues();
      FindFinalValues();
      resolved_ = nullptr;
      return;
    }
  }

 private:
  struct Work {
    int call, stream, first, last;
  };
  static std::size_t Index(int i) { return static_cast<std::size_t>(i); }

  void Reset() {
    order_ = Order();
    works_.clear();
    gate_edges_.clear();
    graph_cells_.clear();
    block_cells_.clear();
    last_of_thread_.assign(Index(model_.threads), -1);
    last_of_call_.assign(model_.operations.size(), -1);
    model_.accesses.clear();
    model_.cells.clear();
    model_.variants.clear();
    access_at_.clear();
    for (int& count : counts_) count = 0;
    // What copies take when nothing else is there to be copied.
    for (const Memory memory : {Memory::kDevice, Memory::kPinned, Memory::kPageable}) {
      const int cell = NewCell(memory);
      model_.cells[Index(cell)].initial = {0xC0DE0000u + static_cast<std::uint32_t>(memory), 3};
      constants_[Index(static_cast<int>(memory))] = cell;
    }
  }

  int AddNode() {
    access_at_.push_back(-1);
    before_.resize(access_at_.size());
    before_.back().clear();
    return order_.AddNode();
  }
  int NewCell(Memory memory) {
    Cell cell;
    cell.memory = memory;
    cell.index = counts_[Index(static_cast<int>(memory))]++;
    model_.cells.push_back(cell);
    return static_cast<int>(model_.cells.size()) - 1;
  }
  int NewAccess(int node, int call, Agent agent) {
    Access access;
    access.node = node;
    access.operation = call;
    access.agent = agent;
    access.salt = Mixed(model_.operations[Index(call)].salt, 17);
    access_at_[Index(node)] = static_cast<int>(model_.accesses.size());
    model_.accesses.push_back(access);
    return access_at_[Index(node)];
  }

  // --- streams ---

  bool Blocking(int stream) const {
    if (stream >= kThreadStreams) return true;
    const auto found = resolved_->blocking.find(stream);
    return found != resolved_->blocking.end() && found->second;
  }
  bool Related(int a, int b) const { return a == b || (a == kLegacy && Blocking(b)) || (b == kLegacy && Blocking(a)); }

  void AddWork(int call, int stream, int first, int last) {
    for (const Work& work : works_)
      if (Related(work.stream, stream) && (work.call == call || resolved_->Before(work.call, call)))
        order_.Promise(work.last, first);
    works_.push_back({call, stream, first, last});
  }
  /// Works of the stream that were given before the call end before `node`.
  template <typename Which>
  void PromiseWorks(int call, int node, Which which) {
    for (const Work& work : works_)
      if (which(work.stream) && (work.call == call || resolved_->Before(work.call, call)))
        order_.Promise(work.last, node);
  }

  // --- calls ---

  void AddCall(int i) {
    const Operation& operation = model_.operations[Index(i)];
    Call& call = model_.calls[Index(i)];
    call.begin = AddNode();
    if (last_of_thread_[Index(operation.thread)] >= 0)
      order_.Promise(last_of_thread_[Index(operation.thread)], call.begin);
    for (const auto& [thread, count] : call.waits) order_.Promise(NodeOfWait(thread, count), call.begin);
    call.end = Blocks(operation) ? AddNode() : call.begin;
    order_.Promise(call.begin, call.end);
    if (resolved_->during[Index(i)] >= 0)
      order_.Promise(model_.calls[Index(resolved_->during[Index(i)])].begin, call.begin);
    if (IsWork(operation.kind)) AddWorks(i);
    else AddHostCall(i);
    last_of_thread_[Index(operation.thread)] = model_.calls[Index(i)].end;
  }
  int NodeOfWait(int thread, int count) const {
    for (std::size_t i = 0; i < model_.operations.size(); ++i)
      if (model_.operations[i].thread == thread && --count == 0) return model_.calls[i].end;
    return -1;
  }
  static bool Blocks(const Operation& operation) {
    switch (operation.kind) {
      case Kind::kCopy:
      case Kind::kCopySync:
      case Kind::kMemsetSync:
      case Kind::kSyncEvent:
      case Kind::kPollEvent:
      case Kind::kSyncStream:
      case Kind::kPollStream:
      case Kind::kSyncDevice:
      case Kind::kMalloc:
      case Kind::kFree:
      case Kind::kCreatePool:
      case Kind::kMakeGraph:
      case Kind::kUpdateGraph: return true;
      default: return false;
    }
  }

  /// The host's thread reads once more when the call has answered.
  void LookAfter(int i) { model_.calls[Index(i)].after = NewAccess(model_.calls[Index(i)].end, i, Agent::kHost); }

  void AddHostCall(int i) {
    const Operation& operation = model_.operations[Index(i)];
    Call& call = model_.calls[Index(i)];
    const int record = resolved_->record[Index(i)];
    const int stream = call.stream;
    const auto any = [](int) { return true; };
    switch (operation.kind) {
      case Kind::kHostWork: {
        call.access = NewAccess(call.begin, i, Agent::kHost);
        Access& access = model_.accesses[Index(call.access)];
        access.spin = operation.spin;
        access.cell = NewCell(operation.to == Memory::kPageable ? Memory::kPageable : Memory::kPinned);
        break;
      }
      case Kind::kOpenGate:
        call.before = NewAccess(call.begin, i, Agent::kHost);
        gate_edges_.push_back({call.begin, first_of_gate_[operation.object]});
        break;
      case Kind::kSyncEvent:
      case Kind::kPollEvent:
        if (record >= 0) order_.Promise(last_of_call_[Index(record)], call.end);
        LookAfter(i);
        break;
      case Kind::kSyncStream:
      case Kind::kPollStream:
        PromiseWorks(i, call.end, [&](int other) { return other == stream; });
        allowed_.push_back({i, stream, stream == kLegacy ? Allowed::kRelated : Allowed::kSame});
        LookAfter(i);
        break;
      case Kind::kPeekEvent:
      case Kind::kPeekStream: {
        const int seen = AddNode();  // only if the query says success
        order_.Promise(call.begin, seen);
        if (operation.kind == Kind::kPeekStream) PromiseWorks(i, seen, [&](int other) { return other == stream; });
        else if (record >= 0) order_.Promise(last_of_call_[Index(record)], seen);
        call.after = NewAccess(seen, i, Agent::kHost);
        break;
      }
      case Kind::kSyncDevice:
      case Kind::kFree:
        PromiseWorks(i, call.end, any);
        allowed_.push_back({i, -1, Allowed::kAll});
        LookAfter(i);
        break;
      case Kind::kMalloc:
      case Kind::kCreatePool:
      case Kind::kUpdateGraph:
      case Kind::kMakeGraph: allowed_.push_back({i, -1, Allowed::kAll}); break;
      default: break;
    }
    if (operation.kind == Kind::kMakeGraph || operation.kind == Kind::kUpdateGraph) AddVariant(i);
  }

  void AddWorks(int i) {
    const Operation& operation = model_.operations[Index(i)];
    Call& call = model_.calls[Index(i)];
    if (operation.kind == Kind::kLaunchGraph) return AddLaunch(i);
    const int node = AddNode();
    order_.Promise(call.begin, node);
    last_of_call_[Index(i)] = node;
    if (operation.kind == Kind::kFreeAsync && call.other_stream >= 0) {
      const int recorded = AddNode();
      order_.Promise(call.begin, recorded);
      AddWork(i, call.other_stream, recorded, recorded);
      order_.Promise(recorded, node);
    }
    AddWork(i, call.stream, node, node);
    switch (operation.kind) {
      case Kind::kKernel:
      case Kind::kGate: AddAccess(i, node, Agent::kKernel); break;
      case Kind::kHostFunction: AddAccess(i, node, Agent::kHost); break;
      case Kind::kMemset:
      case Kind::kMemsetSync: AddAccess(i, node, Agent::kMemset); break;
      case Kind::kCopy:
      case Kind::kCopySync: AddAccess(i, node, Agent::kCopy); break;
      case Kind::kWaitEvent:
        if (resolved_->record[Index(i)] >= 0) order_.Promise(last_of_call_[Index(resolved_->record[Index(i)])], node);
        break;
      default: break;
    }
    if (operation.kind == Kind::kGate)
      first_of_gate_[operation.object] = node, gate_node_.push_back({operation.object, node});
    PromiseAnswer(i, node);
  }

  /// When a copy or a fill has answered.
  void PromiseAnswer(int i, int node) {
    const Operation& operation = model_.operations[Index(i)];
    const bool copy = operation.kind == Kind::kCopy || operation.kind == Kind::kCopySync;
    const bool sync = operation.kind == Kind::kCopySync || operation.kind == Kind::kMemsetSync;
    if (!copy && !sync) return;
    Call& call = model_.calls[Index(i)];
    const bool pageable = copy && (operation.from == Memory::kPageable || operation.to == Memory::kPageable);
    const bool hosts = copy && IsHost(operation.from) && IsHost(operation.to);
    bool ends = false;  // the call answers behind the work
    if (copy && sync) ends = operation.from != Memory::kPageable && (IsHost(operation.from) || IsHost(operation.to));
    if (copy && operation.to == Memory::kPageable) ends = true;
    if (hosts) ends = true;
    if (operation.kind == Kind::kMemsetSync) ends = operation.to == Memory::kPinned;
    if (ends) order_.Promise(node, call.end);
    if (sync || pageable || hosts) allowed_.push_back({i, call.stream, Allowed::kRelated});
    LookAfter(i);
  }

  void AddAccess(int i, int node, Agent agent) {
    const Operation& operation = model_.operations[Index(i)];
    const int number = NewAccess(node, i, agent);
    model_.calls[Index(i)].access = number;
    Access& access = model_.accesses[Index(number)];
    access.spin = operation.spin;
    access.grid = operation.grid;
  }

  // --- graphs ---

  Memory GraphMemory(const GraphNode& node) const {
    const bool other = node.salt >> 8 & 1;
    switch (node.kind) {
      case GraphNode::Kind::kKernel:
        return other ? Memory::kPinned : node.salt >> 9 & 1 ? Memory::kManaged : Memory::kDevice;
      case GraphNode::Kind::kHost: return other ? Memory::kPinned : Memory::kPageable;
      default: return other ? Memory::kPinned : Memory::kDevice;
    }
  }

  void AddVariant(int i) {
    const Operation& operation = model_.operations[Index(i)];
    Call& call = model_.calls[Index(i)];
    call.variant = static_cast<int>(model_.variants.size());
    model_.variants.emplace_back();
    const std::vector<GraphNode>* nodes = &operation.nodes;
    if (operation.kind == Kind::kMakeGraph) graph_nodes_[operation.object] = nodes;
    else nodes = graph_nodes_[operation.object];
    int leaf = 0;
    AddLeaves(operation.object, call.variant, *nodes, leaf);
  }
  void AddLeaves(int graph, int variant, const std::vector<GraphNode>& nodes, int& next) {
    std::vector<int> cell_of(nodes.size(), -1);
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const GraphNode& node = nodes[k];
      const bool conditional = node.kind == GraphNode::Kind::kIf || node.kind == GraphNode::Kind::kWhile;
      if (node.kind == GraphNode::Kind::kIf) AddLeaf(variant, Leaf()), ++next;
      if (conditional || node.kind == GraphNode::Kind::kChild) AddLeaves(graph, variant, node.body, next);
      if (node.kind == GraphNode::Kind::kWhile) AddLeaf(variant, Leaf()), ++next;
      if (conditional || node.kind == GraphNode::Kind::kChild || node.kind == GraphNode::Kind::kEmpty) continue;
      Leaf leaf;
      leaf.node = &node;
      const auto place = std::make_pair(graph, next);
      if (graph_cells_.count(place) == 0) graph_cells_[place] = NewCell(GraphMemory(node));
      leaf.cell = cell_of[k] = graph_cells_[place];
      if (node.kind == GraphNode::Kind::kMemset) {
        leaf.fill = {
            static_cast<std::uint32_t>(1 + Mixed(node.salt, static_cast<std::uint64_t>(variant)) % 255) * 0x01010101u,
            0};
      }
      if (node.kind == GraphNode::Kind::kCopy) {
        leaf.source = constants_[Index(static_cast<int>(Memory::kPinned))];
        for (const int after : node.after) {
          const int cell = cell_of[Index(after)];
          if (cell >= 0 && model_.cells[Index(cell)].memory != Memory::kPageable &&
              model_.cells[Index(cell)].memory != Memory::kManaged)
            leaf.source = cell;
        }
      }
      AddLeaf(variant, leaf);
      ++next;
    }
  }
  void AddLeaf(int variant, const Leaf& leaf) { model_.variants[Index(variant)].leaves.push_back(leaf); }

  void AddLaunch(int i) {
    const Operation& operation = model_.operations[Index(i)];
    const int first = AddNode();
    order_.Promise(model_.calls[Index(i)].begin, first);
    const int before = resolved_->launch[Index(i)];
    if (before >= 0) order_.Promise(last_of_call_[Index(before)], first);
    int leaf = 0;
    const std::vector<int> ends = Expand(i, *graph_nodes_[operation.object], {first}, leaf);
    const int last = AddNode();
    for (const int end : ends) order_.Promise(end, last);
    last_of_call_[Index(i)] = last;
    AddWork(i, model_.calls[Index(i)].stream, first, last);
  }

  /// Nodes of one run of these nodes behind `entry`; answers what its end comes behind.
  std::vector<int> Expand(int i, const std::vector<GraphNode>& nodes, const std::vector<int>& entry, int& leaf) {
    std::vector<std::vector<int>> ends(nodes.size());
    std::vector<int> all;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      std::vector<int> entries;
      for (const int after : nodes[k].after)
        entries.insert(entries.end(), ends[Index(after)].begin(), ends[Index(after)].end());
      if (entries.empty()) entries = entry;
      ends[k] = ExpandNode(i, nodes[k], entries, leaf);
      all.insert(all.end(), ends[k].begin(), ends[k].end());
    }
    return all.empty() ? entry : all;
  }
  std::vector<int> ExpandNode(int i, const GraphNode& node, std::vector<int> entries, int& leaf) {
    switch (node.kind) {
      case GraphNode::Kind::kChild: return Expand(i, node.body, entries, leaf);
      case GraphNode::Kind::kIf: {
        entries = {Condition(i, entries, leaf++, node.turns != 0)};
        if (node.turns != 0) return Expand(i, node.body, entries, leaf);
        CountLeaves(node.body, leaf);
        return entries;
      }
      case GraphNode::Kind::kWhile: {
        const int begin = leaf;
        for (int turn = 0; turn < node.turns; ++turn) {
          leaf = begin;
          entries = Expand(i, node.body, entries, leaf);
          entries = {Condition(i, entries, leaf++, turn + 1 < node.turns)};
        }
        return entries;
      }
      default: break;
    }
    const int made = AddNode();
    for (const int entry : entries) order_.Promise(entry, made);
    if (node.kind == GraphNode::Kind::kEmpty) return {made};
    Agent agent = Agent::kKernel;
    if (node.kind == GraphNode::Kind::kHost) agent = Agent::kHost;
    if (node.kind == GraphNode::Kind::kMemset) agent = Agent::kMemset;
    if (node.kind == GraphNode::Kind::kCopy) agent = Agent::kCopy;
    const int number = NewAccess(made, i, agent);
    Leaf& its = model_.variants[Index(model_.calls[Index(i)].variant)].leaves[Index(leaf)];
    Access& access = model_.accesses[Index(number)];
    access.leaf = leaf++;
    access.run = static_cast<int>(its.runs.size());
    access.salt = Mixed(model_.operations[Index(i)].salt, static_cast<std::uint64_t>(access.leaf),
                        static_cast<std::uint64_t>(access.run));
    access.spin = node.spin;
    if (agent == Agent::kKernel) access.grid = GridOf(node);
    access.cell = its.cell;
    access.source = its.source;
    its.runs.push_back(number);
    model_.calls[Index(i)].runs.push_back(number);
    return {made};
  }
  int Condition(int i, const std::vector<int>& entries, int leaf, bool value) {
    const int made = AddNode();
    for (const int entry : entries) order_.Promise(entry, made);
    model_.variants[Index(model_.calls[Index(i)].variant)].leaves[Index(leaf)].conditions.push_back(value);
    return made;
  }
  static void CountLeaves(const std::vector<GraphNode>& nodes, int& leaf) {
    for (const GraphNode& node : nodes) {
      CountLeaves(node.body, leaf);
      if (node.kind != GraphNode::Kind::kEmpty && node.kind != GraphNode::Kind::kChild) ++leaf;
    }
  }

  // --- does it end? ---

  struct Allowed {
    enum Which { kSame, kRelated, kAll };
    int call, stream;
    Which which;
  };

  void AllowUnordered() {
    for (std::size_t a = 0; a < works_.size(); ++a) {
      for (std::size_t b = a + 1; b < works_.size(); ++b) {
        if (works_[a].call == works_[b].call || !Related(works_[a].stream, works_[b].stream)) continue;
        if (resolved_->Before(works_[a].call, works_[b].call)) continue;
        order_.Allow(works_[a].last, works_[b].first);
        order_.Allow(works_[b].last, works_[a].first);
      }
    }
    for (const Allowed& allowed : allowed_) {
      for (const Work& work : works_) {
        if (resolved_->Before(allowed.call, work.call) || GivenMeanwhile(allowed.call, work.call)) continue;
        const bool fits =
            allowed.which == Allowed::kAll ||
            (allowed.which == Allowed::kSame ? work.stream == allowed.stream : Related(work.stream, allowed.stream));
        if (fits) order_.Allow(work.last, model_.calls[Index(allowed.call)].end);
      }
    }
    // Memory that a stream takes may be what another one frees.
    for (const Work& work : works_) {
      if (model_.operations[Index(work.call)].kind != Kind::kAlloc) continue;
      for (const Work& other : works_)
        if (model_.operations[Index(other.call)].kind == Kind::kFreeAsync && !resolved_->Before(work.call, other.call))
          order_.Allow(other.last, work.first);
    }
    allowed_.clear();
  }

  /// Whether the call waited already when the work was given.
  bool GivenMeanwhile(int waiting, int work) const {
    for (int gate = 0; gate <= work; ++gate)
      if (resolved_->during[Index(gate)] == waiting && (gate == work || resolved_->Before(gate, work))) return true;
    return false;
  }

  /// A gate that might keep away the host that opens it, or -1.
  int NeverOpens() {
    if (gate_node_.empty()) return -1;
    if (mix_.gates == Mix::Gates::kNone) return TakeGates();
    if (mix_.gates == Mix::Gates::kAlone) {
      const std::vector<Nodes> ancestors = order_.Ancestors();
      for (const auto& [gate, node] : gate_node_)
        for (const Work& work : works_)
          if (!ancestors[Index(node)].Has(work.last)) order_.Allow(node, work.first);
    }
    std::map<int, int> open_node;
    for (std::size_t i = 0; i < model_.operations.size(); ++i)
      if (model_.operations[i].kind == Kind::kOpenGate) open_node[model_.operations[i].object] = model_.calls[i].begin;
    std::map<int, std::set<int>> keeps;  // gate to gates that might open only behind it
    for (const auto& [gate, node] : gate_node_) {
      const Nodes reached = Reached(node);
      for (const auto& [other, open] : open_node)
        if (reached.Has(open)) keeps[gate].insert(other);
    }
    for (std::size_t round = 0; round < gate_node_.size(); ++round)
      for (auto& [gate, others] : keeps)
        for (const int other : std::set<int>(others)) others.insert(keeps[other].begin(), keeps[other].end());
    int found = -1;
    for (const auto& [gate, others] : keeps)
      if (found < 0 && others.count(gate) != 0) found = gate;
    gate_node_.clear();
    return found;
  }
  int TakeGates() {
    const int gate = gate_node_.front().first;
    gate_node_.clear();
    return gate;
  }
  Nodes Reached(int from) const {
    Nodes reached(order_.promised.size());
    std::vector<int> open{from};
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      for (const auto* edges : {&order_.promised, &order_.possible}) {
        for (const int to : (*edges)[Index(node)]) {
          if (reached.Has(to)) continue;
          reached.Add(to);
          open.push_back(to);
        }
      }
    }
    return reached;
  }

  // --- who reads and writes what ---

  bool Before(int a, int b) const { return model_.Before(a, b); }

  static bool Reaches(Agent agent, Memory memory) {
    if (agent == Agent::kHost)
      return memory == Memory::kPinned || memory == Memory::kPageable || memory == Memory::kManaged;
    if (agent == Agent::kKernel) return memory != Memory::kPageable;
    return true;
  }

  /// Whether the access lies between the block's allocation and its end.
  bool InBlock(int block, const Access& access) const {
    const int alloc = resolved_->alloc.at(block);
    if (!resolved_->Before(alloc, access.operation)) return false;
    if (last_of_call_[Index(alloc)] >= 0 && !Before(last_of_call_[Index(alloc)], access.node)) return false;
    const auto found = resolved_->free.find(block);
    if (found == resolved_->free.end()) return true;
    const int work = last_of_call_[Index(found->second)];
    return Before(access.node, work >= 0 ? work : model_.calls[Index(found->second)].end);
  }

  void PlaceCells() {
    for (std::size_t a = 0; a < model_.accesses.size(); ++a) {
      Access& access = model_.accesses[a];
      const Operation& operation = model_.operations[Index(access.operation)];
      const bool own = model_.calls[Index(access.operation)].access == static_cast<int>(a);
      if (own && access.cell < 0) {
        if (operation.object >= 0 && operation.to == Memory::kBlock && InBlock(operation.object, access)) {
          access.cell = NewCell(Memory::kBlock);
          Cell& cell = model_.cells[Index(access.cell)];
          cell.block = operation.object;
          cell.index = block_cells_[operation.object]++;
          cell.known = false;
        } else {
          access.cell = NewCell(OwnMemory(operation));
        }
      }
      if (access.cell >= 0) model_.cells[Index(access.cell)].writers.push_back(static_cast<int>(a));
    }
  }
  static Memory OwnMemory(const Operation& operation) {
    Memory memory = operation.to;
    if (memory == Memory::kBlock) memory = Memory::kDevice;
    if ((operation.kind == Kind::kKernel || operation.kind == Kind::kGate) && memory == Memory::kPageable)
      memory = Memory::kPinned;
    if (operation.kind == Kind::kHostFunction && memory == Memory::kDevice) memory = Memory::kPinned;
    if ((operation.kind == Kind::kMemset || operation.kind == Kind::kMemsetSync) && memory == Memory::kPageable)
      memory = Memory::kDevice;
    return memory;
  }

  /// What a read of the cell at the node sees, if that is determined. `writer`: the access that wrote it, or -1.
  bool Seen(int cell, int node, Value& value, int& writer) const {
    const Cell& its = model_.cells[Index(cell)];
    writer = -1;
    for (const int w : its.writers) {
      const int other = model_.accesses[Index(w)].node;
      if (Before(other, node)) {
        if (writer < 0 || Before(model_.accesses[Index(writer)].node, other)) writer = w;
      } else if (other == node || !Before(node, other)) {
        return false;
      }
    }
    if (writer < 0 && !its.known) return false;
    value = writer < 0 ? its.initial : model_.accesses[Index(writer)].value;
    return true;
  }

  /// The next accesses that write, against or along the edges.
  std::vector<int> Neighbours(int node, const std::vector<std::vector<int>>& edges) const {
    std::vector<int> found;
    Nodes seen(access_at_.size());
    std::vector<int> open{node};
    while (!open.empty()) {
      const int one = open.back();
      open.pop_back();
      for (const int next : edges[Index(one)]) {
        if (seen.Has(next)) continue;
        seen.Add(next);
        const int access = access_at_[Index(next)];
        if (access >= 0 && model_.accesses[Index(access)].cell >= 0) found.push_back(access);
        else open.push_back(next);
      }
    }
    return found;
  }

  void AssignValues() {
    for (const int node : std::vector<int>(order_.sorted)) {
      const int number = access_at_[Index(node)];
      if (number < 0) continue;
      Access& access = model_.accesses[Index(number)];
      if (access.cell >= 0) {
        int writer = -1;
        access.knows_before = access.agent != Agent::kCopy && access.agent != Agent::kMemset && Seen0(access, writer);
        AssignValue(number);
      }
    }
    for (std::size_t a = 0; a < model_.accesses.size(); ++a) {
      Access& access = model_.accesses[a];
      if (access.agent == Agent::kKernel || access.agent == Agent::kHost) ChooseReads(access);
    }
  }
  /// What its own cell holds until it writes.
  bool Seen0(Access& access, int& writer) const {
    const Cell& its = model_.cells[Index(access.cell)];
    if (!its.known) return false;
    for (const int w : its.writers) {
      const int other = model_.accesses[Index(w)].node;
      if (other == access.node) continue;
      if (Before(other, access.node)) {
        if (writer < 0 || Before(model_.accesses[Index(writer)].node, other)) writer = w;
      } else if (!Before(access.node, other)) {
        return false;
      }
    }
    access.before = writer < 0 ? its.initial : model_.accesses[Index(writer)].value;
    return true;
  }
  void AssignValue(int number) {
    Access& access = model_.accesses[Index(number)];
    const Operation& operation = model_.operations[Index(access.operation)];
    const auto unique = static_cast<std::uint32_t>(Mixed(
        model_.seed, static_cast<std::uint64_t>(operation.id) << 20 | static_cast<std::uint64_t>(access.leaf + 1) << 10,
        static_cast<std::uint64_t>(access.operation)));
    if (access.agent == Agent::kKernel || access.agent == Agent::kHost) {
      access.value = {unique + static_cast<std::uint32_t>(access.run) * 0x10001u, 1};
    } else if (access.agent == Agent::kMemset) {
      access.value =
          access.leaf >= 0
              ? model_.variants[Index(model_.calls[Index(access.operation)].variant)].leaves[Index(access.leaf)].fill
              : Value{(1 + unique % 255) * 0x01010101u, 0};
    } else {
      int writer = -1;
      if (access.leaf < 0) access.source = ChooseSource(access);
      if (!Seen(access.source, access.node, access.value, writer))
        access.value = model_.cells[Index(access.source)].initial;
    }
  }
  /// A copy takes what a work before it wrote, if there is one whose memory fits.
  int ChooseSource(const Access& access) const {
    const Operation& operation = model_.operations[Index(access.operation)];
    const Memory from =
        operation.from == Memory::kBlock || operation.from == Memory::kManaged ? Memory::kDevice : operation.from;
    // Pageable memory is read before the call answers, whatever the stream still has to do.
    const int node = from == Memory::kPageable ? model_.calls[Index(access.operation)].begin : access.node;
    const std::vector<int> before = Neighbours(node, before_);
    for (std::size_t k = 0; k < before.size(); ++k) {
      const int cell = model_.accesses[Index(before[(k + access.salt) % before.size()])].cell;
      const Memory memory = model_.cells[Index(cell)].memory;
      Value value;
      int writer = -1;
      const bool fits = memory == from || (memory == Memory::kBlock && from == Memory::kDevice &&
                                           InBlock(model_.cells[Index(cell)].block, access));
      if (fits && cell != access.cell && Seen(cell, node, value, writer) &&
          model_.cells[Index(cell)].writers.size() == 1)
        return cell;
    }
    return constants_[Index(static_cast<int>(from))];
  }

  void ChooseReads(Access& access) {
    Numbers numbers(access.salt);
    std::vector<int> early = Neighbours(access.node, before_), late = Neighbours(access.node, order_.promised);
    Shuffle(early, numbers);
    Shuffle(late, numbers);
    for (std::size_t k = 0; k < 4; ++k) {  // some that are further away
      const int other = numbers.Below(static_cast<int>(model_.accesses.size()));
      const int node = model_.accesses[Index(other)].node;
      if (model_.accesses[Index(other)].cell < 0 || node == access.node) continue;
      if (Before(node, access.node)) early.push_back(other);
      else if (Before(access.node, node)) late.push_back(other);
    }
    std::set<int> taken{access.cell};
    for (std::size_t k = 0; k < std::max(early.size(), late.size()); ++k) {
      if (k < early.size()) TryRead(access, early[k], false, taken);
      if (k < late.size()) TryRead(access, late[k], true, taken);
    }
  }
  static void Shuffle(std::vector<int>& these, Numbers& numbers) {
    for (std::size_t k = these.size(); k > 1; --k)
      std::swap(these[k - 1], these[Index(numbers.Below(static_cast<int>(k)))]);
  }
  void TryRead(Access& access, int other, bool late, std::set<int>& taken) {
    if (access.reads.size() >= kMostReads) return;
    const int cell = model_.accesses[Index(other)].cell;
    const Cell& its = model_.cells[Index(cell)];
    if (!Reaches(access.agent, its.memory) || taken.count(cell) != 0) return;
    if (its.memory == Memory::kBlock && !InBlock(its.block, access)) return;
    Access::Read read{cell, {}, -1, late, other};
    if (!Seen(cell, access.node, read.value, read.writer)) return;
    taken.insert(cell);
    access.reads.push_back(read);
  }

  void FindFinalValues() {
    for (Cell& cell : model_.cells) {
      int last = -1;
      for (const int w : cell.writers)
        if (last < 0 || Before(model_.accesses[Index(last)].node, model_.accesses[Index(w)].node)) last = w;
      cell.final = last < 0 ? cell.initial : model_.accesses[Index(last)].value;
    }
  }

  // --- queries ---

  void DecideQueries() {
    for (std::size_t i = 0; i < model_.operations.size(); ++i) {
      const Operation& operation = model_.operations[i];
      if (operation.kind != Kind::kPeekEvent && operation.kind != Kind::kPeekStream) continue;
      Call& call = model_.calls[i];
      const int seen = model_.accesses[Index(call.after)].node;
      bool all = true, none = false;
      for (const int node : before_[Index(seen)]) {
        if (node == call.begin) continue;
        all = all && Before(node, call.begin);
        for (const auto& [open, work] : gate_edges_)
          none = none || ((node == work || Before(work, node)) && Before(call.begin, open));
      }
      // Other threads' works may have come into the stream meanwhile, and the default stream may stand for all that
      // wait for it.
      if (operation.kind == Kind::kPeekStream) {
        for (const Work& work : works_) {
          const bool its = call.stream == kLegacy ? Related(work.stream, kLegacy) : work.stream == call.stream;
          if (its && !resolved_->Before(static_cast<int>(i), work.call) && !Before(work.last, call.begin)) all = false;
        }
      }
      call.ready = none ? Call::Ready::kNo : all ? Call::Ready::kYes : Call::Ready::kEither;
    }
  }

  Model& model_;
  const Mix& mix_;
  const Resolved* resolved_ = nullptr;
  Order order_;
  std::vector<std::vector<int>> before_;
  std::vector<int> access_at_;  ///< node to access
  std::vector<Work> works_;
  std::vector<Allowed> allowed_;
  std::vector<std::pair<int, int>> gate_edges_;  ///< node that opens to the gate's
  std::vector<std::pair<int, int>> gate_node_;
  std::map<int, int> first_of_gate_;
  std::map<int, const std::vector<GraphNode>*> graph_nodes_;
  std::map<std::pair<int, int>, int> graph_cells_;
  std::map<int, int> block_cells_;
  std::vector<int> last_of_thread_, last_of_call_;
  int counts_[5] = {};
  int constants_[5] = {};
};

Model::Model(const Program& program, const Mix& mix) : seed(program.seed), threads(program.threads) {
  Builder(*this, program, mix);
}

std::string Model::CellName(int cell) const {
  static const char* const names[] = {"device", "pinned", "managed", "pageable", "block"};
  const Cell& its = cells[static_cast<std::size_t>(cell)];
  const std::string block = its.block >= 0 ? std::to_string(its.block) : "";
  return names[static_cast<int>(its.memory)] + block + "[" + std::to_string(its.index) + "]";
}

std::string Model::WorkName(int access) const {
  const Access& its = accesses[static_cast<std::size_t>(access)];
  std::string name = "#" + std::to_string(operations[static_cast<std::size_t>(its.operation)].id);
  if (its.leaf >= 0) name += "." + std::to_string(its.leaf) + " (run " + std::to_string(its.run) + ")";
  return name;
}

std::string Model::DescribeAccess(int access) const {
  const Access& its = accesses[static_cast<std::size_t>(access)];
  std::string text;
  for (const Access::Read& read : its.reads)
    text += (text.empty() ? " reads " : ", ") + CellName(read.cell) + (read.too_early ? " before " : " of ") +
            WorkName(read.other);
  if (its.source >= 0) text += " takes " + CellName(its.source);
  if (its.cell >= 0) text += " writes " + CellName(its.cell);
  return text;
}

std::string Model::Listing() const {
  std::string text;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Call& call = calls[i];
    text += Describe(operations[i]);
    for (const auto& [thread, count] : call.waits)
      text += ", after " + std::to_string(count) + " calls of thread " + std::to_string(thread);
    if (call.before >= 0) text += DescribeAccess(call.before);
    if (call.access >= 0) text += DescribeAccess(call.access);
    if (call.after >= 0) text += "; then" + DescribeAccess(call.after);
    text += "\n";
    for (const int run : call.runs) text += "      " + WorkName(run) + DescribeAccess(run) + "\n";
  }
  return text;
}

}  // namespace order
