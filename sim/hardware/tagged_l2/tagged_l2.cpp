#include "sim/hardware/tagged_l2/tagged_l2.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/hardware/tagged_l2/labels.h"
#include "sim/timing/device_input.h"

namespace gridloom::hardware {
namespace {

using timing::Cycle;

enum Sweep : std::uint64_t { kStay, kLazy, kEager };
constexpr std::string_view kSweepNames[] = {"off", "lazy", "eager"};
constexpr std::string_view kNamings[] = {"position", "kernel"};

/// What the slices ask about lines of a set: a mask of the ways that may be given up; 0: any.
struct Ways {
  std::uint64_t all = 0, needed = 0, running = 0, written = 0;
};

std::uint64_t Any(const Ways&) { return 0; }
std::uint64_t Unneeded(const Ways& ways) { return ways.all & ~ways.needed; }
std::uint64_t Half(const Ways& ways) {
  return 2 * std::popcount(ways.needed) > std::popcount(ways.all) ? 0 : Unneeded(ways);
}
std::uint64_t NotRunning(const Ways& ways) { return ways.all & ~ways.running; }
std::uint64_t Unwritten(const Ways& ways) { return ways.all & ~ways.written; }

/// Who has to go when a line comes to a full set, which the paper leaves open. A new alternative is a row, and its name
/// in kVictimNames.
struct Victims {
  std::string_view name;
  std::uint64_t (*candidates)(const Ways& ways);
};
constexpr Victims kVictims[] = {
    {"lru", Any},             // the least recently used line, whoever needs it
    {"unneeded", Unneeded},   // lines that no kernel that runs or is to come needs; of the others when there are none
    {"half", Half},           // the same, while no more than half of the set are needed
    {"running", NotRunning},  // lines that no kernel that runs needs
    {"unwritten", Unwritten}  // lines that were read only
};
constexpr std::string_view kVictimNames[] = {kVictims[0].name, kVictims[1].name, kVictims[2].name, kVictims[3].name,
                                             kVictims[4].name};
static_assert(std::size(kVictims) == std::size(kVictimNames));

enum Key : std::size_t { kVictim, kSweep, kNaming, kKernelBits, kStreamBits, kReach };
constexpr PartKey kKeys[] = {
    {"victims", 3, 0, 0, "",
     "lines that go first: the least recently used ones, of all (lru), of those that nobody needs any more (unneeded), "
     "likewise while no "
     "more "
     "than half of a set are needed (half), of those that no running kernel needs (running), of those that were only "
     "read (unwritten)",
     kVictimNames},
    {"sweep", kLazy, 0, 0, "",
     "when the kernel that needed them has ended, lines are no different from others (off), are the first to go when a "
     "place in their set "
     "is "
     "needed (lazy), or are written back and dropped at once (eager)",
     kSweepNames},
    {"naming", 0, 0, 0, "", "what the kernel's label tells apart: launches by their place in the stream, or kernels",
     kNamings},
    {"kernel_bits", 3, 0, 6, "bits", "of the kernel's label; labels are reused"},
    {"stream_bits", 5, 0, 8, "bits", "of the stream's label; labels are reused"},
    {"reach", 1, 1, 8, "launches", "what a launch writes is needed by so many launches behind it in its stream"},
};

enum Counter : std::size_t { kSweeps, kSwept, kNeededLost, kProducerHits, kLabelled, kCounters };
constexpr timing::PartCounter kCounterTable[] = {
    {"l2_sweeps", "messages", "messages to all slices of L2 to drop lines at once, as a kernel has ended"},
    {"l2_swept_lines", "lines",
     "lines that went because the kernel that needed them had ended, after they were written back if they were dirty"},
    {"l2_needed_lost", "lines", "lines that were replaced although a kernel that ran or was to come needed them"},
    {"l2_producer_hits", "reads", "reads that found a line which the kernel before theirs in the stream had written"},
    {"l2_labelled_writes", "writes", "writes whose line got a label"},
};
static_assert(std::size(kCounterTable) == kCounters);

/// Whose the lines of a slice are, by set and way, and what was counted there: only the thread that simulates the slice
/// uses it.
struct alignas(64) Slice {
  std::vector<Label> owners;
  std::uint64_t counts[kCounters] = {};
};

class TaggedL2 final : public timing::Part, timing::WorkEvents, timing::CtaEvents, timing::L2Replacement {
 public:
  TaggedL2(const timing::Parameters& parameters, PartValues values)
      : ways_(parameters.timing().l2.ways),
        slices_per_partition_(parameters.slices_per_partition()),
        to_l2_(parameters.sm_to_l2),
        delay_(parameters.window + parameters.request_latency),
        window_(parameters.window),
        victims_(kVictims[values[kVictim]]),
        sweep_(static_cast<Sweep>(values[kSweep])),
        labels_(static_cast<Labels::Naming>(values[kNaming]), static_cast<unsigned>(values[kKernelBits]),
                static_cast<unsigned>(values[kStreamBits]), static_cast<unsigned>(values[kReach])),
        slices_(parameters.timing().l2.slices) {
    for (Slice& slice : slices_) slice.owners.assign(std::size_t{parameters.l2_sets()} * ways_, kNoLabel);
  }

