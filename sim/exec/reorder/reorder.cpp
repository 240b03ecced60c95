#include "sim/exec/reorder/reorder.h"

#include <algorithm>
#include <utility>

#include "sim/exec/add_stats.h"
#include "sim/exec/ranges/range_pieces.h"
#include "sim/exec/ranges/reference_counts.h"
#include "sim/exec/reorder/cta_chooser.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kMostCtas = 1u << 20;    // of a launch: what is kept of each takes about 100 bytes
constexpr std::uint64_t kMostPieces = 1u << 23;  // that the CTAs of a launch name, before pieces are joined

/// Joins the pieces of a call, with all between them, where there are many: that too is sound, and takes less memory.
class FewPieces final : public RangeSink {
 public:
  FewPieces(RangeSink& to, const DeviceMemory& memory, std::uint64_t most) : to_(to), memory_(memory), most_(most) {}

  void OnRange(const RangeCall& call) override {
    const auto allocation = memory_.Find(call.array);
    if (!allocation || call.count <= most_) return to_.OnRange(call);
    const RangePieces pieces = ClipRange(call, allocation->base, allocation->base + allocation->bytes);
    if (pieces.count <= most_) return to_.OnRange(call);
    RangeCall joined = call;
    joined.base = pieces.base;
    joined.width = (pieces.count - 1) * pieces.stride + pieces.width;
    joined.count = 1;
    joined.stride = 0;
    to_.OnRange(joined);
  }

 private:
  RangeSink& to_;
  const DeviceMemory& memory_;
  const std::uint64_t most_;
};

}  // namespace

LaunchFault Reorderer::RunWhole(const Added& added, ReorderedRun& run, std::string why) {
  run.why_whole = std::move(why);
  if (LaunchFault fault = RunOut(); fault.kind != FaultKind::kNone) return fault;
  if (options_.stop()) return {};
  return engine_.Run(added.launch, &run.stats);
}

LaunchFault Reorderer::Add(Added added, ReorderedRun& run) {
  const std::uint64_t ctas = added.launch.grid.count();
  if (ctas > kMostCtas) return RunWhole(added, run, "it has more than " + std::to_string(kMostCtas) + " thread blocks");
  if (added.profiler_reads || entries_.size() == PageOwners::kMostKernels) {
    if (LaunchFault fault = RunOut(); fault.kind != FaultKind::kNone) return fault;
  }
  ReferenceCounts counts(memory_);
  FewPieces ranges(counts, memory_, std::max<std::uint64_t>(16, kMostPieces / ctas));
  std::vector<std::byte> params;
  LaunchParams profile = ProfilerLaunch(added.launch, added.kernel, params);
  profile.ranges = &ranges;
  if (const LaunchFault fault = engine_.Run(profile); fault.kind != FaultKind::kNone)
    return RunWhole(added, run, "its profiler does not run: " + fault.text);
  const std::uint64_t grid_id = engine_.NewGridId();
  entries_.push_back({.added = std::move(added), .run = &run, .grid_id = grid_id, .left = ctas});
  pages_.push_back({.ctas = static_cast<std::uint32_t>(ctas), .pages = counts.SetByCta()});
  return {};
}

/// Some CTAs of a launch run: they have ended when this returns.
LaunchFault Reorderer::RunSome(Entry& entry, std::span<const std::uint64_t> ctas) {
  LaunchParams part = entry.added.launch;
  part.ctas = ctas;
  part.in_turn = entry.added.in_turn;
  part.grid_id = entry.grid_id;
  LaunchStats stats;
  LaunchFault fault = engine_.Run(part, &stats);
  AddTo(entry.run->stats, stats);
  return fault;
}

void Reorderer::Count(std::uint32_t kernel, std::uint64_t ctas) {
  counts_.ctas += ctas;
  entries_[kernel].begun = true;
  const auto older_left = [](const Entry& entry) { return entry.left != 0; };
  if (std::any_of(entries_.begin(), entries_.begin() + kernel, older_left)) counts_.ahead += ctas;
  const auto running =
      std::ranges::count_if(entries_, [](const Entry& entry) { return entry.begun && entry.left != 0; });
  counts_.side_by_side = std::max(counts_.side_by_side, static_cast<std::uint64_t>(running));
  entries_[kernel].left -= ctas;
}

LaunchFault Reorderer::RunOut() {
  if (entries_.empty()) return {};
  ++counts_.batches;
  counts_.launches += entries_.size();
  Lots seeds(options_.seed + counts_.batches);
  CtaChooser chooser(seeds.Next());
  PageOwners owners(options_.heed_owners ? std::span<const PageOwners::Kernel>(pages_)
                                         : std::span<const PageOwners::Kernel>());
  const auto add_ready = [&] {
    for (const KernelCta& cta : owners.TakeReady()) chooser.AddReady(cta.kernel, cta.cta);
  };
  for (std::uint32_t k = 0; k < entries_.size(); ++k) {
    chooser.AddKernel(pages_[k].ctas, entries_[k].added.in_turn);
    for (std::uint32_t cta = 0; !options_.heed_owners && cta < pages_[k].ctas; ++cta) chooser.AddReady(k, cta);
  }
  LaunchFault fault;
  for (add_ready(); !options_.stop(); add_ready()) {
    const auto chosen = chooser.Choose();
    if (!chosen) break;
    Count(chosen->kernel, chosen->ctas.size());
    fault = RunSome(entries_[chosen->kernel], chosen->ctas);
    if (fault.kind != FaultKind::kNone) break;
    for (const std::uint64_t cta : chosen->ctas) {
      if (options_.heed_owners) owners.Release({chosen->kernel, static_cast<std::uint32_t>(cta)});
    }
  }
  entries_.clear();
  pages_.clear();
  return fault;
}

}  // namespace gridloom::exec
