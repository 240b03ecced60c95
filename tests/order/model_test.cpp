// The model of CUDA's order against small programs whose order is known.
#include "tests/order/model.h"

#include <catch2/catch.hpp>

namespace order {
namespace {

/// A program, call by call.
class Script {
 public:
  explicit Script(int threads = 1) { program_.threads = threads; }
  /// Answers the call's number.
  int Add(Kind kind, int stream = 0, int object = -1, int thread = 0) {
    Operation operation;
    operation.id = static_cast<int>(program_.operations.size());
    operation.kind = kind;
    operation.stream = stream;
    operation.object = object;
    operation.thread = thread;
    program_.operations.push_back(operation);
    return operation.id;
  }
  int Stream(int stream, bool blocking) {
    const int call = Add(Kind::kCreateStream, stream);
    last().blocking = blocking;
    return call;
  }
  Operation& last() { return program_.operations.back(); }
  Model Judge(Mix::Gates gates = Mix::Gates::kBeside) const {
    Mix mix;
    mix.gates = gates;
    return Model(program_, mix);
  }

 private:
  Program program_;
};

int Work(const Model& model, int call) {
  return model.accesses[static_cast<std::size_t>(model.calls[static_cast<std::size_t>(call)].access)].node;
}
int Answer(const Model& model, int call) { return model.calls[static_cast<std::size_t>(call)].end; }
bool Ordered(const Model& model, int a, int b) { return model.Before(Work(model, a), Work(model, b)); }

constexpr int kA = kFirstStream, kB = kFirstStream + 1;

TEST_CASE("OrderModel_StreamsAndEvents") {
  Script script;
  script.Stream(kA, false), script.Stream(kB, false);
  script.Add(Kind::kCreateEvent, 0, 0);
  const int first = script.Add(Kind::kKernel, kA), second = script.Add(Kind::kKernel, kA),
            other = script.Add(Kind::kKernel, kB);
  script.Add(Kind::kRecord, kA, 0);
  const int later = script.Add(Kind::kKernel, kA);
  script.Add(Kind::kWaitEvent, kB, 0);
  script.Add(Kind::kRecord, kA, 0);  // the wait is for the record before
  const int behind = script.Add(Kind::kKernel, kB);
  const int sync = script.Add(Kind::kSyncEvent, 0, 0);
  const Model model = script.Judge();
  CHECK(Ordered(model, first, second));
  CHECK_FALSE(Ordered(model, second, other));
  CHECK_FALSE(Ordered(model, other, second));
  CHECK(Ordered(model, second, behind));
  CHECK_FALSE(Ordered(model, later, behind));
  CHECK(model.Before(Work(model, later), Answer(model, sync)));
  CHECK_FALSE(model.Before(Work(model, behind), Answer(model, sync)));
}

TEST_CASE("OrderModel_DefaultStreams") {
  Script script;
  script.Stream(kA, true), script.Stream(kB, false);
  const int blocking = script.Add(Kind::kKernel, kA), free = script.Add(Kind::kKernel, kB),
            thread = script.Add(Kind::kKernel, kPerThread);
  const int legacy = script.Add(Kind::kKernel, kLegacy);
  const int blocking_later = script.Add(Kind::kKernel, kA), free_later = script.Add(Kind::kKernel, kB);
  const Model model = script.Judge();
  CHECK(Ordered(model, blocking, legacy));
  CHECK(Ordered(model, thread, legacy));
  CHECK_FALSE(Ordered(model, free, legacy));
  CHECK(Ordered(model, legacy, blocking_later));
  CHECK_FALSE(Ordered(model, legacy, free_later));
}

TEST_CASE("OrderModel_DestroyedStreamIsWaitedFor") {
  Script script;
  script.Stream(kA, false);
  const int work = script.Add(Kind::kKernel, kA);
  script.Add(Kind::kDestroyStream, kA);
  const int dropped = script.Add(Kind::kKernel, kA);
  const int sync = script.Add(Kind::kSyncDevice);
  const Model model = script.Judge();
  REQUIRE(model.operations.size() == 4);  // a call with a stream that is gone is none
  CHECK(model.operations[static_cast<std::size_t>(dropped)].id == sync);
  CHECK(model.Before(Work(model, work), Answer(model, dropped)));
}

TEST_CASE("OrderModel_ThreadsWaitForEachOthersObjects") {
  Script script(2);
  script.Stream(kA, false);
  const int mine = script.Add(Kind::kKernel, kA), others = script.Add(Kind::kKernel, kA, -1, 1);
  const Model model = script.Judge();
  CHECK(model.calls[static_cast<std::size_t>(others)].waits ==
        std::vector<std::pair<int, int>>{{0, 1}});  // until the stream is there
  CHECK_FALSE(Ordered(model, mine, others));
  CHECK_FALSE(Ordered(model, others, mine));
}

TEST_CASE("OrderModel_Gates") {
  // The event lies before the gate: the host may wait for it. What lies behind may not be awaited before the gate
  // opens.
  for (const bool behind : {false, true}) {
    Script script;
    script.Stream(kA, false);
    script.Add(Kind::kCreateEvent, 0, 0);
    if (!behind) script.Add(Kind::kRecord, kA, 0);
    script.Add(Kind::kGate, kA, 0);
    if (behind) script.Add(Kind::kRecord, kA, 0);
    const int peek = script.Add(Kind::kPeekEvent, 0, 0);
    script.Add(Kind::kSyncEvent, 0, 0);
    script.Add(Kind::kOpenGate, 0, 0);
    const Model model = script.Judge();
    const bool opens = model.operations.back().kind == Kind::kOpenGate;
    CHECK(opens != behind);
    CHECK(model.calls[static_cast<std::size_t>(peek)].ready == Call::Ready::kEither);
  }
  Script script;
  script.Stream(kA, false), script.Stream(kB, false);
  script.Add(Kind::kCreateEvent, 0, 0);
  const int gate = script.Add(Kind::kGate, kA, 0);
  script.Add(Kind::kRecord, kA, 0);
  const int peek = script.Add(Kind::kPeekEvent, 0, 0);
  script.Add(Kind::kKernel, kB);
  script.Add(Kind::kSyncStream, kB);
  const int host = script.Add(Kind::kHostWork), open = script.Add(Kind::kOpenGate, 0, 0);
  script.Add(Kind::kSyncDevice);
  const int known = script.Add(Kind::kPeekEvent, 0, 0);
  const Model beside = script.Judge(Mix::Gates::kBeside);
  REQUIRE(beside.operations[static_cast<std::size_t>(open)].kind == Kind::kOpenGate);
  CHECK(Ordered(beside, host, gate));
  CHECK(beside.calls[static_cast<std::size_t>(peek)].ready == Call::Ready::kNo);
  CHECK(beside.calls[static_cast<std::size_t>(known)].ready == Call::Ready::kYes);
  const Model alone = script.Judge(Mix::Gates::kAlone);  // the other stream's kernel may come behind the gate's
  CHECK(alone.operations[static_cast<std::size_t>(gate)].kind == Kind::kKernel);
}

TEST_CASE("OrderModel_WorksThatAreGivenMeanwhile") {
  // While one thread waits for the first gate, another one gives a second gate to the stream, opens the first, and the
  // waiting thread the second.
  for (const bool meanwhile : {false, true}) {
    Script script(2);
    script.Stream(kA, false);
    script.Add(Kind::kGate, kA, 0);
    const int sync = script.Add(Kind::kSyncStream, kA);
    const int second = script.Add(Kind::kGate, kA, 1, 1);
    if (meanwhile) script.last().other = sync;
    script.Add(Kind::kOpenGate, 0, 0, 1);
    script.Add(Kind::kOpenGate, 0, 1, 0);
    const Model model = script.Judge();
    const Call& call = model.calls[static_cast<std::size_t>(second)];
    CHECK((model.operations[static_cast<std::size_t>(second)].kind == Kind::kGate) == meanwhile);
    CHECK(call.entered == (meanwhile ? std::make_pair(0, 2) : std::make_pair(-1, 0)));
  }
}

TEST_CASE("OrderModel_LaunchesOfOneGraph") {
  Script script;
  script.Stream(kA, false), script.Stream(kB, false);
  script.Add(Kind::kMakeGraph, 0, 0);
  GraphNode node;
  script.last().nodes = {node, node};
  script.last().nodes[1].after = {0};
  const int first = script.Add(Kind::kLaunchGraph, kA, 0), second = script.Add(Kind::kLaunchGraph, kB, 0);
  script.Add(Kind::kUpdateGraph, 0, 0);
  const int third = script.Add(Kind::kLaunchGraph, kA, 0);
  const Model model = script.Judge();
  const auto node_of = [&](int call, std::size_t leaf) {
    return model.accesses[static_cast<std::size_t>(model.calls[static_cast<std::size_t>(call)].runs[leaf])];
  };
  CHECK(model.Before(node_of(first, 0).node, node_of(first, 1).node));
  CHECK(model.Before(node_of(first, 1).node, node_of(second, 0).node));
  CHECK(node_of(first, 0).cell == node_of(third, 0).cell);
  CHECK(node_of(second, 0).before == node_of(first, 0).value);
  CHECK_FALSE(node_of(third, 0).value == node_of(second, 0).value);
  CHECK(model.variants.size() == 2);
  CHECK(model.cells[static_cast<std::size_t>(node_of(first, 0).cell)].final == node_of(third, 0).value);
}

TEST_CASE("OrderModel_Blocks") {
  Script script;
  script.Stream(kA, false), script.Stream(kB, false);
  script.Add(Kind::kAlloc, kA, 0);
  const int inside = script.Add(Kind::kKernel, kA, 0);
  script.last().to = Memory::kBlock;
  const int outside = script.Add(Kind::kKernel, kB, 0);  // no order to the allocation
  script.last().to = Memory::kBlock;
  const int free = script.Add(Kind::kFreeAsync, kB, 0);
  const int after = script.Add(Kind::kKernel, kB);
  const Model model = script.Judge();
  const auto memory = [&](int call) {
    return model
        .cells[static_cast<std::size_t>(
            model.accesses[static_cast<std::size_t>(model.calls[static_cast<std::size_t>(call)].access)].cell)]
        .memory;
  };
  CHECK(memory(inside) == Memory::kBlock);
  CHECK(memory(outside) == Memory::kDevice);
  CHECK(model.calls[static_cast<std::size_t>(free)].other_stream == kA);
  CHECK(Ordered(model, inside, after));
}

TEST_CASE("OrderModel_CopiesThatAreWaitedFor") {
  const auto answered = [](Kind kind, Memory from, Memory to) {
    Script script;
    script.Stream(kA, false);
    const int copy = script.Add(kind, kind == Kind::kCopy ? kA : kLegacy);
    script.last().from = from, script.last().to = to;
    const Model model = script.Judge();
    return model.Before(Work(model, copy), Answer(model, copy));
  };
  CHECK_FALSE(answered(Kind::kCopy, Memory::kDevice, Memory::kPinned));
  CHECK_FALSE(answered(Kind::kCopy, Memory::kPageable, Memory::kDevice));
  CHECK(answered(Kind::kCopy, Memory::kDevice, Memory::kPageable));
  CHECK(answered(Kind::kCopy, Memory::kPinned, Memory::kPinned));
  CHECK(answered(Kind::kCopySync, Memory::kDevice, Memory::kPinned));
  CHECK(answered(Kind::kCopySync, Memory::kPinned, Memory::kDevice));
  CHECK_FALSE(answered(Kind::kCopySync, Memory::kPageable, Memory::kDevice));
  CHECK_FALSE(answered(Kind::kCopySync, Memory::kDevice, Memory::kDevice));
}

TEST_CASE("OrderModel_EveryProgramThatIsDrawnIsOne") {
  Mix mix;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Program program = Draw(seed, mix);
    const Model model(program, mix);
    CHECK(model.operations.size() > program.operations.size() / 2);
    std::size_t reads = 0;
    for (const Access& access : model.accesses) {
      reads += access.reads.size();
      for (const Access::Read& read : access.reads) {
        const int other = model.accesses[static_cast<std::size_t>(read.other)].node;
        CHECK((read.too_early ? model.Before(access.node, other) : model.Before(other, access.node)));
      }
    }
    CHECK(reads > 0);
    // Half of it, as when a program is shrunk.
    Program half = program;
    half.operations.clear();
    for (const Operation& operation : program.operations)
      if (operation.id % 2 == 0) half.operations.push_back(operation);
    CHECK_NOTHROW(Model(half, mix));
  }
}

}  // namespace
}  // namespace order
