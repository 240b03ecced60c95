// Parameters of the policy `kernelet`, as configs/policies/kernelet.yaml gives them.
#pragma once

#include <span>
#include <string_view>

#include "rewriter/support/result.h"
#include "scheduler/model/plan.h"
#include "scheduler/policy/kernelet.h"

namespace gridloom::model {

struct KerneletConfig {
  double overhead_percent = 2;  ///< p (section 4.1): for who finds KernelProfile::smallest_slice
  PlanOptions plan{};
  ModelOptions model{};
  policy::KerneletOptions policy{};
};

/// Sets one parameter; nested keys are written with dots: "prune.pur". Fails with a sentence that names the key and what its value
/// has to be, or for an unknown key the nearest right one.
Status SetKerneletParameter(KerneletConfig& config, std::string_view key, std::string_view value);

/// All keys, in the order of the file.
std::span<const std::string_view> KerneletParameters();

}  // namespace gridloom::model
