// What the experiments of Kernelet measure on one device in one layout of the programs' pages: each kernel alone and in
// slices, pairs of kernels side by side in every slice ratio; and what follows from that: profiles, planners,
// simulations of arrivals.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/model/planner.h"
#include "sim/study/experiment/settings.h"
#include "sim/study/measure/arrivals.h"
#include "sim/study/measure/co_run.h"
#include "sim/study/measure/measurements.h"

namespace gridloom::study {

/// A kernel of the study.
struct StudyKernel {
  std::shared_ptr<const TracedKernel> traced;
  double paper_ctas = 0;  ///< thread blocks of the paper's launch
  double scale = 1;       ///< work of one of them in thread blocks of the trace
};

/// Thread blocks per SM of two kernels, numbered as in the study.
struct PairLoad {
  std::size_t a = 0, b = 0;
  std::uint32_t ctas_a = 0, ctas_b = 0;
};

struct SliceCost {
  std::uint32_t ctas_per_sm = 0;  ///< the slice has as many blocks for each SM
  double overhead = 0;            ///< T_s / T_ns - 1 (section 5.2)
};

class KernelStudy {
 public:
  /// Measures every kernel alone and in slices. `layout`: of the pages of the kernels' processes
  /// (timing::EngineOptions). `settings` and `measurements` must outlive the study.
  static Result<std::unique_ptr<KernelStudy>> Create(const Settings& settings, sim::DeviceSpec device,
                                                     std::vector<StudyKernel> kernels, std::uint64_t layout,
                                                     Measurements& measurements);

  const sim::DeviceSpec& device() const { return device_; }
  const model::SmModel& sm() const { return sm_; }
  const std::vector<StudyKernel>& kernels() const { return kernels_; }
  const model::KernelProfile& profile(std::size_t kernel) const { return *profiles_->Get(kernel + 1); }
  std::shared_ptr<const model::ProfileTable> profiles() const { return profiles_; }  ///< kernel i has number i + 1
  double AloneCtasPerCycle(std::size_t kernel) const { return alone_[kernel]; }
  const std::vector<SliceCost>& slices(std::size_t kernel) const { return slices_[kernel]; }
  std::size_t KernelNamed(const std::string& name) const;  ///< kernels().size(): none
  /// What Kernelet's decisions are made with: the Markov chain, within bounds of the SM's resources unless model.bounds
  /// is 0.
  std::shared_ptr<const model::CoRunModel> model() const { return model_; }
  model::PlanOptions plan_options() const { return plan_options_; }

  /// All slice ratios of a pair, as the planners see them, and the largest with as many blocks of each.
  std::vector<PairLoad> RatiosOf(std::size_t a, std::size_t b) const;
  std::optional<PairLoad> OneToOne(std::size_t a, std::size_t b) const;
  /// Blocks of `next` that find room beside a full load of `first`.
  std::uint32_t LeftOver(std::size_t first, std::size_t next) const;

  /// Measures what of it is not measured yet.
  Status MeasurePairs(const std::vector<PairLoad>& loads);
  /// cIPC of both; measures it if need be.
  Result<std::array<double, 2>> PairIpc(const PairLoad& load);
  /// What trying a pair, in slices, tells and takes: rates as parts of those alone; cycles of as many waves as are
  /// measured, of the paper's blocks.
  struct PairProbe {
    std::array<double, 2> parts{};
    double cycles = 0;
  };
  Result<PairProbe> ProbePair(const PairLoad& load);
  /// All ratios of all pairs that are measured, for OPT.
  std::shared_ptr<const model::MeasuredRates> measured() const { return measured_; }

  /// Part of a kernel's rate that slices of so many blocks per SM leave of it: 1 / (1 + overhead).
  double SlicingFactor(std::size_t kernel, std::uint32_t ctas_per_sm) const;

  /// Simulates so many instances of each of these kernels. Null planner: BASE. Sliced kernels pay for slicing.
  Result<ArrivalResult> Simulate(const std::vector<std::size_t>& mix, policy::CoSchedulePlanner* planner,
                                 std::uint64_t instances, std::uint64_t seed);

  /// All kernels of the traces at once, a launch each. Two ways to the same number: the timing model alone under
  /// `policy` (serial, leftover, or kernelet with `planner`), and the two levels. Cycles.
  Result<double> TogetherWhole(const std::string& policy, const std::shared_ptr<policy::CoSchedulePlanner>& planner);
  Result<double> TogetherInTwoLevels(policy::CoSchedulePlanner* planner);

 private:
  KernelStudy(const Settings& settings, sim::DeviceSpec device, std::vector<StudyKernel> kernels, std::uint64_t layout,
              Measurements& measurements);
  Status ReadSettings();
  std::string Key(std::uint64_t layout, const std::string& what) const;
  Measurement Alone(std::size_t kernel) const;
  Measurement LoneBlock(std::size_t kernel) const;
  Measurement InSlices(std::size_t kernel, std::uint32_t ctas_per_sm) const;
  Measurement Pair(const PairLoad& load) const;
  Status MeasureKernels();
  Status TakeSlices(std::size_t kernel, model::KernelProfile& profile);

  const Settings& settings_;
  const sim::DeviceSpec device_;
  const std::vector<StudyKernel> kernels_;
  const std::uint64_t layout_;
  Measurements& measurements_;
  const std::string device_key_;
  model::SmModel sm_;
  CoRunOptions co_run_;
  model::PlanOptions plan_options_;
  double slicing_limit_ = 0, launch_interval_us_ = 0, mur_unit_ = 1, load_ = 0;
  /// What slices cost is measured in the first layout: it depends on launches, not on pages.
  std::uint64_t slicing_layout_ = 0;
  double bounds_ = 0;  ///< of BoundedModel; 0: the Markov chain alone
  std::vector<policy::CtaNeeds> needs_;
  std::vector<std::uint32_t> full_;  // blocks per SM of each kernel alone
  std::vector<double> alone_;        // blocks per cycle of the device
  std::vector<std::vector<SliceCost>> slices_;
  std::shared_ptr<model::ProfileTable> profiles_ = std::make_shared<model::ProfileTable>();
  std::map<std::array<std::size_t, 4>, std::array<double, 2>>
      pair_ipc_;  // by kernels and their blocks per SM, as far as asked for
  std::shared_ptr<const model::CoRunModel> model_;
  std::shared_ptr<model::MeasuredRates> measured_ = std::make_shared<model::MeasuredRates>();
};

}  // namespace gridloom::study
