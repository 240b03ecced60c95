#include "scheduler/daemon/state_file.h"

namespace gridloom::broker {

namespace {

constexpr int kVersion = 1;

}  // namespace

Result<nlohmann::json> ParseTenants(std::string_view text, const std::string& path, const std::string& what) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const bool good = json.is_object() && json.contains("version") && json["version"] == kVersion &&
                    json.contains("tenants") && json["tenants"].is_object();
  if (!good) return Error{path + " is no " + what};
  return std::move(json["tenants"]);
}

TenantsText::TenantsText() : text_("{\n \"version\": " + std::to_string(kVersion) + ",\n \"tenants\": {") {}

void TenantsText::Add(const std::string& name, std::string_view json) {
  text_ += any_ ? ",\n  " : "\n  ";
  any_ = true;
  text_ += nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text_ += ": ";
  text_ += json;
}

std::string TenantsText::Finish() {
  text_ += any_ ? "\n }\n}\n" : "}\n}\n";
  return std::move(text_);
}

}  // namespace gridloom::broker
