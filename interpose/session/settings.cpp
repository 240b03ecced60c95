#include "interpose/session/settings.h"

#include <strings.h>

#include <charconv>
#include <cstdlib>

namespace gridloom::session {

Settings Settings::FromEnvironment() {
  Settings settings;
#define GL_SETTING(field, variable, meaning) \
  if (const char* text = std::getenv(variable)) settings.field = text;
#include "interpose/session/settings.def"
#undef GL_SETTING
  return settings;
}

const Settings& TheSettings() {
  static const Settings* const settings = new Settings(Settings::FromEnvironment());
  return *settings;
}

std::span<const SettingRow> SettingTable() {
  static constexpr SettingRow kRows[] = {
#define GL_SETTING(field, variable, meaning) {variable, meaning},
#include "interpose/session/settings.def"
#undef GL_SETTING
  };
  return kRows;
}

bool IsOn(const std::optional<std::string>& text) {
  if (!text) return false;
  for (const char* yes : {"1", "on", "true", "yes"}) {
    if (strcasecmp(text->c_str(), yes) == 0) return true;
  }
  return false;
}

std::optional<std::uint64_t> ParseBytes(std::string_view text, std::uint64_t whole) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "%") return static_cast<std::uint64_t>(number / 100 * static_cast<double>(whole));
  if (unit.ends_with("iB")) unit.remove_suffix(2);
  else if (unit.ends_with('B')) unit.remove_suffix(1);
  if (unit.empty()) return static_cast<std::uint64_t>(number);
  constexpr std::string_view kUnits = "KMGT";
  const auto power = kUnits.find(static_cast<char>(unit[0] & ~0x20));
  if (unit.size() != 1 || power == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint64_t>(number * static_cast<double>(std::uint64_t{1} << (10 * (power + 1))));
}

}  // namespace gridloom::session
