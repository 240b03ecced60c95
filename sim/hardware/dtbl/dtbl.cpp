#include "sim/hardware/dtbl/dtbl.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>
#include <utility>

#include "sim/hardware/dtbl/distributor.h"
#include "sim/hardware/dtbl/group_table.h"
#include "sim/timing/device_input.h"

namespace gridloom::hardware {
namespace {

using timing::Cycle;
using timing::WorkId;

enum Joining : std::uint64_t { kFree, kMarked };
constexpr std::string_view kJoinings[] = {"free", "marked"};

enum Loads : std::uint64_t { kAtTurn, kAhead };
constexpr std::string_view kLoadings[] = {"turn", "ahead"};

enum Key : std::size_t { kEntries, kSearch, kLaunches, kLoading };
constexpr PartKey kKeys[] = {
    {"agt_entries", 1024, 1, 1 << 20, "entries", "of the aggregated group table"},
    {"search_cycles", 1, 0, 1024, "cycles",
     "to look at an entry of the kernel distributor for a kernel that a group may join, while the parameter buffer is "
     "taken"},
    {"launches", kFree, 0, 0, "",
     "which launches join others: those that wait for no other launch, whose streams cost nothing (free), or those "
     "that the program says "
     "may (marked)",
     kJoinings},
    {"loads", kAhead, 0, 0, "",
     "when what is to be known of a group without an entry is read from global memory: when its turn comes (turn), or "
     "as soon as it has "
     "joined (ahead)",
     kLoadings},
};

enum Counter : std::size_t { kJoined, kUnmatched, kOrdered, kOnChip, kSpilled, kLoads, kMost, kCounters };
constexpr timing::PartCounter kCounterTable[] = {
    {"dtbl_joined", "launches", "launches by kernels whose blocks joined a kernel that ran"},
    {"dtbl_unmatched", "launches", "launches for which no kernel of the same code ran, so that they became kernels"},
    {"dtbl_ordered", "launches", "launches that wait for others or are not meant to join, and became kernels"},
    {"dtbl_table_hits", "groups", "groups that found their entry of the aggregated group table free"},
    {"dtbl_table_spills", "groups",
     "groups whose entry was taken: what is to be known of them stayed in global memory"},
    {"dtbl_loads", "requests", "reads of that from global memory, when the turn of such a group came"},
    {"dtbl_table_most", "entries", "the most of the table that was taken at a time"},
};
static_assert(std::size(kCounterTable) == kCounters);

/// Where the information on groups lies that have no entry, in lines: beyond all memory of programs.
constexpr std::uint64_t kInformationAt = std::uint64_t{1} << 36;

class Dtbl final : public timing::Part,
                   private timing::CtaEvents,
                   private timing::WorkEvents,
                   private timing::CtaLimit,
                   private timing::LaunchPath,
                   private timing::LaunchCost {
 public:
  Dtbl(const timing::Parameters& parameters, PartValues values)
      : costs_(parameters.timing().device_launch),
        entries_searched_(parameters.device.grid.max_resident),
        search_(values[kSearch]),
        marked_only_(values[kLaunches] == kMarked),
        ahead_(values[kLoading] == kAhead),
        table_(static_cast<std::uint32_t>(values[kEntries])) {}

  void Attach(timing::Ports& ports, timing::DeviceInput& input) override {
    input_ = &input;
    ports.cta_events.push_back(this);
    ports.work_events.push_back(this);
    ports.cta_limits.push_back(this);
    ports.launch_paths.push_back(this);
    ports.launch_cost = this;
  }
  std::size_t counters() const override { return kCounters; }
  void Count(std::span<std::uint64_t> values) const override {
    std::ranges::copy(counts_, values.begin());
    values[kMost] = table_.most_taken();
  }

 private:
  // ---- what calls take: while a window is simulated
  bool Aggregates(std::uint8_t flags) const override {
    if ((flags & trace::kAggregated) != 0) return true;
    return !marked_only_ && (flags & (trace::kTailLaunch | trace::kDefaultStream)) == 0;
  }
  /// A group has a parameter buffer, and the search for a kernel that it may join goes on meanwhile (section 4.3). Its
  /// search takes a cycle for each entry, of all groups of a warp one behind the other.
  Cycle CyclesOf(const timing::LaunchCalls& calls) const override {
    Cycle cycles = calls.streams != 0 && marked_only_ ? costs_.stream_cycles : 0;
    if (calls.launches == 0) return cycles;
    const Cycle buffers = costs_.buffer_cycles + Cycle{calls.launches} * costs_.buffer_thread_cycles;
    const Cycle search = calls.aggregated == 0 ? 0 : search_ * entries_searched_ + calls.aggregated - 1;
    cycles += std::max(buffers, search);
    const std::uint32_t kernels = calls.launches - calls.aggregated;
    return kernels == 0 ? cycles : cycles + costs_.call_cycles + Cycle{kernels} * costs_.call_thread_cycles;
  }

  // ---- who runs
  void OnKernelReady(Cycle, const timing::KernelReady& kernel) override {
    const std::uint64_t ctas = kernel.source.shape().ctas;
    running_.Add({.kernel = kernel.launch,
                  .code = kernel.code,
                  .address_space = kernel.address_space,
                  .warps_per_cta = kernel.needs.warps,
                  .native_ctas = ctas,
                  .ctas = ctas});
  }
  void OnKernelEnd(Cycle, std::uint32_t launch) override { running_.Remove(launch); }
  void OnCtaStart(Cycle, const timing::CtaPlace& place) override {
    if (RunningKernel* const kernel = running_.Find(place.launch)) Distributor::Start(*kernel);
  }

  // ---- launches
  bool Takes(Cycle now, const timing::LaunchView& launch) override {
    if (!launch.free || !Aggregates(launch.call.event.flags)) {
      ++counts_[kOrdered];
      return false;
    }
    RunningKernel* const kernel = running_.FindLike(launch.work.code, launch.work.use.address_space);
    // One that looks alike and is not refuses the launch.
    if (kernel == nullptr || !input_->Join(kernel->kernel, launch.work.id).ok()) {
      ++counts_[kUnmatched];
      return false;
    }
    ++counts_[kJoined];
    Group group{.launch = launch.work.id,
                .ctas = launch.work.source->shape().ctas,
                .entry = table_.Take(HardwareThread(launch.call))};
    ++counts_[group.entry ? kOnChip : kSpilled];
    if (group.entry) entry_of_[group.launch] = *group.entry;
    else if (ahead_) Load(now, kernel->kernel, group);
    Distributor::Join(*kernel, std::move(group));
    return true;
  }

  /// Of the SM: blocks of other kernels may have other sizes, so that two threads may have one number, as in the paper
  /// two SMs' have.
  std::uint64_t HardwareThread(const timing::CtaSignal& call) {
    const RunningKernel* const parent = running_.Find(call.place.launch);
    const std::uint64_t warps = parent != nullptr ? parent->warps_per_cta : 1;
    const auto lane = static_cast<std::uint64_t>(std::countr_zero(call.event.lanes));
    return (call.place.slot * warps + call.event.warp) * trace::kWarpSize + lane;
  }

  void OnWorkEnd(Cycle, WorkId work) override {
    if (const auto entry = entry_of_.extract(work); !entry.empty()) table_.Free(entry.mapped());
  }

  /// The SM scheduler knows of a group without an entry when it has read what is to be known.
  bool MayHold(Cycle now, std::uint32_t launch, std::uint32_t, std::uint32_t) override {
    RunningKernel* const kernel = running_.Find(launch);
    Group* const group = kernel != nullptr ? Distributor::Next(*kernel) : nullptr;
    if (group == nullptr || group->entry) return true;
    if (group->loaded == timing::kNever) Load(now, launch, *group);
    return now >= group->loaded;
  }

  void Load(Cycle now, WorkId kernel, Group& group) {
    ++counts_[kLoads];
    input_->Send(now + input_->parameters().window,
                 {.line = kInformationAt + group.launch, .sectors = 1, .launch = kernel});
    group.loaded = now + input_->parameters().timing().dram.latency;
    input_->Recheck(group.loaded);
  }

  const sim::TimingSpec::DeviceLaunch costs_;
  const Cycle entries_searched_, search_;
  const bool marked_only_, ahead_;
  timing::DeviceInput* input_ = nullptr;
  Distributor running_;
  GroupTable table_;
  std::unordered_map<WorkId, std::uint32_t> entry_of_;  // of groups that have one
  std::array<std::uint64_t, kCounters> counts_{};
};

Result<std::shared_ptr<timing::Part>> Make(const timing::Parameters& parameters, PartValues values) {
  return std::shared_ptr<timing::Part>(std::make_shared<Dtbl>(parameters, values));
}

}  // namespace

const PartKind kDtbl = {
    .name = "dtbl",
    .summary = "thread blocks that kernels launch join kernels of the same code that run",
    .source = "J. Wang, N. Rubin, A. Sidelnik, S. Yalamanchili, Dynamic thread block launch, ISCA 2015",
    .keys = kKeys,
    .counters = kCounterTable,
    .stalls = {},
    .make = Make,
};

}  // namespace gridloom::hardware
