#include "sim/hardware/lazy_ctas.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace gridloom::hardware {
namespace {

constexpr std::string_view kSwitch[] = {"off", "on"};

enum Key : std::size_t { kLazy, kWatch, kLeast, kBlock };
constexpr PartKey kKeys[] = {
    {"lazy", 1, 0, 1, "", "whether an SM keeps fewer CTAs of a kernel once the first ones have shown how many it needs",
     kSwitch},
    {"watch", 1, 1, 1024, "CTAs", "CTAs of a kernel that end on an SM before that is decided there"},
    {"least", 1, 1, 1024, "CTAs", "fewest CTAs of a kernel that an SM keeps"},
    {"block", 2, 1, 32, "CTAs", "neighbouring CTAs that go to one SM together; 1: each goes where there is room"},
};

constexpr timing::PartCounter kCounters[] = {
    {"lazy_decisions", "decisions", "kernels on SMs for which it was decided how many CTAs the SM keeps"},
    {"lazy_limits", "CTAs", "sum over decisions of the CTAs that the SM keeps"},
    {"lazy_fits", "CTAs", "sum over decisions of the CTAs that the SM has room for"},
    {"block_ctas", "CTAs", "CTAs that were placed beside the one before them"},
};

/// What is known of a kernel that runs.
struct Kernel {
  std::uint32_t fits = 0;  ///< CTAs that an empty SM has room for
  struct OnSm {
    std::uint32_t ended = 0;
    std::uint32_t limit = std::numeric_limits<std::uint32_t>::max();
  };
  std::vector<OnSm> sms;
  std::uint32_t left = 0;  ///< CTAs of the current block that have not been placed,
  std::uint32_t sm = 0;    ///< all on this SM
};

class LazyCtas final : public timing::Part, timing::CtaEvents, timing::CtaLimit, timing::CtaPlacer {
 public:
  LazyCtas(std::uint32_t sms, PartValues values)
      : sms_(sms),
        lazy_(values[kLazy] != 0),
        watch_(static_cast<std::uint32_t>(values[kWatch])),
        least_(static_cast<std::uint32_t>(values[kLeast])),
        block_(static_cast<std::uint32_t>(values[kBlock])) {}

  void Attach(timing::Ports& ports, timing::DeviceInput&) override {
    ports.cta_events.push_back(this);
    if (lazy_) ports.cta_limits.push_back(this);
    if (block_ > 1) ports.placer = this;
  }
  std::size_t counters() const override { return std::size(kCounters); }
  void Count(std::span<std::uint64_t> values) const override { std::ranges::copy(counts_, values.begin()); }

 private:
  enum Counter : std::size_t { kDecisions, kLimits, kFits, kBlocked };

  void OnKernelReady(timing::Cycle, const timing::KernelReady& ready) override {
    Kernel& kernel = kernels_[ready.launch];
    kernel.fits = ready.fits_per_sm;
    kernel.sms.resize(sms_);
  }

  /// Under a scheduler that favours one CTA, the first to end has issued most. When the SM has issued n times as many
  /// instructions as this one, n CTAs would have kept it as busy; more of them only share its caches.
  void OnCtaEnd(const timing::CtaEnd& end) override {
    Kernel& kernel = kernels_.at(end.launch);
    Kernel::OnSm& sm = kernel.sms[end.sm];
    if (!lazy_ || ++sm.ended != watch_ || end.warp_instructions == 0) return;
    const std::uint64_t needed = (end.resident_instructions + end.warp_instructions - 1) / end.warp_instructions;
    sm.limit =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(needed, std::min(least_, kernel.fits), kernel.fits));
    ++counts_[kDecisions];
    counts_[kLimits] += sm.limit;
    counts_[kFits] += kernel.fits;
  }

  void OnKernelEnd(timing::Cycle, std::uint32_t launch) override { kernels_.erase(launch); }

