// The policies there are, by name: the one list.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "scheduler/policy/kernelet.h"
#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// What some policies want to know.
struct PolicyInputs {
  std::shared_ptr<CoSchedulePlanner> planner{};           ///< of `kernelet`; without one, no co-schedule pays
  std::shared_ptr<CoSchedulePlanner> learning_planner{};  ///< of `kernelet-probing`
  KerneletOptions kernelet{};
  std::uint64_t fair_wait = 0;  ///< of `fair`: Fair::Fair
};

/// The policy of that name, or null.
std::unique_ptr<Policy> MakePolicy(std::string_view name, const PolicyInputs& inputs = {});

/// All names, sorted.
std::vector<std::string_view> PolicyNames();

}  // namespace gridloom::policy
