// What tenants have used, kept over restarts in a JSON file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"
#include "scheduler/daemon/state_folder.h"

namespace gridloom::broker {

struct Account {
  std::uint64_t launches = 0, faults = 0, slices = 0, ctas = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  double device_seconds = 0;
  double simulated_seconds = 0;  ///< SimulatedUsage::seconds
  bool operator==(const Account&) const = default;
};

using Accounts = std::map<std::string, Account>;

/// Nothing when there is no file yet; an error when it cannot be understood.
Result<Accounts> ReadAccounts(StateFolder& folder);
Status WriteAccounts(StateFolder& folder, const Accounts& accounts);

/// The same for the file's text; `path` names it in errors.
Result<Accounts> ParseAccounts(std::string_view text, const std::string& path);
std::string AccountsText(const Accounts& accounts);

}  // namespace gridloom::broker
