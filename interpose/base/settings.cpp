#include "interpose/base/settings.h"

#include <cstdlib>

#include "interpose/api/cuda_types.h"
#include "interpose/base/log.h"
#include "rewriter/support/quantity.h"

namespace gridloom::session {

Settings Settings::FromEnvironment() {
  Settings settings;
#define GL_SETTING(field, variable, meaning) \
  if (const char* text = std::getenv(variable)) settings.field = text;
#include "interpose/settings/settings.def"
  return settings;
}

const Settings& TheSettings() {
  static const Settings* const settings = new Settings(Settings::FromEnvironment());
  return *settings;
}

const settings::FeatureSet& AskedFeatures() {
  static const settings::FeatureSet features = settings::AskedFor([](std::string_view asked) -> std::string {
#define GL_SETTING(field, variable, meaning) \
  if (asked == variable) return TheSettings().field.value_or("");
#include "interpose/settings/settings.def"
    return {};
  });
  return features;
}

std::span<const SettingRow> SettingTable() {
  static constexpr SettingRow kRows[] = {
#define GL_SETTING(field, variable, meaning) {variable, meaning},
#include "interpose/settings/settings.def"
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

bool IsOn(const std::optional<std::string>& text) { return text && settings::IsOn(*text); }

}  // namespace gridloom::session
