#include "scheduler/model/profile_file.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <variant>

#include "rewriter/support/json.h"
#include "rewriter/support/suggest.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::model {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint32_t kVersion = 1;

using Slot = std::variant<double*, std::uint32_t*, std::uint64_t*, std::string*, std::vector<double>*>;

/// One key and where its value is kept.
template <typename T>
struct Field {
  std::string_view key;
  Slot (*slot)(T&);
};

constexpr Field<SmModel> kSmFields[] = {
    {"sms", [](SmModel& m) -> Slot { return &m.sms; }},
    {"schedulers", [](SmModel& m) -> Slot { return &m.schedulers; }},
    {"peak_ipc", [](SmModel& m) -> Slot { return &m.peak_ipc; }},
    {"max_ctas", [](SmModel& m) -> Slot { return &m.empty.free_ctas; }},
    {"max_warps", [](SmModel& m) -> Slot { return &m.empty.free_warps; }},
    {"registers", [](SmModel& m) -> Slot { return &m.empty.free_registers; }},
    {"shared_bytes", [](SmModel& m) -> Slot { return &m.empty.free_shared_bytes; }},
    {"request_bytes", [](SmModel& m) -> Slot { return &m.request_bytes; }},
    {"latency_cycles", [](SmModel& m) -> Slot { return &m.latency_cycles; }},
    {"requests_per_cycle", [](SmModel& m) -> Slot { return &m.requests_per_cycle; }},
    {"contention_slope", [](SmModel& m) -> Slot { return &m.contention_slope; }},
    {"contention_offset", [](SmModel& m) -> Slot { return &m.contention_offset; }},
    {"request_interval", [](SmModel& m) -> Slot { return &m.request_interval; }},
    {"lines_in_flight", [](SmModel& m) -> Slot { return &m.lines_in_flight; }},
};

using Profile = KernelProfile;

constexpr Field<Profile> kProfileFields[] = {
    {"kernel", [](Profile& p) -> Slot { return &p.kernel; }},
    {"warps", [](Profile& p) -> Slot { return &p.needs.warps; }},
    {"registers", [](Profile& p) -> Slot { return &p.needs.registers; }},
    {"shared_bytes", [](Profile& p) -> Slot { return &p.needs.shared_bytes; }},
    {"max_resident_ctas", [](Profile& p) -> Slot { return &p.max_resident_ctas; }},
    {"instructions_per_cta", [](Profile& p) -> Slot { return &p.instructions_per_cta; }},
    {"memory_ratio", [](Profile& p) -> Slot { return &p.memory_ratio; }},
    {"uncoalesced_share", [](Profile& p) -> Slot { return &p.uncoalesced_share; }},
    {"coalesced_requests", [](Profile& p) -> Slot { return &p.coalesced_requests; }},
    {"uncoalesced_requests", [](Profile& p) -> Slot { return &p.uncoalesced_requests; }},
    {"pur", [](Profile& p) -> Slot { return &p.pur; }},
    {"mur", [](Profile& p) -> Slot { return &p.mur; }},
    {"ipc", [](Profile& p) -> Slot { return &p.ipc; }},
    {"smallest_slice", [](Profile& p) -> Slot { return &p.smallest_slice; }},
    {"demands", [](Profile& p) -> Slot { return &p.demands; }},
    {"dependency_cycles", [](Profile& p) -> Slot { return &p.refinement.dependency_cycles; }},
    {"instructions_per_issue", [](Profile& p) -> Slot { return &p.refinement.instructions_per_issue; }},
    {"loads_per_stall", [](Profile& p) -> Slot { return &p.refinement.loads_per_stall; }},
    {"latency_cycles", [](Profile& p) -> Slot { return &p.refinement.latency_cycles; }},
    {"coalesced_lines", [](Profile& p) -> Slot { return &p.refinement.coalesced_lines; }},
    {"uncoalesced_lines", [](Profile& p) -> Slot { return &p.refinement.uncoalesced_lines; }},
    {"core_ratio", [](Profile& p) -> Slot { return &p.refinement.core_ratio; }},
};

template <typename T>
Json Write(T record, std::span<const Field<T>> fields) {
  Json json = Json::object();
  for (const Field<T>& field : fields)
    std::visit([&](auto* value) { json[std::string(field.key)] = *value; }, field.slot(record));
  return json;
}

