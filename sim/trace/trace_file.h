// Trace files: written while programs run, read by replays (docs/trace-format.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/trace/byte_stream.h"
#include "sim/trace/chunk_writer.h"
#include "sim/trace/cta_codec.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// What a launch was, besides its CTAs.
struct LaunchInfo {
  /// Files with ranges have, before a launch of the program's, those of its kernel's profiler and of its kernel with
  /// release code (docs/ranges.md), all of one work. The program itself made none but those of kKernel.
  enum class Role : std::uint8_t { kKernel, kProfiler, kReleasing };
  enum class Ranges : std::uint8_t { kNone, kInterval, kStrided };
  static constexpr Role kLastRole = Role::kReleasing;
  static constexpr Ranges kLastRanges = Ranges::kStrided;

  std::uint32_t kernel = 0;  ///< number of its code table in the file
  LaunchShape shape;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint64_t stream = 0;   ///< equal for launches that run one after the other
  std::uint64_t host_ns = 0;  ///< when it began to run, since the program began
  std::uint64_t work = 0;     ///< HostAction::work of its launch
  Role role = Role::kKernel;
  Ranges ranges = Ranges::kNone;  ///< their form, of a profiler and of a kernel with release code
  std::string no_ranges = {};     ///< of a kKernel for which ranges were wanted: why it has none, as one sentence

  /// Whether the program made it.
  bool of_program() const { return role == Role::kKernel; }
};

/// What the host did, in the order of its calls: the other half of a program's time. All but kWait give the device a
/// work, which begins when the one before it in its stream and those of `after` have ended.
struct HostAction {
  enum class Kind : std::uint8_t {
    kCopyToDevice,
    kCopyToHost,
    kCopyOnDevice,
    kFill,
    kWait,    ///< the host waits until the works of `after` have ended
    kLaunch,  ///< LaunchInfo::work names it
    kMarker,  ///< takes no time: events that are recorded or waited for, host functions
    kGroup,   ///< takes no time, and has ended when all works have whose group it is
  };
  static constexpr Kind kLastKind = Kind::kGroup;
  Kind kind = Kind::kMarker;
  std::uint64_t work = 0;  ///< number of the work, from 1 in the order of the calls
  std::uint64_t stream = 0;
  std::vector<std::uint64_t> after;  ///< works
  std::uint64_t group = 0;  ///< the kGroup, or kLaunch of a kernel that launched this one, to which it belongs; 0: none
  std::uint64_t rank = 0;   ///< in the group: the order in which its works begin, where `after` leaves it open
  std::uint64_t address = 0;  ///< on the device: where it writes, or what it reads when it copies to the host
  std::uint64_t bytes = 0;
  std::uint64_t host_ns = 0;
  // Files before version 8 have none of the following.
  std::uint64_t span = 0;  ///< from `address` to behind the last byte touched, where rows lie apart; 0: as `bytes`
  std::uint64_t source = 0, source_span = 0;  ///< of kCopyOnDevice: what it reads
  bool special = false;  ///< of copies and fills: some of the memory is an array's or a __constant__ variable's
  bool sees = false;     ///< of kWait: the host may look at results before it goes on
  /// For kCopyToDevice: an earlier copy to the device that has copied the same bytes from the same place; 0: none has.
  std::uint64_t like = 0;
  /// For kCopyToDevice: for each page of what is copied, its rank among all pages of the program's copies, in the order
  /// in which the program first wrote to them. Empty: not recorded.
  std::vector<std::uint32_t> ranks;
  // Files before version 9 have none of the following.
  std::uint64_t host_span = 0;  ///< of copies over PCIe, as `span`, of pinned or registered memory
  /// An earlier copy over PCIe, some of whose memory of the host's a copy touches, too.
  struct Reuse {
    std::uint64_t work = 0;
    std::int64_t begin = 0;  ///< of the earlier copy's memory, counted from where this one's begins
    bool operator==(const Reuse&) const = default;
  };
  /// Copies over PCIe, in the order of their works, that have to be done with this one's memory before the program, or
  /// the copy, writes there. None where the program has written nothing (`like`).
  std::vector<Reuse> reuses;

  bool over_pcie() const { return kind == Kind::kCopyToDevice || kind == Kind::kCopyToHost; }
  /// Page p has the bytes from kRankedPage * p of those that are copied.
  static constexpr std::uint64_t kRankedPage = 4096;
  static constexpr std::int64_t kMostHostBytes = std::int64_t{1}
                                                 << 60;  ///< that lie between any two of the host's memory
};

/// One launch while it is written, by one thread at a time. Whole batches go to the file.
class LaunchWriter {
 public:
  LaunchWriter(ChunkWriter& file, std::uint64_t launch, const KernelCode& code)
      : file_(file), launch_(launch), code_(code) {}
  void Add(std::uint64_t cta, const LoadedCta& trace);
  /// The launch is complete, and in the file when this returns: the program may end any time. `left_out`: CTAs that ran
  /// and were not to be kept.
  void End(std::uint64_t left_out);

