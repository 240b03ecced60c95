#include "sim/study/replay/cell.h"

#include <chrono>
#include <filesystem>
#include <map>

#include "rewriter/support/demangle.h"
#include "rewriter/support/whole_file.h"
#include "sim/hardware/catalog.h"
#include "sim/study/replay/cell_check.h"
#include "sim/timing/derived.h"
#include "sim/timing/kernel_table.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

/// Launches and copies that are told one by one; the first ones.
constexpr std::size_t kMostWorks = 4000;

/// Kernels and kinds of copies by the order in which they are first met: rows of tables refer to them by number.
class Names {
 public:
  std::size_t Of(const timing::WorkResult& work) {
    const bool kernel = work.kind == timing::WorkKind::kKernel;
    const auto [it, inserted] = numbers_.try_emplace({work.kind, work.name}, numbers_.size());
    if (inserted) list_.push_back(kernel ? DemangledName(work.name) : std::string(timing::Name(work.kind)));
    return it->second;
  }
  const Json& list() const { return list_; }

 private:
  std::map<std::pair<timing::WorkKind, std::string>, std::size_t> numbers_;
  Json list_ = Json::array();
};

Json CountersJson(const timing::Counters& counters, const sim::DeviceSpec& device) {
  Json json;
  for (const timing::CounterInfo& counter : hardware::CountersOf(device))
    json[std::string(counter.name)] = counter.value(counters);
  return json;
}

Json KernelJson(const KernelTimes& kernel, const sim::DeviceSpec& device) {
  const timing::Activity activity{device, kernel.cycles, kernel.counters};
  Json json{
      {"kernel", DemangledName(kernel.name)},
      {"symbol", kernel.name},
      {"launches", kernel.launches},
      {"kernel_ctas", kernel.ctas},
      {"kernel_cycles", kernel.cycles},
      {"kernel_warp_instructions", kernel.warp_instructions},
      {"kernel_thread_instructions", kernel.thread_instructions},
      {"kernel_ipc",
       kernel.cycles == 0 ? 0.0 : static_cast<double>(kernel.warp_instructions) / static_cast<double>(kernel.cycles)},
      {"bound_by", timing::BoundBy(activity, hardware::StatesOf(device))}};
  for (const timing::DerivedInfo& info : timing::DerivedTable()) json[std::string(info.name)] = info.value(activity);
  json["counters"] = CountersJson(kernel.counters, device);
  return json;
}

Json WorksJson(const std::vector<timing::WorkResult>& works, Names& names) {
  Json rows = Json::array();
  std::size_t left_out = 0;
  for (const timing::WorkResult& work : works) {
    if (work.kind == timing::WorkKind::kMarker || !work.done()) continue;
    if (rows.size() == kMostWorks) ++left_out;
    else rows.push_back({names.Of(work), work.stream, work.submitted, work.started, work.ended});
  }
  return {{"columns", {"kernel", "stream", "submitted", "started", "ended"}},
          {"left_out", left_out},
          {"rows", std::move(rows)}};
}

/// Counters per interval, one array for each; those that stay 0 are left out.
Json SamplesJson(const timing::Sampler& sampler, const sim::DeviceSpec& device) {
  Json at = Json::array();
  for (const timing::Sample& sample : sampler.samples()) at.push_back(sample.at);
  Json counters = Json::object();
  for (const timing::CounterInfo& info : hardware::CountersOf(device)) {
    if (info.value(sampler.samples().back().sums) == 0) continue;
    Json values = Json::array();
    std::uint64_t before = 0;
    for (const timing::Sample& sample : sampler.samples()) {
      const std::uint64_t now = info.value(sample.sums);
      values.push_back(now - before);
      before = now;
    }
    counters[std::string(info.name)] = std::move(values);
  }
  return {{"interval", sampler.interval()}, {"end", std::move(at)}, {"counters", std::move(counters)}};
}

Json ResidenciesJson(const ReplayResult& result, Names& names) {
  Json rows = Json::array();
  for (const timing::Residency& r : result.sampler->residencies()) {
    rows.push_back(
        {r.sm, names.Of(result.works[r.first_launch]), r.begin, r.end, r.busy, r.first_launch, r.last_launch});
  }
  return {{"columns", {"sm", "kernel", "begin", "end", "busy", "first_launch", "last_launch"}},
          {"resolution", result.sampler->resolution()},
          {"left_out", result.sampler->residencies_left_out()},
          {"rows", std::move(rows)}};
}