Status Read(const Json& value, Slot slot, const std::string& place) {
  if (auto* const* text = std::get_if<std::string*>(&slot)) {
    if (!value.is_string()) return Error{place + " must be a text"};
    **text = value.get<std::string>();
    return {};
  }
  if (auto* const* list = std::get_if<std::vector<double>*>(&slot)) {
    if (!value.is_array() || !std::ranges::all_of(value, [](const Json& each) { return each.is_number(); }))
      return Error{place + " must be a list of numbers"};
    **list = value.get<std::vector<double>>();
    return {};
  }
  if (auto* const* number = std::get_if<double*>(&slot)) {
    if (!value.is_number()) return Error{place + " must be a number"};
    **number = value.get<double>();
    return {};
  }
  const bool wide = std::holds_alternative<std::uint64_t*>(slot);
  const std::uint64_t most =
      wide ? std::numeric_limits<std::uint64_t>::max() : std::numeric_limits<std::uint32_t>::max();
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    return Error{place + " must be a whole number of at most " + std::to_string(most)};
  if (wide) *std::get<std::uint64_t*>(slot) = value.get<std::uint64_t>();
  else *std::get<std::uint32_t*>(slot) = value.get<std::uint32_t>();
  return {};
}

std::string UnknownKey(const std::string& place, const std::string& key, std::span<const std::string_view> known) {
  const std::string_view nearest = NearestName(key, known);
  return place + " has no '" + key + "'" + (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?");
}

template <typename T>
Status Read(const Json& json, T& record, std::span<const Field<T>> fields, const std::string& place) {
  if (!json.is_object()) return Error{place + " must be an object"};
  for (const auto& [key, value] : json.items()) {
    const auto field = std::ranges::find(fields, key, &Field<T>::key);
    if (field == fields.end()) {
      std::vector<std::string_view> known;
      for (const Field<T>& each : fields) known.push_back(each.key);
      return Error{UnknownKey(place, key, known)};
    }
    GL_TRY_STATUS(Read(value, field->slot(record), place + ", '" + key + "'"));
  }
  return Validate(record);
}

Status ReadKernels(const Json& json, std::vector<KernelProfile>& kernels) {
  if (!json.is_array()) return Error{"'kernels' must be a list"};
  std::set<std::pair<std::string, std::uint32_t>> names;  // and warps of a block
  for (const Json& each : json) {
    KernelProfile profile;
    GL_TRY_STATUS(Read(each, profile, std::span<const Field<Profile>>(kProfileFields),
                       "kernel " + std::to_string(kernels.size() + 1)));
    if (profile.kernel.empty()) return Error{"kernel " + std::to_string(kernels.size() + 1) + " has no name"};
    if (!names.emplace(profile.kernel, profile.needs.warps).second)
      return Error{"two profiles of kernel " + profile.kernel + " with blocks of one size"};
    kernels.push_back(std::move(profile));
  }
  return {};
}

}  // namespace

std::string ToJson(const ProfileFile& file) {
  Json json{{"version", kVersion},
            {"sm", Write(file.sm, std::span<const Field<SmModel>>(kSmFields))},
            {"kernels", Json::array()}};
  for (const KernelProfile& profile : file.kernels)
    json["kernels"].push_back(Write(profile, std::span<const Field<Profile>>(kProfileFields)));
  return JsonText(json, 2) + "\n";
}

Result<ProfileFile> ParseProfiles(std::string_view text) {
  const Json json = ParseJson<Json>(text);
  if (json.is_discarded()) return Error{"not JSON"};
  if (!json.is_object()) return Error{"not an object with 'version', 'sm' and 'kernels'"};
  constexpr std::string_view kKeys[] = {"version", "sm", "kernels"};
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(kKeys, key) == std::end(kKeys)) return Error{UnknownKey("the file", key, kKeys)};
  }
  for (const std::string_view key : kKeys) {
    if (!json.contains(key)) return Error{"'" + std::string(key) + "' is missing"};
  }
  if (json["version"] != kVersion)
    return Error{"version " + JsonText(json["version"]) + " is not known; this reads version 1"};
  ProfileFile file;
  GL_TRY_STATUS(Read(json["sm"], file.sm, std::span<const Field<SmModel>>(kSmFields), "'sm'"));
  GL_TRY_STATUS(ReadKernels(json["kernels"], file.kernels));
  return file;
}

Result<ProfileFile> LoadProfiles(const std::string& path) {
  GL_TRY(text, ReadWholeFile(path));
  auto file = ParseProfiles(text);
  if (!file.ok()) return Error{path + ": " + file.error().message};
  return file;
}

}  // namespace gridloom::model
