// What the timing model reads of a kernel launch: a static code table, and per CTA and warp the path through it with
// the memory addresses. Flat arrays without pointers, so that the executor can fill them while it runs and a reader can
// load them from a file; everything that a device may choose differently (sector and line sizes, banks, latencies)
// stays out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/trace/cta_event.h"
#include "sim/trace/meaning.h"

namespace gridloom::trace {

inline constexpr std::uint32_t kWarpSize = 32;

enum class OpClass : std::uint8_t {
#define TRACE_OP_CLASS(enumerator, name, meaning) enumerator,
#include "sim/trace/op_classes.def"
#undef TRACE_OP_CLASS
};
inline constexpr std::size_t kOpClassCount = 0
#define TRACE_OP_CLASS(enumerator, name, meaning) +1
#include "sim/trace/op_classes.def"
#undef TRACE_OP_CLASS
    ;

/// Where a memory instruction goes. kParameter reads are served by the constant bank, always hit and have no access
/// record.
enum class Space : std::uint8_t { kNone, kGlobal, kLocal, kShared, kConstant, kTexture, kParameter };

/// Properties of one instruction; a memory instruction that has none of the first three is a load.
enum InstructionFlag : std::uint8_t {
  kStore = 1 << 0,        ///< writes memory and returns nothing
  kAtomic = 1 << 1,       ///< reads, modifies and writes; returns a value unless kStore is set, too (PTX `red`)
  kPrefetch = 1 << 2,     ///< fetches, and nobody waits
  kVolatile = 1 << 3,     ///< not served by L1: .volatile, .relaxed, .acquire
  kCacheGlobal = 1 << 4,  ///< not served by L1: .cg
  kReadOnly = 1 << 5,     ///< ld.global.nc and textures: the read-only path
  kArrive = 1 << 6,       ///< a barrier at which the warp does not wait
  /// Each access of Space::kGlobal says where it goes, by MemoryAccess::kSharedWindow and kLocalWindow.
  kGeneric = 1 << 7,
};

/// One instruction, 16 bytes. Its registers are `destinations` and then `sources` entries of KernelCode::operands.
struct Instruction {
  OpClass op = OpClass::kControl;
  Space space = Space::kNone;
  /// Bytes that one lane accesses: 1, 2, 4, 8, 16. Of kTensor: the warp's work in units of kTensorUnit, 0 if that is
  /// not known.
  std::uint8_t width = 0;
  std::uint8_t flags = 0;
  std::uint8_t destinations = 0;
  std::uint8_t sources = 0;
  std::uint8_t barrier = 0;        ///< kBarrier: which of the CTA's 16
  std::uint8_t barrier_warps = 0;  ///< kBarrier: warps that take part; 0 = all of the CTA
  std::uint32_t operands = 0;
  std::uint32_t line = 0;  ///< of the PTX, for reports