Json CtasJson(const ReplayResult& result, Names& names) {
  Json rows = Json::array();
  for (const timing::CtaInterval& cta : result.sampler->ctas()) {
    const timing::CtaPlace& place = cta.place;
    rows.push_back(
        {place.sm, place.slot, names.Of(result.works[place.launch]), place.launch, place.cta, cta.begin, cta.end});
  }
  return {{"columns", {"sm", "slot", "kernel", "launch", "cta", "begin", "end"}},
          {"left_out", result.sampler->ctas_left_out()},
          {"rows", std::move(rows)}};
}

Json TracesJson(const std::vector<FileIdentity>& traces) {
  Json json = Json::array();
  for (const FileIdentity& trace : traces)
    json.push_back({{"file", trace.path}, {"bytes", trace.bytes}, {"xxh3", trace.hash}});
  return json;
}

Json ProgramsJson(const std::vector<std::string>& names, const std::vector<std::uint64_t>& cycles,
                  const sim::DeviceSpec& device) {
  Json json = Json::array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double seconds = static_cast<double>(cycles[i]) / (device.timing.clock.sm_mhz * 1e6);
    json.push_back({{"program", names[i]}, {"program_cycles", cycles[i]}, {"program_seconds", seconds}});
  }
  return json;
}

Json DeviceJson(const sim::DeviceSpec& device) {
  Json fields;
  for (const sim::DeviceField& field : sim::DeviceFields())
    fields[std::string(field.key)] = sim::FieldText(field, device);
  for (const hardware::KeyText& field : hardware::FieldsOf(device)) fields[field.key] = field.value;
  return fields;
}

}  // namespace

Json CellJson(const ReplayPlan& plan, const Cell& cell, const ReplayResult& result) {
  const sim::DeviceSpec device = plan.SpecOf(cell);
  const timing::Activity activity{device, result.cycles, result.counters};
  Json json{{"format", kCellFormat},
            {"key", cell.key},
            {"workload", plan.WorkloadOf(cell)},
            {"device", plan.devices[cell.device].label},
            {"policy", cell.policy},
            {"cycles", result.cycles},
            {"bound_by", timing::BoundBy(activity, hardware::StatesOf(device))},
            {"host_seconds", result.host_seconds}};
  for (const timing::DerivedInfo& info : timing::DerivedTable()) json[std::string(info.name)] = info.value(activity);
  json["counters"] = CountersJson(result.counters, device);
  json["kernels"] = Json::array();
  for (const KernelTimes& kernel : result.kernels) json["kernels"].push_back(KernelJson(kernel, device));
  json["programs"] = ProgramsJson(plan.ProgramsOf(cell), result.programs, device);
  json["traces"] = TracesJson(plan.TracesOf(cell));
  json["device_fields"] = DeviceJson(device);
  Names names;
  Json timeline{{"sm_mhz", device.timing.clock.sm_mhz}, {"sms", device.sm.count}, {"kernels", Json()}};
  timeline["works"] = WorksJson(result.works, names);
  timeline["samples"] = SamplesJson(*result.sampler, device);
  timeline["residencies"] = ResidenciesJson(result, names);
  timeline["ctas"] = CtasJson(result, names);
  timeline["kernels"] = names.list();
  json["timeline"] = std::move(timeline);
  return json;
}

Json WithoutTimeline(const Json& cell) {
  Json json = cell;
  json.erase("timeline");
  return json;
}

Status CellStore::Prepare() const {
  if (!keeps()) return {};
  std::error_code error;
  fs::create_directories(folder_ + "/cells", error);
  if (error) return Error{"cannot make the folder " + folder_ + "/cells: " + error.message()};
  // What killed runs were writing; younger files may be those of other runs.
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ + "/cells", error)) {
    if (entry.path().extension() != ".json" && entry.last_write_time(error) < old) fs::remove(entry.path(), error);
  }
  return {};
}

Result<std::optional<Json>> CellStore::Load(const Cell& cell, const sim::DeviceSpec& device) const {
  std::error_code error;
  const std::string path = PathOf(cell);
  if (!keeps() || !fs::exists(path, error)) return std::optional<Json>();
  GL_TRY(text, ReadWholeFile(path));
  Json json = ParseJson<Json>(text);
  if (json.is_discarded()) return Error{path + " is damaged: it is no JSON"};
  if (!json.is_object()) return Error{path + " is damaged: it is no result of a replay"};
  const auto is = [&](const char* key, const auto& value) { return json.contains(key) && json[key] == value; };
  if (!is("format", kCellFormat) || !is("key", cell.key)) return std::optional<Json>();
  if (const std::string problem = CellProblem(json, device); !problem.empty())
    return Error{path + " is damaged: " + problem};
  return std::optional<Json>(std::in_place, std::move(json));
}

Status CellStore::Save(const Cell& cell, const Json& result) const {
  return keeps() ? report::WriteFile(PathOf(cell), report::JsonText(result) + "\n") : Status();
}

}  // namespace gridloom::study
