#include "sim/study/kernelet/kernel_study.h"

#include <algorithm>

#include "scheduler/model/bounded_model.h"
#include "scheduler/policy/builtin.h"
#include "sim/study/measure/profiling.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::study {
namespace {

/// The counters that a measurement of a kernel alone keeps: those that profiling.h reads.
template <typename Counters>
auto KeptCounters(Counters& counters) {
  return std::array{&counters.sm.warp_instructions,
                    &counters.sm.dual_issues,
                    &counters.sm.l1_hits,
                    &counters.sm.l1_misses,
                    &counters.sm.responses,
                    &counters.sm.response_sectors,
                    &counters.memory.l2_sector_accesses,
                    &counters.memory.l2_sector_misses,
                    &counters.memory.dram_read_bytes,
                    &counters.memory.dram_write_bytes,
                    &counters.memory.dram_activations,
                    &counters.memory.l2_busy_cycles};
}

constexpr std::size_t kAloneNumbers = 3 + std::tuple_size_v<decltype(KeptCounters(std::declval<timing::Counters&>()))>;

std::vector<double> Pack(const CoRunRates& rates) {
  std::vector<double> numbers{rates.parts[0].ctas_per_cycle, rates.parts[0].ipc, static_cast<double>(rates.cycles)};
  for (const std::uint64_t* counter : KeptCounters(rates.counters)) numbers.push_back(static_cast<double>(*counter));
  return numbers;
}

/// The rates that Pack has made numbers of; there must be as many as Pack makes.
CoRunRates Unpack(const std::vector<double>& numbers) {
  CoRunRates rates;
  const auto counters = KeptCounters(rates.counters);
  rates.parts.push_back({.ctas_per_cycle = numbers[0], .ipc = numbers[1]});
  rates.cycles = static_cast<timing::Cycle>(numbers[2]);
  for (std::size_t i = 0; i < counters.size(); ++i) *counters[i] = static_cast<std::uint64_t>(numbers[3 + i]);
  return rates;
}

/// The study as the upper level of the simulation sees it: kinds are positions in a mix.
class StudyRates final : public Rates {
 public:
  /// `slices_cost`: whether kernels that are sliced pay for it; the timing model places blocks one by one.
  StudyRates(KernelStudy& study, const std::vector<std::size_t>& mix, bool slices_cost)
      : study_(study), mix_(mix), slices_cost_(slices_cost) {}

  Result<double> Alone(std::size_t kind) override { return study_.AloneCtasPerCycle(mix_[kind]); }
  Result<std::array<double, 2>> Together(std::size_t a, std::uint32_t ctas_a, std::size_t b,
                                         std::uint32_t ctas_b) override {
    const PairLoad load{.a = mix_[a], .b = mix_[b], .ctas_a = ctas_a, .ctas_b = ctas_b};
    GL_TRY(ipc, study_.PairIpc(load));
    // A full load beside leftovers is BASE's: nothing is sliced.
    const bool sliced = slices_cost_ && ctas_a != Full(a);
    std::array<double, 2> rates{};
    const std::size_t kernels[] = {load.a, load.b};
    const std::uint32_t ctas[] = {ctas_a, ctas_b};
    for (std::size_t i = 0; i < 2; ++i) {
      rates[i] = ipc[i] * study_.device().sm.count / study_.kernels()[kernels[i]].traced->instructions_per_cta;
      if (sliced) rates[i] *= study_.SlicingFactor(kernels[i], ctas[i]);
    }
    return rates;
  }
  std::uint32_t LeftOver(std::size_t first, std::size_t next) override {
    return study_.LeftOver(mix_[first], mix_[next]);
  }
  std::uint32_t Full(std::size_t kind) override { return study_.profile(mix_[kind]).max_resident_ctas; }

 private:
  KernelStudy& study_;
  const std::vector<std::size_t>& mix_;
  const bool slices_cost_;
};

}  // namespace

