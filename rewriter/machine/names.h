// Lists of names that several rows of the table share.
#pragma once

#include <optional>
#include <string_view>

namespace gridloom::machine {

/// The list of that name (names.def), as it stands in a row between parentheses.
std::optional<std::string_view> SharedNames(std::string_view name);

}  // namespace gridloom::machine
