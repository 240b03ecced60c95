// Options of `gridloom run`: each becomes environment variables that the driver shim reads. LD_PRELOAD with the same
// variables set by hand does the same as `gridloom run`. The list is interpose/settings/settings.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::launcher {

using Assignment = std::pair<std::string, std::string>;

struct RunOption {
  std::string_view flags;        ///< as CLI11 takes them: "--quiet,-q"
  std::string_view placeholder;  ///< of its value; empty for a flag
  std::string help;
  std::vector<Assignment> set;  ///< variables and values; "{}" stands for the option's value
  /// Checks a value before anything is started and returns it as the shim gets it. Null: any text is right.
  Result<std::string> (*check)(const std::string& value);
  bool value_optional = false;  ///< the value, if any, is given as --option=VALUE
};

std::span<const RunOption> RunOptions();

/// A policy that runs launches in a way of its own and simulates no time.
inline constexpr std::string_view kTaskPolicy = "pagoda";

/// Options that set it come one behind the other in it, separated by commas.
inline constexpr std::string_view kTimingSet = "GRIDLOOM_TIMING_SET";

/// The variables that an option given with `value` sets.
Result<std::vector<Assignment>> Assignments(const RunOption& option, const std::string& value);

/// Splits the arguments of `run` into its own and the program's with its arguments: the program begins after "--", or
/// where an argument that is no option (nor an option's value) stands.
struct RunArguments {
  std::vector<std::string> own, program;
};
RunArguments SplitRunArguments(const std::vector<std::string>& arguments);

}  // namespace gridloom::launcher