KernelStudy::KernelStudy(const Settings& settings, sim::DeviceSpec device, std::vector<StudyKernel> kernels,
                         std::uint64_t layout, Measurements& measurements)
    : settings_(settings),
      device_(std::move(device)),
      kernels_(std::move(kernels)),
      layout_(layout),
      measurements_(measurements),
      device_key_(MeasurementKey(device_)),
      sm_(SmModelOf(device_)) {}

Result<std::unique_ptr<KernelStudy>> KernelStudy::Create(const Settings& settings, sim::DeviceSpec device,
                                                         std::vector<StudyKernel> kernels, std::uint64_t layout,
                                                         Measurements& measurements) {
  std::unique_ptr<KernelStudy> study(
      new KernelStudy(settings, std::move(device), std::move(kernels), layout, measurements));
  GL_TRY_STATUS(study->ReadSettings());
  GL_TRY_STATUS(study->MeasureKernels());
  return study;
}

Status KernelStudy::ReadSettings() {
  const std::string& id = device_.id;
  GL_TRY(warmup, settings_.Number("measure.warmup_waves"));
  GL_TRY(measured, settings_.Number("measure.measured_waves"));
  if (warmup < 1 || measured < 1) return Error{"measure.warmup_waves and measure.measured_waves must be at least 1"};
  co_run_ = {.warmup_waves = static_cast<std::uint32_t>(warmup),
             .measured_waves = static_cast<std::uint32_t>(measured),
             .layout = layout_};
  GL_TRY(slicing_layout, settings_.Number("layouts.first"));
  slicing_layout_ = static_cast<std::uint64_t>(slicing_layout);
  GL_TRY(pur, settings_.Number("prune.pur." + id));
  GL_TRY(mur, settings_.Number("prune.mur." + id));
  GL_TRY(unit, settings_.Number("mur_unit"));
  GL_TRY(limit, settings_.Number("slicing.overhead"));
  GL_TRY(interval, settings_.Number("slicing.launch_interval_us." + id));
  GL_TRY(bounds, settings_.Number("model.bounds"));
  GL_TRY(ratio, settings_.Text("model.ratio"));
  if (ratio != "best" && ratio != "balanced") return Error{"model.ratio must be best or balanced"};
  GL_TRY(tolerance, settings_.Number("model.ratio_tolerance"));
  GL_TRY(load, settings_.Number("arrivals.load"));
  if (load <= 0) return Error{"arrivals.load must be above 0"};
  plan_options_.prune_pur = pur;
  plan_options_.prune_mur = mur;
  plan_options_.max_ratios = 0;
  plan_options_.ratio_tolerance = tolerance;
  plan_options_.ratio = ratio == "best" ? model::PlanOptions::Ratio::kBest : model::PlanOptions::Ratio::kBalanced;
  plan_options_.least_profit = limit;  // as much as slices may cost
  mur_unit_ = unit;
  slicing_limit_ = limit;
  launch_interval_us_ = interval;
  if (bounds < 0 || bounds > 1) return Error{"model.bounds must be between 0 and 1"};
  bounds_ = bounds;
  load_ = load;
  return {};
}

std::string KernelStudy::Key(std::uint64_t layout, const std::string& what) const {
  return device_key_ + " layout " + std::to_string(layout) + " " + std::to_string(co_run_.warmup_waves) + "+" +
         std::to_string(co_run_.measured_waves) + " " + what;
}

Measurement KernelStudy::Alone(std::size_t kernel) const {
  const auto& traced = kernels_[kernel].traced;
  return {.what = device_.id + ": " + traced->name + " alone",
          .key = Key(layout_, "alone, 12 counters " + traced->digest),
          .measure = [this, kernel]() -> Result<std::vector<double>> {
            const CoRunPart part{.kernel = kernels_[kernel].traced, .ctas_per_sm = full_[kernel]};
            GL_TRY(rates, MeasureCoRun(device_, std::span(&part, 1), co_run_));
            return Pack(rates);
          }};
}

