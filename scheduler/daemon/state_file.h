// The files in the broker's state folder: `{"version": 1, "tenants": {NAME: …}}`, replaced whole, so that a crash at any point leaves the
// old one or the new one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "rewriter/support/result.h"

namespace gridloom::broker {

/// A file's text; nothing when there is no file yet.
Result<std::optional<std::string>> ReadStateFile(const std::string& path);

/// The tenants in a file's text. `what` names it in errors: "file of accounts".
Result<nlohmann::ordered_json> ParseTenants(std::string_view text, const std::string& path, const std::string& what);

/// What a file says of tenants.
std::string TenantsText(nlohmann::ordered_json tenants);

/// Writes a file whole: another name first, then in its place.
Status ReplaceFile(const std::string& path, const std::string& text);

/// False where the value is no number that the field can hold.
template <typename T>
bool TakeNumber(const nlohmann::ordered_json& value, T* field) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return false;
  } else if (value.is_number_unsigned()) {
    if (!std::in_range<T>(value.get<std::uint64_t>())) return false;
  } else if (!value.is_number_integer() || !std::in_range<T>(value.get<std::int64_t>())) {
    return false;
  }
  *field = value.get<T>();
  return true;
}

}  // namespace gridloom::broker
