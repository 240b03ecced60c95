// Limits that an operator has changed while the broker ran, kept over restarts: one JSON file beside the accounts. A
// change holds as long as the configuration says what it said when the change was made: who edits the configuration
// afterwards means it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"
#include "scheduler/daemon/config.h"
#include "scheduler/daemon/state_folder.h"

namespace gridloom::broker {

struct ChangedLimits {
  Limits configured;  ///< what the configuration said
  Limits now;
};

/// By tenant.
using LimitChanges = std::map<std::string, ChangedLimits>;

/// Nothing when there is no file yet; an error when it cannot be understood.
Result<LimitChanges> ReadLimits(StateFolder& folder);
Status WriteLimits(StateFolder& folder, const LimitChanges& changes);

/// The same for the file's text; `path` names it in errors.
Result<LimitChanges> ParseLimits(std::string_view text, const std::string& path);
std::string LimitsText(const LimitChanges& changes);

}  // namespace gridloom::broker