Measurement KernelStudy::LoneBlock(std::size_t kernel) const {
  const auto& traced = kernels_[kernel].traced;
  return {.what = device_.id + ": one block of " + traced->name + " on each SM",
          .key = Key(layout_, "one block " + traced->digest),
          .measure = [this, kernel]() -> Result<std::vector<double>> {
            const CoRunPart part{.kernel = kernels_[kernel].traced, .ctas_per_sm = 1};
            GL_TRY(rates, MeasureCoRun(device_, std::span(&part, 1), co_run_));
            return std::vector<double>{rates.parts[0].ipc};
          }};
}

/// `ctas_per_sm` 0: in one launch.
Measurement KernelStudy::InSlices(std::size_t kernel, std::uint32_t ctas_per_sm) const {
  const StudyKernel& studied = kernels_[kernel];
  // Blocks of the trace are shorter than the paper's; so are the host's launches then.
  const double cycles = launch_interval_us_ * device_.timing.clock.sm_mhz / studied.scale;
  SlicedRun run = SlicingRun(device_, full_[kernel], ctas_per_sm, static_cast<timing::Cycle>(cycles));
  run.layout = slicing_layout_;
  return {.what = device_.id + ": " + studied.traced->name +
                  (ctas_per_sm == 0 ? " whole" : " in slices of " + std::to_string(run.slice)),
          .key = Key(slicing_layout_, "sliced " + studied.traced->digest + " " + std::to_string(run.slice) + "/" +
                                          std::to_string(run.ctas) + " from " + std::to_string(run.skip) + " every " +
                                          std::to_string(run.launch_interval)),
          .measure = [this, run, traced = studied.traced]() -> Result<std::vector<double>> {
            GL_TRY(end, MeasureSliced(device_, traced, run));
            return std::vector<double>{static_cast<double>(end)};
          }};
}

Measurement KernelStudy::Pair(const PairLoad& load) const {
  const TracedKernel &a = *kernels_[load.a].traced, &b = *kernels_[load.b].traced;
  const std::string ratio = std::to_string(load.ctas_a) + ":" + std::to_string(load.ctas_b);
  return {.what = device_.id + ": " + a.name + " and " + b.name + " " + ratio,
          .key = Key(layout_, "pair " + a.digest + " " + b.digest + " " + ratio),
          .measure = [this, load]() -> Result<std::vector<double>> {
            const CoRunPart parts[] = {{.kernel = kernels_[load.a].traced, .ctas_per_sm = load.ctas_a},
                                       {.kernel = kernels_[load.b].traced, .ctas_per_sm = load.ctas_b}};
            GL_TRY(rates, MeasureCoRun(device_, parts, co_run_));
            return std::vector<double>{rates.parts[0].ipc, rates.parts[1].ipc};
          }};
}

Status KernelStudy::MeasureKernels() {
  std::vector<Measurement> jobs;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    GL_TRY(needs, timing::NeedsOf(kernels_[i].traced->shape, device_));
    needs_.push_back(needs);
    full_.push_back(timing::CtasPerSm(needs, device_));
    jobs.push_back(Alone(i));
    jobs.push_back(LoneBlock(i));
    for (std::uint32_t ctas = 0; ctas <= full_[i]; ++ctas) jobs.push_back(InSlices(i, ctas));
  }
  GL_TRY_STATUS(measurements_.Make(jobs));
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    GL_TRY(numbers, measurements_.Get(Alone(i), kAloneNumbers));
    const CoRunRates alone = Unpack(numbers);
    alone_.push_back(alone.parts[0].ctas_per_cycle);
    GL_TRY(lone_ipc, measurements_.GetNumber(LoneBlock(i)));
    GL_TRY(profile, ProfileFrom(*kernels_[i].traced, device_, alone, lone_ipc));
    profile.mur *= mur_unit_;
    GL_TRY_STATUS(TakeSlices(i, profile));
    GL_TRY(number, profiles_->Add(std::move(profile)));
    static_cast<void>(number);  // i + 1
  }
  model_ = model::MakeCoRunModel(sm_, {}, bounds_);
  return {};
}

