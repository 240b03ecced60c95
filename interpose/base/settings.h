// Environment variables of the shim, read once. The list is interpose/settings/settings.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "interpose/settings/features.h"

namespace gridloom::session {

/// Raw texts; unset variables are empty optionals.
struct Settings {
#define GL_SETTING(field, variable, meaning) std::optional<std::string> field;
#include "interpose/settings/settings.def"
  static Settings FromEnvironment();
};

/// The process's settings: read on the first call, never destroyed.
const Settings& TheSettings();

/// What they ask for (interpose/settings/features.def). Of what the environment does not tell, nothing is in it.
const settings::FeatureSet& AskedFeatures();

/// What cuDriverGetVersion says, 1000 * major + 10 * minor: that of the table of functions, unless
/// GRIDLOOM_DRIVER_VERSION says another one. Programs compare it with their toolkit's: some refuse an older driver, or
/// give it machine code in place of PTX.
int DriverVersion();

struct SettingRow {
  const char* variable;
  const char* meaning;
};
std::span<const SettingRow> SettingTable();

/// "1", "on", "true", "yes" (any case).
bool IsOn(const std::optional<std::string>& text);

}  // namespace gridloom::session
