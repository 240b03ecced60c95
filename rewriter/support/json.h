// JSON as it is written and read everywhere here. The only users of nlohmann's dump() and parse(): the one throws at
// names that are no UTF-8, what the other makes of deep nesting overflows the stack of who copies or prints it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "rewriter/support/printable.h"

namespace gridloom {

/// Bytes that are not UTF-8, as names of kernels and files may have, become U+FFFD; nothing in it acts on a terminal.
/// `indent` below 0: all on one line.
template <typename Json>
std::string JsonText(const Json& json, int indent = -1) {
  return PrintableJson(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

inline constexpr std::size_t kDeepestJson = 64;

inline std::size_t JsonDepth(std::string_view text) {
  std::size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    else if (c == '"') quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{')) deepest = std::max(deepest, ++depth);
    else if (!quoted && (c == ']' || c == '}') && depth != 0) --depth;
  }
  return deepest;
}

/// is_discarded() where the text is no JSON, or nested deeper than anything that Gridloom writes.
template <typename Json>
Json ParseJson(std::string_view text) {
  return JsonDepth(text) > kDeepestJson ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

}  // namespace gridloom