  bool MayHold(timing::Cycle, std::uint32_t launch, std::uint32_t sm, std::uint32_t resident) override {
    return resident < kernels_.at(launch).sms[sm].limit;
  }

  /// A block goes to the next SM that has room for all of it; its CTAs follow each other.
  std::optional<timing::Placement> Place(const timing::PlacementQuery& query) override {
    Kernel& kernel = kernels_.at(static_cast<std::uint32_t>(query.kernel.id));
    if (kernel.left != 0 && query.Allows(kernel.sm)) {
      ++counts_[kBlocked];
    } else {
      const auto sm = SmForBlock(query, kernel);
      if (!sm) return std::nullopt;
      kernel.sm = *sm;
      kernel.left = BlockOn(query, kernel, *sm);
    }
    --kernel.left;
    return timing::Placement{.sm = kernel.sm, .cta = query.kernel.started};
  }

  /// CTAs of the next block: fewer at the end of the grid, and where an SM holds fewer.
  std::uint32_t BlockOn(const timing::PlacementQuery& query, const Kernel& kernel, std::uint32_t sm) const {
    const std::uint64_t rest = query.kernel.ctas - query.kernel.started;
    std::uint32_t most = std::min({block_, kernel.fits, kernel.sms[sm].limit});
    if (query.slice.max_per_sm != 0) most = std::min(most, query.slice.max_per_sm);
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most, 1, rest));
  }

  std::optional<std::uint32_t> SmForBlock(const timing::PlacementQuery& query, const Kernel& kernel) const {
    const auto count = static_cast<std::uint32_t>(query.sms.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t sm = (query.next_sm + i) % count;
      if (query.Allows(sm) && RoomFor(query, kernel, sm) >= BlockOn(query, kernel, sm)) return sm;
    }
    return std::nullopt;
  }

  /// CTAs of the kernel that the SM may still get.
  static std::uint32_t RoomFor(const timing::PlacementQuery& query, const Kernel& kernel, std::uint32_t index) {
    const policy::SmView& sm = query.sms[index];
    const policy::CtaNeeds& needs = query.kernel.needs;
    const std::uint32_t resident = query.kernel.resident[index];
    std::uint32_t room = sm.free_ctas;
    const auto within = [&](std::uint32_t free, std::uint32_t need) {
      room = need == 0 ? room : std::min(room, free / need);
    };
    within(sm.free_warps, needs.warps);
    within(sm.free_registers, needs.registers);
    within(sm.free_shared_bytes, needs.shared_bytes);
    room = std::min(room, kernel.sms[index].limit - std::min(kernel.sms[index].limit, resident));
    if (query.slice.max_per_sm != 0)
      room = std::min(room, query.slice.max_per_sm - std::min(query.slice.max_per_sm, resident));
    return room;
  }

  const std::uint32_t sms_;
  const bool lazy_;
  const std::uint32_t watch_, least_, block_;
  std::map<std::uint32_t, Kernel> kernels_;  // by launch
  std::array<std::uint64_t, std::size(kCounters)> counts_{};
};

Result<std::shared_ptr<timing::Part>> Make(const timing::Parameters& parameters, PartValues values) {
  if (values[kLazy] == 0 && values[kBlock] == 1) return Error{"with lazy off and blocks of 1 it does nothing"};
  return std::shared_ptr<timing::Part>(std::make_shared<LazyCtas>(parameters.device.sm.count, values));
}

}  // namespace

const PartKind kLazyCtas = {
    .name = "lazy-ctas",
    .summary =
        "lazy and block CTA scheduling: as many CTAs per SM as the first ones show to be needed, neighbours on one SM",
    .source =
        "M. Lee et al., Improving GPGPU resource utilization through alternative thread block scheduling, HPCA 2014",
    .keys = kKeys,
    .counters = kCounters,
    .stalls = {},
    .make = Make,
};

}  // namespace gridloom::hardware
