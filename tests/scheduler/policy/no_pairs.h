// What policies need, for tests of all of them: there is everything, and nothing pays.
#pragma once

#include "scheduler/policy/builtin.h"

namespace gridloom::policy {

inline PolicyInputs NoPairs() {
  struct Planner final : CoSchedulePlanner {
    std::optional<CoSchedule> Find(std::span<const std::uint64_t>) override { return std::nullopt; }
  };
  const auto planner = std::make_shared<Planner>();
  return {.planner = planner, .learning_planner = planner, .follows_pages = true};
}

}  // namespace gridloom::policy
