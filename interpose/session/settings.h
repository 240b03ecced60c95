// Environment variables of the shim, read once. The list is settings.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gridloom::session {

/// Raw texts; unset variables are empty optionals.
struct Settings {
#define GL_SETTING(field, variable, meaning) std::optional<std::string> field;
#include "interpose/session/settings.def"
#undef GL_SETTING
  static Settings FromEnvironment();
};

/// The process's settings: read on the first call, never destroyed.
const Settings& TheSettings();

struct SettingRow {
  const char* variable;
  const char* meaning;
};
std::span<const SettingRow> SettingTable();

/// "1", "on", "true", "yes" (any case).
bool IsOn(const std::optional<std::string>& text);

}  // namespace gridloom::session
