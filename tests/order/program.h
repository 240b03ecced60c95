// A random CUDA program as a list of operations, which the model (model.h) judges and the execution (execution.h) makes
// calls of. Everything follows from the list: which host thread waits for which other one, what each operation reads
// and writes. So operations can be taken away, and what is left is a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace order {

/// What an operation does. Objects (streams, events, gates, graphs, blocks of memory, pools) have numbers; each is made
/// once.
enum class Kind : std::uint8_t {
  kKernel,         ///< a kernel: reads cells, takes a while, reads them again, writes its own cell
  kHostFunction,   ///< the same by cudaLaunchHostFunc
  kHostWork,       ///< the same by the host's thread itself
  kCopy,           ///< cudaMemcpyAsync into its own cell
  kCopySync,       ///< cudaMemcpy
  kMemset,         ///< cudaMemsetAsync of its own cell
  kMemsetSync,     ///< cudaMemset
  kGate,           ///< a kernel that waits for a flag in the host's memory
  kOpenGate,       ///< the host sets the flag
  kRecord,         ///< cudaEventRecord
  kWaitEvent,      ///< cudaStreamWaitEvent
  kSyncEvent,      ///< cudaEventSynchronize
  kPollEvent,      ///< cudaEventQuery until it says success
  kPeekEvent,      ///< cudaEventQuery once
  kSyncStream,     ///< cudaStreamSynchronize
  kPollStream,     ///< cudaStreamQuery until it says success
  kPeekStream,     ///< cudaStreamQuery once
  kSyncDevice,     ///< cudaDeviceSynchronize
  kCreateStream,   ///< cudaStreamCreateWithPriority
  kDestroyStream,  ///< cudaStreamDestroy
  kCreateEvent,    ///< cudaEventCreateWithFlags
  kDestroyEvent,   ///< cudaEventDestroy
  kCreatePool,     ///< cudaMemPoolCreate
  kDestroyPool,    ///< cudaMemPoolDestroy
  kAlloc,          ///< cudaMallocAsync or cudaMallocFromPoolAsync: a block
  kFreeAsync,      ///< cudaFreeAsync of a block, behind the stream that it came from
  kMalloc,         ///< cudaMalloc: a block
  kFree,           ///< cudaFree of such a block
  kMakeGraph,      ///< a graph is built or captured, and instantiated
  kLaunchGraph,    ///< cudaGraphLaunch
  kUpdateGraph,    ///< cudaGraphExecUpdate: other values are written by later launches
  kDestroyGraph,   ///< cudaGraphExecDestroy
};

/// Streams that every program has. Others are numbered from kFirstStream on.
inline constexpr int kLegacy = 0, kPerThread = 1, kFirstStream = 2;

/// Where a cell is.
enum class Memory : std::uint8_t { kDevice, kPinned, kManaged, kPageable, kBlock };

struct GraphNode {
  enum class Kind : std::uint8_t { kKernel, kMemset, kCopy, kHost, kEmpty, kChild, kIf, kWhile };
  Kind kind = Kind::kKernel;
  std::vector<int> after;  ///< earlier nodes of the same graph
  int lane = 0;            ///< captured: in which stream
  std::uint32_t spin = 0;
  std::uint64_t salt = 0;
  int turns = 1;                ///< kIf: 0 or 1; kWhile: at least 1: how often the body runs
  std::vector<GraphNode> body;  ///< kChild, kIf, kWhile
};

/// Blocks of a graph's kernel.
inline int GridOf(const GraphNode& node) { return node.salt >> 16 & 1 ? 2 : 1; }

struct Operation {
  int id = 0;  ///< its place in the program that was drawn, which taking away others does not change
  Kind kind = Kind::kKernel;
  int thread = 0;  ///< host thread that makes the call
  int stream = 0;
  int object = -1;  ///< event, gate, graph, pool or block; kCreateStream: none, `stream` is made. kKernel: block to
                    ///< write to, or -1
  int other = -1;  ///< kAlloc: pool or -1; kGate: operation of another thread that has to be in its call by then, or -1
  std::uint32_t spin = 0;    ///< turns of a loop, about a nanosecond each
  int grid = 1, block = 1;   ///< kKernel
  bool blocking = false;     ///< kCreateStream
  bool cooperative = false;  ///< kKernel: cudaLaunchCooperativeKernel
  bool in_stream = false;    ///< kGate: the stream waits by cuStreamWaitValue32, a kernel comes behind
  Memory to = Memory::kDevice, from = Memory::kDevice;
  std::uint64_t salt = 0;  ///< whatever else is to be chosen
  bool captured = false;   ///< kMakeGraph: by stream capture
  bool cloned = false;  ///< kMakeGraph: what is instantiated is a clone, the original is changed and destroyed before
  std::vector<GraphNode> nodes;
};

struct Program {
  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<Operation> operations;
};

/// What programs are made of.
struct Mix {
  int operations = 40;
  int threads = 3;
  std::uint32_t spin = 20'000;  ///< most turns of an operation's loop
  /// kNone: no kernel waits for the host. kAlone: while one does, the host awaits only what came before it, as where a
  /// device runs one kernel at a time. kBeside: other streams go on.
  enum class Gates : std::uint8_t { kNone, kAlone, kBeside } gates = Gates::kBeside;
  bool graphs = true, updates = true, conditions = true, destroy = true, pools = true, blocks = true,
       host_functions = true, cooperative = true;
  bool meanwhile = true;  ///< with gates: works that are given while another thread waits, which only a pause of that
                          ///< thread's makes likely
};

Program Draw(std::uint64_t seed, const Mix& mix);

const char* Name(Kind kind);
std::string Describe(const Operation& operation);

/// Small reproducible numbers (splitmix64).
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int Below(int bound) { return static_cast<int>(Next() % static_cast<std::uint64_t>(bound)); }
  bool Chance(int percent) { return Below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace order