 private:
  void WriteBatch(bool later);

  ChunkWriter& file_;
  const std::uint64_t launch_;
  const KernelCode& code_;
  std::optional<CtaEncoder> encoder_;  ///< of the current batch: each can be decoded alone
  ByteWriter content_;
  std::vector<std::uint64_t> ctas_;
  std::uint64_t written_ = 0;
};

/// Appends to a new file. Thread-safe. After a failure (a full disk) everything is ignored, and Close tells.
class TraceWriter {
 public:
  /// "%p" in the path stands for this process's number (trace_names.h). While another process writes the file, this one
  /// takes `path`.PID.
  static Result<std::unique_ptr<TraceWriter>> Create(const std::string& path, std::string_view info);
  /// Number of the kernel in the file.
  std::uint32_t AddKernel(const KernelCode& code);
  /// `code` must outlive the writer.
  std::unique_ptr<LaunchWriter> BeginLaunch(const LaunchInfo& info, const KernelCode& code);
  void Add(const HostAction& action);
  Status Close();

 private:
  TraceWriter(std::string path, int fd) : file_(fd, std::move(path)) {}

  ChunkWriter file_;
  std::mutex mutex_;
  std::uint32_t kernels_ = 0;
  std::uint64_t launches_ = 0;
};

/// What CTAs that are unpacked from files may take of memory at a time, those of all launches together whose sources
/// share it. From any thread.
class TraceBudget {
 public:
  /// Half of the machine's memory.
  TraceBudget();
  explicit TraceBudget(std::uint64_t bytes) : bytes_(bytes) {}

  std::uint64_t left() const;
  /// False, and nothing is taken, when there is not so much.
  bool Take(std::uint64_t bytes);
  void Give(std::uint64_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> taken_{0};
};

/// A file that is read. Safe to use from several threads once it is open.
class TraceFile {
 public:
  /// Fails when the file is no trace at all. What is damaged later on is left out: problem() says where and how.
  static Result<std::shared_ptr<TraceFile>> Open(const std::string& path);
  static Result<std::shared_ptr<TraceFile>> FromBytes(std::vector<std::uint8_t> bytes, std::string name);
  ~TraceFile();

  struct Batch {
    std::uint64_t offset = 0;  ///< of its chunk
    std::uint32_t ctas = 0;
  };
  struct Launch {
    LaunchInfo info;
    bool complete = false;       ///< its end was written
    std::uint64_t left_out = 0;  ///< CTAs that ran and were not kept
    std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> place;  ///< CTA -> batch, position in it
    std::vector<Batch> batches;
    /// In ascending order. The shape may name many more than any file has.
    std::vector<std::uint64_t> KeptCtas() const;
  };
  const std::string& name() const { return name_; }
  const std::string& info() const { return info_; }
  const std::vector<KernelCode>& kernels() const { return kernels_; }
  const std::vector<Launch>& launches() const { return launches_; }
  const std::vector<HostAction>& actions() const { return actions_; }
  /// Empty, or one sentence about the first damage.
  const std::string& problem() const { return problem_; }
  std::uint64_t bytes() const { return bytes_.size(); }

  /// No copy of a file moves more, nor does the memory that it touches reach farther; no grid has more CTAs.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 45, kMostCtas = std::uint64_t{1} << 48;
  /// Streams of programs' calls have smaller numbers; the others are the timing model's own.
  static constexpr std::uint64_t kStreams = std::uint64_t{1} << 61;

  /// The CTAs of one launch. Keeps the file. Without a budget the source has one of its own; a CTA that does not fit is
  /// an error.
  static std::unique_ptr<CtaSource> Source(std::shared_ptr<TraceFile> file, std::size_t launch,
                                           std::shared_ptr<TraceBudget> budget = nullptr);

 private:
  explicit TraceFile(std::string name) : name_(std::move(name)) {}
  Status Index();
  Status Take(const Chunk& chunk, std::uint64_t offset);
  Result<std::vector<std::uint8_t>> Unpack(const Chunk& chunk);
  Status TakeKernel(ByteReader in);
  Status TakeLaunch(ByteReader in);
  Status TakeEnd(ByteReader in);
  Status TakeAction(ByteReader in);
  Status TakeCtas(const Chunk& chunk, std::uint64_t offset);

  const std::string name_;
  ByteSpan bytes_;
  std::vector<std::uint8_t> owned_;
  void* mapped_ = nullptr;
  std::string info_, problem_;
  std::vector<KernelCode> kernels_;
  std::vector<Launch> launches_;
  std::vector<HostAction> actions_;
  // While the file is indexed.
  std::uint32_t version_ = 0;
  std::uint64_t unpacked_ = 0;  ///< bytes of what is kept
  std::uint64_t last_work_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> depths_;  ///< of works in groups: in how many
};

}  // namespace gridloom::trace
