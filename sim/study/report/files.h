// Files of a report are there as a whole or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "rewriter/support/json.h"
#include "rewriter/support/result.h"

namespace gridloom::report {

using Json = nlohmann::ordered_json;

using gridloom::JsonText;

/// Writes a file beside `path` and renames it: who reads `path`, or is left with it after a crash, sees the old or the
/// new contents.
Status WriteFile(const std::string& path, std::string_view text);

}  // namespace gridloom::report
