#include "interpose/session/settings.h"

#include <strings.h>

#include <charconv>
#include <cstdlib>

#include "interpose/api/cuda_types.h"
#include "interpose/session/log.h"
#include "rewriter/support/quantity.h"

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

int DriverVersion() {
  static const int version = [] {
    const std::optional<std::string>& text = TheSettings().driver_version;
    if (!text) return cuda::kDriverVersion;
    if (const auto asked = ParseCudaVersion(*text)) return *asked;
    GL_LOG(kError, "GRIDLOOM_DRIVER_VERSION=%s is not a version such as 13.4; %d is taken", text->c_str(),
           cuda::kDriverVersion);
    return cuda::kDriverVersion;
  }();
  return version;
}

bool IsOn(const std::optional<std::string>& text) {
  if (!text) return false;
  for (const char* yes : {"1", "on", "true", "yes"}) {
    if (strcasecmp(text->c_str(), yes) == 0) return true;
  }
  return false;
}

}  // namespace gridloom::session
