// The policies there are, by name: the one list.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// The policy of that name, or null.
std::unique_ptr<Policy> MakePolicy(std::string_view name);

/// All names, sorted.
std::vector<std::string_view> PolicyNames();

}  // namespace gridloom::policy