  /// Multiply-adds of halves. Those of other types count as many as the halves that take tensor cores as long.
  static constexpr std::uint32_t kTensorUnit = 512;
  /// Whether each execution has a record in CtaTrace::accesses.
  bool has_access() const { return op == OpClass::kMemory && space != Space::kParameter; }
};
static_assert(sizeof(Instruction) == 16);

/// Instructions that are executed one after the other.
struct BasicBlock {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// What is the same for all launches of a kernel. Registers are numbered from 1, densely; 0 is no register.
struct KernelCode {
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<std::uint16_t> operands;
  std::vector<BasicBlock> blocks;
  std::uint32_t register_count = 0;  ///< highest register number
  Meanings meanings = {};            ///< what instructions compute, if that is known
};

/// What a CTA of the launch needs, and how many there are.
struct LaunchShape {
  std::uint64_t ctas = 0;
  std::uint32_t threads_per_cta = 0;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_bytes = 0;  ///< per CTA, static and dynamic
  bool together = false;           ///< CTAs may wait for each other: a cooperative launch, or one in clusters
  std::uint32_t warps_per_cta() const { return (threads_per_cta + kWarpSize - 1) / kWarpSize; }
};

/// One execution of a basic block by the lanes of `mask`.
struct BlockVisit {
  std::uint32_t block = 0;
  std::uint32_t mask = 0;
};

/// What each lane adds to a base: of accesses whose lanes keep their distances, but not one distance (rows of a small
/// 2D block).
using LanePattern = std::array<std::int32_t, kWarpSize>;

/// The addresses of one execution of a memory instruction. Lane i of `mask` accesses base + i * stride; with a stride
/// that names pattern p, base + CtaTrace::patterns[p][i]; with stride kScattered the words of CtaTrace::lanes that
/// begin at `base` tell (ScatteredLanes). Shared addresses are offsets in the CTA's shared memory. A mask of 0 is an
/// instruction whose guard held for no lane.
struct MemoryAccess {
  static constexpr std::int32_t kScattered = INT32_MIN;
  static constexpr std::int32_t kFirstPattern = INT32_MIN + 1, kPatterns = 1 << 16;
  static constexpr std::int32_t kLeastStride = kFirstPattern + kPatterns;  ///< strides below name something else
  /// Added to all addresses of an access by an instruction with kGeneric that goes to shared or to local memory.
  static constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 62, kLocalWindow = std::uint64_t{1} << 61;
  /// Memory other than shared memory ends there: no processor gives programs more. Offsets in shared memory only say
  /// which bank they are in.
  static constexpr std::uint64_t kAddressEnd = std::uint64_t{1} << 48;
  std::uint64_t base = 0;
  std::int32_t stride = 0;
  std::uint32_t mask = 0;

  bool has_pattern() const { return stride > kScattered && stride < kLeastStride; }
  std::uint32_t pattern() const { return static_cast<std::uint32_t>(stride - kFirstPattern); }
};
static_assert(sizeof(MemoryAccess) == 16);

/// For tables that are written right after they have grown: what a vector adds by itself is left as it is.
template <typename T>
struct Unfilled : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T>);
  template <typename U>
  struct rebind {
    using other = Unfilled<U>;
  };
  Unfilled() = default;
  template <typename U>
  explicit Unfilled(const Unfilled<U>&) {}
  template <typename U>
  void construct(U*) {}
  template <typename U, typename First, typename... Rest>
  void construct(U* at, First&& first, Rest&&... rest) {
    std::construct_at(at, std::forward<First>(first), std::forward<Rest>(rest)...);
  }
};
template <typename T>
using Table = std::vector<T, Unfilled<T>>;

/// A warp's part of CtaTrace::visits and CtaTrace::accesses.
struct WarpTrace {
  std::uint32_t first_visit = 0, visit_count = 0;
  std::uint32_t first_access = 0, access_count = 0;
};

/// Part of a warp's path that it goes several times over, one right after the other: equal visits with equal accesses,
/// as loops make that wait. The tables have one of the turns. Numbers of visits and accesses count from the warp's
/// first.
struct Repeat {
  std::uint32_t warp = 0;
  std::uint32_t visit = 0, visit_count = 0;
  std::uint32_t access = 0, access_count = 0;  ///< what the visits execute
  std::uint64_t more = 0;                      ///< turns besides that in the tables
  bool operator==(const Repeat&) const = default;
};

/// What a reader takes of one CTA, and a writer gives: visits in the tables, and visits that its warps make, turns of
/// repeats included.
inline constexpr std::uint64_t kMostVisits = std::uint64_t{1} << 27, kMostVisitsMade = std::uint64_t{1} << 32;

/// The dynamic part of one CTA.
struct CtaTrace {
  std::vector<WarpTrace> warps;
  Table<BlockVisit> visits;
  Table<MemoryAccess> accesses;
  Table<std::uint32_t> lanes;         ///< ScatteredLanes, one after the other
  std::vector<LanePattern> patterns;  ///< at most MemoryAccess::kPatterns
  std::vector<Repeat> repeats;        ///< by warp and visit; none overlaps another, none has an event in it
  /// In most CTAs none; CTAs that share a trace have the same ones, whatever their shifts.
  std::vector<CtaEvent> events;
};
/// What it takes of memory, what its tables could still grow by included.
std::uint64_t BytesOf(const CtaTrace& cta);
/// The events of one warp.
std::span<const CtaEvent> EventsOf(const CtaTrace& cta, std::uint32_t warp);

