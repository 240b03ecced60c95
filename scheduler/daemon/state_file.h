// The texts of the files in the broker's state folder: `{"version": 1, "tenants": {NAME: …}}`. Both ways take time in
// proportion to the number of names.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "rewriter/support/result.h"

namespace gridloom::broker {

/// The tenants in a file's text. `what` names it in errors: "file of accounts".
Result<nlohmann::json> ParseTenants(std::string_view text, const std::string& path, const std::string& what);

/// Makes what a file says of tenants, one after the other.
class TenantsText {
 public:
  TenantsText();
  /// `json`: the text of an object.
  void Add(const std::string& name, std::string_view json);
  std::string Finish();

 private:
  std::string text_;
  bool any_ = false;
};

/// False where the value is no number that the field can hold.
template <typename Json, typename T>
bool TakeNumber(const Json& value, T* field) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return false;
  } else if (value.is_number_unsigned()) {
    if (!std::in_range<T>(value.template get<std::uint64_t>())) return false;
  } else if (!value.is_number_integer() || !std::in_range<T>(value.template get<std::int64_t>())) {
    return false;
  }
  *field = value.template get<T>();
  return true;
}

}  // namespace gridloom::broker