/// Slicing overheads from the cache, and the smallest slice within the limit.
Status KernelStudy::TakeSlices(std::size_t kernel, model::KernelProfile& profile) {
  GL_TRY(whole, measurements_.GetNumber(InSlices(kernel, 0)));
  std::vector<SliceCost> costs;
  profile.smallest_slice = std::uint64_t{full_[kernel]} * device_.sm.count;
  for (std::uint32_t ctas = full_[kernel]; ctas >= 1; --ctas) {
    GL_TRY(cycles, measurements_.GetNumber(InSlices(kernel, ctas)));
    costs.push_back({.ctas_per_sm = ctas, .overhead = cycles / whole - 1});
    if (costs.back().overhead <= slicing_limit_) profile.smallest_slice = std::uint64_t{ctas} * device_.sm.count;
  }
  std::ranges::reverse(costs);
  slices_.push_back(std::move(costs));
  return {};
}

std::size_t KernelStudy::KernelNamed(const std::string& name) const {
  return static_cast<std::size_t>(
      std::ranges::find(kernels_, name, [](const StudyKernel& kernel) { return kernel.traced->name; }) -
      kernels_.begin());
}

double KernelStudy::SlicingFactor(std::size_t kernel, std::uint32_t ctas_per_sm) const {
  const auto found = std::ranges::find(slices_[kernel], ctas_per_sm, &SliceCost::ctas_per_sm);
  return found == slices_[kernel].end() ? 1 : 1 / (1 + std::max(0.0, found->overhead));
}

std::vector<PairLoad> KernelStudy::RatiosOf(std::size_t a, std::size_t b) const {
  std::vector<PairLoad> loads;
  for (const auto& [ctas_a, ctas_b] : model::SliceRatios(sm_, profile(a), profile(b)))
    loads.push_back({a, b, ctas_a, ctas_b});
  return loads;
}

std::optional<PairLoad> KernelStudy::OneToOne(std::size_t a, std::size_t b) const {
  policy::SmView room = sm_.empty;
  std::uint32_t ctas = 0;
  const policy::CtaNeeds both{.warps = needs_[a].warps + needs_[b].warps,
                              .registers = needs_[a].registers + needs_[b].registers,
                              .shared_bytes = needs_[a].shared_bytes + needs_[b].shared_bytes};
  for (; room.free_ctas >= 2 && room.Fits(both); ++ctas) {
    room.free_ctas -= 2;
    room.free_warps -= both.warps;
    room.free_registers -= both.registers;
    room.free_shared_bytes -= both.shared_bytes;
  }
  return ctas == 0 ? std::nullopt : std::optional(PairLoad{a, b, ctas, ctas});
}

std::uint32_t KernelStudy::LeftOver(std::size_t first, std::size_t next) const {
  policy::SmView room = sm_.empty;
  room.free_ctas -= full_[first];
  room.free_warps -= full_[first] * needs_[first].warps;
  room.free_registers -= full_[first] * needs_[first].registers;
  room.free_shared_bytes -= full_[first] * needs_[first].shared_bytes;
  return model::ResidentCtas(room, needs_[next]);
}

Status KernelStudy::MeasurePairs(const std::vector<PairLoad>& loads) {
  std::vector<Measurement> jobs;
  for (PairLoad load : loads) {
    if (load.a > load.b) load = {load.b, load.a, load.ctas_b, load.ctas_a};
    jobs.push_back(Pair(load));
  }
  GL_TRY_STATUS(measurements_.Make(jobs));
  for (const PairLoad& load : loads) {
    GL_TRY(ipc, PairIpc(load));
    measured_->Set(profile(load.a), load.ctas_a, profile(load.b), load.ctas_b, ipc);
  }
  return {};
}