/// The repeats of one warp.
std::span<const Repeat> RepeatsOf(const CtaTrace& cta, std::uint32_t warp);

/// Part of a warp's path that it goes `times` times over.
struct PathPiece {
  std::uint32_t first_visit = 0, visit_count = 0;  ///< in CtaTrace::visits
  std::uint32_t first_access = 0;                  ///< in CtaTrace::accesses: that of its first visit
  std::uint64_t times = 1;
};
/// The whole path of a warp, in order.
std::vector<PathPiece> PiecesOf(const CtaTrace& cta, std::uint32_t warp);

/// A number for each memory instruction of a kernel. Few need no memory of their own: there is one of these for each
/// CTA.
class Shifts {
 public:
  Shifts() = default;
  Shifts(const Shifts& other) { *this = other; }
  Shifts(Shifts&& other) noexcept { *this = std::move(other); }
  Shifts& operator=(const Shifts& other);
  Shifts& operator=(Shifts&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    many_ = std::move(other.many_);
    if (size_ <= kFew) few_ = other.few_;
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const std::uint64_t* begin() const { return size_ <= kFew ? few_.data() : many_.get(); }
  const std::uint64_t* end() const { return begin() + size_; }
  std::uint64_t operator[](std::size_t i) const { return begin()[i]; }
  std::uint64_t& operator[](std::size_t i) { return const_cast<std::uint64_t&>(begin()[i]); }
  void clear() { size_ = 0; }
  /// So many, which may hold anything.
  std::uint64_t* Renew(std::size_t size) {
    size_ = size;
    if (size > kFew) many_ = std::make_unique_for_overwrite<std::uint64_t[]>(size);
    return &(*this)[0];
  }
  bool operator==(const Shifts& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  static constexpr std::size_t kFew = 8;
  std::size_t size_ = 0;
  std::unique_ptr<std::uint64_t[]> many_;  ///< those of more than kFew
  std::array<std::uint64_t, kFew> few_;
};

/// A CTA of a launch. CTAs that differ only in how far the addresses of each instruction are shifted share one trace.
struct LoadedCta {
  std::shared_ptr<const CtaTrace> trace;
  /// By memory instruction, as AccessCount counts them: what is added to its addresses; 0 for shared memory. Empty:
  /// nothing.
  Shifts shifts;
};

/// Where the CTAs of one launch come from: a running kernel, a file, a generator. Called by one thread at a time, once
/// for each CTA, in the order in which the model starts them.
class CtaSource {
 public:
  virtual ~CtaSource() = default;
  virtual const KernelCode& code() const = 0;
  virtual const LaunchShape& shape() const = 0;
  /// The trace of CTA `index` (linear, x fastest) below shape().ctas. The model keeps it until the CTA has ended.
  virtual Result<LoadedCta> Load(std::uint64_t index) = 0;
};

/// Where the CTAs of a running launch go. From any thread, each CTA once.
class CtaSink {
 public:
  virtual ~CtaSink() = default;
  virtual void Push(std::uint64_t cta, LoadedCta trace) = 0;
  /// No more CTAs come.
  virtual void Close() = 0;
};

/// Addresses without a pattern, lowest lane first: each as a distance from a low one, in one word and in units of so
/// many bytes. In CtaTrace::lanes three words precede the distances: the low address, its lower half first, and the
/// unit. Unit kFar: each distance takes two words, in bytes.
struct ScatteredLanes {
  static constexpr std::uint32_t kHeadWords = 3, kFar = 0, kMostWords = kHeadWords + 2 * kWarpSize;
  std::uint64_t low = 0;
  std::uint32_t unit = 1;
  const std::uint32_t* distances = nullptr;

  static ScatteredLanes At(const std::uint32_t* words) {
    return {words[0] | std::uint64_t{words[1]} << 32, words[2], words + kHeadWords};
  }
  static void PutHead(std::uint64_t low, std::uint32_t unit, std::uint32_t* words) {
    words[0] = static_cast<std::uint32_t>(low);
    words[1] = static_cast<std::uint32_t>(low >> 32);
    words[2] = unit;
  }
  static constexpr std::uint32_t Words(std::uint32_t unit, std::uint32_t lanes) {
    return kHeadWords + (unit == kFar ? 2 * lanes : lanes);
  }
  /// The address of the lane with so many active lanes below it.
  std::uint64_t operator[](std::size_t i) const {
    if (unit != kFar) return low + std::uint64_t{unit} * distances[i];
    return low + (distances[2 * i] | std::uint64_t{distances[2 * i + 1]} << 32);
  }
};
/// Writes up to 32 addresses that way, the lowest as the low one; there is room for ScatteredLanes::kMostWords. Words
/// that it took.
std::uint32_t PutLanes(std::span<const std::uint64_t> addresses, std::uint32_t* words);
/// The same behind the others. Where they begin: MemoryAccess::base.
std::uint64_t AppendLanes(std::span<const std::uint64_t> addresses, Table<std::uint32_t>& lanes);

/// The addresses of an access by lane; entries of lanes outside the mask are left alone.
void LaneAddresses(const CtaTrace& cta, const MemoryAccess& access, std::array<std::uint64_t, kWarpSize>& addresses);

/// Which memory an access goes to, and what has been added to its addresses to say so.
struct AccessWindow {
  Space space = Space::kNone;
  std::uint64_t added = 0;
};
/// `space` and `flags` are the instruction's.
AccessWindow WindowOf(Space space, std::uint8_t flags, const CtaTrace& cta, const MemoryAccess& access);

/// Instructions of the code with has_access(), which are numbered in its order.
std::uint32_t AccessCount(const KernelCode& code);
/// The CTA with its shifts added.
CtaTrace Flatten(const KernelCode& code, const LoadedCta& cta);
/// The same, without a copy where there are no shifts.
std::shared_ptr<const CtaTrace> FlatTrace(const KernelCode& code, LoadedCta cta);

// What these functions let pass breaks nothing in whoever goes through it: they are all that stands between a trace of
// somebody else's and the model. CtaDecoder gives nothing else, and the model asks them of every source.

/// Whether the tables refer only to what exists; one sentence about the first reference that does not.
Status ValidateCode(const KernelCode& code);
/// Checks a CTA of that code: as many access records as its path executes memory instructions, no empty mask in the
/// path, events in order and at instructions that are executed.
Status ValidateCta(const KernelCode& code, const LaunchShape& shape, const CtaTrace& cta);
/// The part of that which is about events; the paths are valid.
Status ValidateEvents(const KernelCode& code, const CtaTrace& cta);
/// The part of that which is about repeats; the paths and the events are valid.
Status ValidateRepeats(const KernelCode& code, const CtaTrace& cta);

/// Where a memory instruction of a trace accesses memory that shifts move: the first and the last byte of all its
/// executions, without what says into which window a generic address goes. Empty where there are none, or all are of
/// shared memory or of no lane.
struct AccessRange {
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
  bool empty() const { return first > last; }
};
/// By memory instruction, as AccessCount counts them. The paths and tables are valid; fails when a lane accesses what
/// is no memory.
Result<std::vector<AccessRange>> AccessRangesOf(const KernelCode& code, const CtaTrace& cta);
/// Checks that there are no shifts, or as many as the code has memory instructions, 0 for shared memory, and that they
/// move no lane of a trace with these ranges out of memory.
Status ValidateShifts(const KernelCode& code, std::span<const AccessRange> ranges, const Shifts& shifts);

/// All of that for the CTAs of one source, of which many share a trace: that is gone through once.
class CtaChecks {
 public:
  Status Check(const KernelCode& code, const LaunchShape& shape, const LoadedCta& cta);

 private:
  std::shared_ptr<const CtaTrace> valid_;  ///< the last one
  std::vector<AccessRange> ranges_;        ///< of it
};

/// Warp-instructions that a CTA executes.
std::uint64_t InstructionCount(const KernelCode& code, const CtaTrace& cta);

}  // namespace gridloom::trace
