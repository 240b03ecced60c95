// Parameters of the policy `kernelet`, as configs/policies/kernelet.yaml gives them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rewriter/support/result.h"
#include "scheduler/model/plan.h"
#include "scheduler/policy/kernelet.h"

namespace gridloom::model {

struct KerneletConfig {
  double overhead_percent = 2;  ///< p (section 4.1): for who finds KernelProfile::smallest_slice
  /// The host's time for a launch, for the same; the paper's overheads imply 5 on the C2050.
  double launch_interval_us = 5;
  /// MUR is a share of DRAM's peak bandwidth here; the paper's 0.1 is in a unit five times as large (docs/kernelet.md).
  /// A co-schedule that saves less than slices may cost is not worth its slices. Blocks are replaced one by one, so no
  /// slice waits for that of the other kernel, and a ratio need not balance their times; but among ratios that differ
  /// by less than slices may cost, balance decides.
  PlanOptions plan{.prune_mur = 0.5, .ratio = PlanOptions::Ratio::kBest, .ratio_tolerance = 0.02, .least_profit = 0.02};
  /// Instructions of each measurement, for each SM, where a kernel is profiled while its program runs; 0: any number.
  std::uint64_t profile_instructions = 50'000;
  ModelOptions model{};
  double bounds = 0.9;  ///< part of the SM's resources that the model's answers are kept within (bounded_model.h); 0:
                        ///< the chain alone
  policy::KerneletOptions policy{};
};

/// Sets one parameter; nested keys are written with dots: "prune.pur". Fails with a sentence that names the key and
/// what its value has to be, or for an unknown key the nearest right one.
Status SetKerneletParameter(KerneletConfig& config, std::string_view key, std::string_view value);

/// All keys, in the order of the file.
std::span<const std::string_view> KerneletParameters();

}  // namespace gridloom::model
