// Files of a report are there as a whole or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"

namespace gridloom::report {

using Json = nlohmann::ordered_json;

/// Bytes that are not UTF-8, as names of kernels may have, become U+FFFD. `indent` below 0: all on one line.
std::string JsonText(const Json& json, int indent = -1);

/// Writes a file beside `path` and renames it: who reads `path`, or is left with it after a crash, sees the old or the new contents.
Status WriteFile(const std::string& path, std::string_view text);

}  // namespace gridloom::report