  void Attach(timing::Ports& ports, timing::DeviceInput& input) override {
    input_ = &input;
    ports.work_events.push_back(this);
    ports.cta_events.push_back(this);
    ports.l2 = this;
  }
  std::size_t counters() const override { return kCounters; }
  void Count(std::span<std::uint64_t> values) const override {
    values[kSweeps] = sent_;
    for (std::size_t i = kSwept; i < kCounters; ++i) {
      values[i] = std::accumulate(slices_.begin(), slices_.end(), std::uint64_t{0},
                                  [&](std::uint64_t sum, const Slice& slice) { return sum + slice.counts[i]; });
    }
  }

 private:
  /// The L2 cycle from which on slices know what happened at `at`.
  Cycle Known(Cycle at) const { return to_l2_.Forward(at + delay_); }

  // ---- between windows ----
  void OnWorkGiven(const timing::WorkView& work) override {
    if (work.kind != timing::WorkKind::kKernel) return;
    labels_.Give(work.id, work.stream, work.source->code().name, Known(work.submitted));
  }
  void OnKernelReady(Cycle now, const timing::KernelReady& kernel) override {
    labels_.Begin(kernel.launch, Known(now));
  }
  void OnKernelEnd(Cycle now, std::uint32_t launch) override {
    const auto producer = labels_.End(launch, Known(now));
    // What ended before has reached the slices.
    labels_.Forget(to_l2_.Forward(now));
    if (!producer || sweep_ != kEager) return;
    input_->SweepL2(now + window_, *producer);
    ++sent_;
  }

  // ---- while a window is simulated ----
  Slice& At(std::uint32_t partition, std::uint32_t slice) {
    return slices_[std::size_t{partition} * slices_per_partition_ + slice];
  }

  std::uint64_t Candidates(Cycle now, const timing::L2Access& access, std::uint32_t set) override {
    const Label* const owners = At(access.partition, access.slice).owners.data() + std::size_t{set} * ways_;
    Ways ways{.all = ~std::uint64_t{0} >> (64 - ways_)};
    std::uint64_t dead = 0;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (owners[way] == kNoLabel) continue;
      const std::uint64_t bit = std::uint64_t{1} << way;
      ways.written |= bit;
      if (labels_.Needed(owners[way], now)) ways.needed |= bit;
      if (labels_.Running(owners[way], now)) ways.running |= bit;
      if (sweep_ == kLazy && labels_.Dead(owners[way], now)) dead |= bit;
    }
    if (dead != 0) return dead;
    return victims_.candidates(ways);
  }

  void OnAccess(Cycle, const timing::L2Access& access, timing::L2Place place, bool hit) override {
    Slice& slice = At(access.partition, access.slice);
    Label& owner = slice.owners[std::size_t{place.set} * ways_ + place.way];
    switch (access.kind) {
      case timing::RequestKind::kWrite:
      case timing::RequestKind::kAtomic:
      case timing::RequestKind::kReduce:
        if (access.sm == timing::Request::kNobody) return;
        owner = labels_.Of(access.launch);
        slice.counts[kLabelled] += owner != kNoLabel;
        return;
      case timing::RequestKind::kRead:
        slice.counts[kProducerHits] += hit && owner != kNoLabel && owner == labels_.ProducerOf(access.launch);
        return;
      default: return;  // write-backs of L1 do not say whose they are
    }
  }

  void OnEvict(Cycle now, std::uint32_t partition, std::uint32_t index, timing::L2Place place) override {
    Slice& slice = At(partition, index);
    const Label owner = std::exchange(slice.owners[std::size_t{place.set} * ways_ + place.way], kNoLabel);
    if (owner == kNoLabel) return;
    slice.counts[kNeededLost] += labels_.Needed(owner, now);
    slice.counts[kSwept] += sweep_ == kLazy && labels_.Dead(owner, now);
  }

  void OnSweep(Cycle, std::uint32_t partition, std::uint32_t index, std::uint64_t label,
               std::vector<timing::L2Place>& lines) override {
    Slice& slice = At(partition, index);
    for (auto owner = slice.owners.begin(); (owner = std::find(owner, slice.owners.end(), label)) != slice.owners.end();
         ++owner) {
      const auto line = static_cast<std::uint32_t>(owner - slice.owners.begin());
      lines.push_back({.set = line / ways_, .way = line % ways_});
      *owner = kNoLabel;
    }
    slice.counts[kSwept] += lines.size();
  }

  const std::uint32_t ways_, slices_per_partition_;
  const timing::ClockRatio to_l2_;
  const Cycle delay_, window_;
  const Victims& victims_;
  const Sweep sweep_;
  timing::DeviceInput* input_ = nullptr;
  Labels labels_;
  std::vector<Slice> slices_;
  std::uint64_t sent_ = 0;
};

Result<std::shared_ptr<timing::Part>> Make(const timing::Parameters& parameters, PartValues values) {
  return std::shared_ptr<timing::Part>(std::make_shared<TaggedL2>(parameters, values));
}

}  // namespace

const PartKind kTaggedL2 = {
    .name = "tagged-l2",
    .summary = "lines of L2 know which kernel of which stream wrote them, and stay until the next one has read them",
    .source =
        "S. Mu et al., Exploiting the task-pipelined parallelism of stream programs on many-core GPUs, IEICE Trans. "
        "E96-D, 2013",
    .keys = kKeys,
    .counters = kCounterTable,
    .stalls = {},
    .make = Make,
};

}  // namespace gridloom::hardware