Result<std::array<double, 2>> KernelStudy::PairIpc(const PairLoad& load) {
  if (load.a > load.b) {
    GL_TRY(ipc, PairIpc({load.b, load.a, load.ctas_b, load.ctas_a}));
    return std::array{ipc[1], ipc[0]};
  }
  const std::array<std::size_t, 4> memo{load.a, load.b, load.ctas_a, load.ctas_b};
  if (const auto known = pair_ipc_.find(memo); known != pair_ipc_.end()) return known->second;
  GL_TRY(numbers, measurements_.Get(Pair(load), 2));
  return pair_ipc_[memo] = {numbers[0], numbers[1]};
}

Result<KernelStudy::PairProbe> KernelStudy::ProbePair(const PairLoad& load) {
  GL_TRY(ipc, PairIpc(load));
  PairProbe probe;
  const std::size_t kernels[] = {load.a, load.b};
  const std::uint32_t ctas[] = {load.ctas_a, load.ctas_b};
  for (std::size_t i = 0; i < 2; ++i) {
    probe.parts[i] = ipc[i] / profile(kernels[i]).ipc * SlicingFactor(kernels[i], ctas[i]);
    const double wave = ctas[i] * profile(kernels[i]).instructions_per_cta / ipc[i] * kernels_[kernels[i]].scale;
    probe.cycles = std::max(probe.cycles, wave * (co_run_.warmup_waves + co_run_.measured_waves));
  }
  return probe;
}

Result<ArrivalResult> KernelStudy::Simulate(const std::vector<std::size_t>& mix, policy::CoSchedulePlanner* planner,
                                            std::uint64_t instances, std::uint64_t seed) {
  std::vector<Kind> kinds;
  double work = 0;  // cycles for one instance of each, one after the other
  for (const std::size_t kernel : mix) {
    kinds.push_back({.profile = kernel + 1, .ctas = kernels_[kernel].paper_ctas * kernels_[kernel].scale});
    work += kinds.back().ctas / alone_[kernel];
  }
  StudyRates rates(*this, mix, true);
  return SimulateArrivals(kinds, rates, planner, {.instances = instances, .interarrival = work / load_, .seed = seed});
}

Result<double> KernelStudy::TogetherWhole(const std::string& policy,
                                          const std::shared_ptr<policy::CoSchedulePlanner>& planner) {
  std::string what = "together under " + policy;
  std::vector<std::shared_ptr<const TracedKernel>> kernels;
  for (const StudyKernel& kernel : kernels_) {
    kernels.push_back(kernel.traced);
    what += " " + kernel.traced->digest;
  }
  // What a planner decides follows from the profiles and these.
  if (planner != nullptr) {
    what += " bounds " + std::to_string(bounds_) + " ratio " + std::to_string(static_cast<int>(plan_options_.ratio)) +
            " within " + std::to_string(plan_options_.ratio_tolerance) + " least " +
            std::to_string(plan_options_.least_profit) + " prune " + std::to_string(plan_options_.prune_pur) + " " +
            std::to_string(plan_options_.prune_mur) + " slices";
    for (std::size_t i = 0; i < kernels_.size(); ++i) what += " " + std::to_string(profile(i).smallest_slice);
  }
  const Measurement job{.what = device_.id + ": all kernels together under " + policy,
                        .key = Key(layout_, what),
                        .measure = [&]() -> Result<std::vector<double>> {
                          GL_TRY(made, policy::MakePolicy(policy, {.planner = planner}));
                          GL_TRY(cycles, MeasureTogether(device_, kernels, *made, layout_));
                          return std::vector<double>{static_cast<double>(cycles)};
                        }};
  return measurements_.GetNumber(job);
}

Result<double> KernelStudy::TogetherInTwoLevels(policy::CoSchedulePlanner* planner) {
  std::vector<Kind> kinds;
  std::vector<std::size_t> mix;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    kinds.push_back({.profile = i + 1, .ctas = static_cast<double>(kernels_[i].traced->ctas.size())});
    mix.push_back(i);
  }
  StudyRates rates(*this, mix, false);
  GL_TRY(result, SimulateArrivals(kinds, rates, planner, {.instances = 1, .interarrival = 0}));
  return result.cycles;
}

}  // namespace gridloom::study
