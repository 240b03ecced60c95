#include "sim/study/replay/plan.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "rewriter/support/suggest.h"
#include "rewriter/support/whole_file.h"
#include "scheduler/policy/builtin.h"
#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/measure/timed_device.h"
#include "sim/study/replay/cell.h"
#include "sim/trace/range_forms.h"

namespace gridloom::study {
namespace {

constexpr const char* kProposed = "proposed";
constexpr std::size_t kMostReplays = 100'000;
/// What programs are alone under, unless the baseline names a policy: it keeps nothing back that there is room for.
constexpr const char* kAlonePolicy = "leftover";

Error TooMany() { return Error{"more than " + std::to_string(kMostReplays) + " replays in one run"}; }

/// Names of the same kind in an error's sentence.
std::string Choices(const std::string& what, const std::string& name, const std::vector<std::string>& all) {
  const std::vector<std::string_view> views(all.begin(), all.end());
  std::string text = "no " + what + " '" + name + "'; there are ";
  for (std::size_t i = 0; i < all.size(); ++i) text += (i == 0 ? "" : ", ") + all[i];
  const std::string_view nearest = NearestName(name, views);
  return text + (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?");
}

class Hash {
 public:
  Hash() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void Add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_.get(), data, bytes); }
  /// Texts are kept apart.
  void Add(std::string_view text) {
    const std::uint64_t size = text.size();
    Add(&size, sizeof size);
    Add(text.data(), text.size());
  }
  std::string Text() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(XXH3_64bits_digest(state_.get())));
    return text;
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

Status Change(const std::string& key, const std::string& value, DeviceVariant& device) {
  GL_TRY_STATUS(sim::SetDeviceKey(key, value, "--set " + key + "=" + value, device.spec));
  if (key == kProposed) {
    device.label = sim::DeviceLabel(device.spec);
  } else {
    device.label += " " + key + "=" + value;
  }
  device.changes.emplace_back(key, value);
  return {};
}

/// The part of a key `hardware.PART.KEY`; empty for other keys.
std::string PartOf(const std::string& key) {
  constexpr std::string_view kPrefix = "hardware.";
  if (!key.starts_with(kPrefix)) return "";
  const std::string rest = key.substr(kPrefix.size());
  return rest.substr(0, rest.find('.'));
}

bool HasPart(const DeviceVariant& device, const std::string& part) {
  return std::ranges::find(device.spec.proposed, part) != device.spec.proposed.end();
}

/// Whether devices have the part at least under one of the policies.
bool IsBrought(const std::string& part, const std::vector<std::string>& policies) {
  return std::ranges::any_of(
      policies, [&](const std::string& policy) { return hardware::Has(hardware::WithPartsFor({}, policy), part); });
}

/// The device with each value of the parameter; alone when the parameter is one of a part that it does not have and no
/// policy brings.
Status Vary(const ParameterValues& parameter, const std::vector<std::string>& policies,
            std::vector<DeviceVariant>& variants) {
  std::vector<DeviceVariant> next;
  const std::string part = PartOf(parameter.key);
  for (const DeviceVariant& variant : variants) {
    const bool applies = part.empty() || HasPart(variant, part) || IsBrought(part, policies);
    if (!applies) next.push_back(variant);
    for (const std::string& value : parameter.values) {
      if (!applies) break;
      next.push_back(variant);
      GL_TRY_STATUS(Change(parameter.key, value, next.back()));
    }
    if (next.size() > kMostReplays) return TooMany();
  }
  variants = std::move(next);
  return {};
}

/// The device with each choice of parts, in every combination of the parameters' values.
Result<std::vector<DeviceVariant>> Variants(const std::string& name, const ReplayOptions& options) {
  GL_TRY(spec, sim::LoadDevice(name));
  std::vector<DeviceVariant> variants;
  for (const std::string& parts : options.hardware) {
    variants.push_back({"", spec, {}});
    sim::Propose(parts, variants.back().spec);
  }
  if (variants.empty()) variants.push_back({"", spec, {}});
  for (DeviceVariant& variant : variants) variant.label = sim::DeviceLabel(variant.spec);
  // Which parts there are decides which other parameters matter.
  std::vector<ParameterValues> parameters = options.parameters;
  std::ranges::stable_partition(parameters,
                                [](const ParameterValues& parameter) { return parameter.key == kProposed; });
  for (const ParameterValues& parameter : parameters) GL_TRY_STATUS(Vary(parameter, options.policies, variants));
  for (const DeviceVariant& variant : variants) {
    Status valid = sim::ValidateDevice(variant.spec);
    sim::DeviceSpec equipped = variant.spec;
    for (const std::string& policy : options.policies) equipped = hardware::WithPartsFor(std::move(equipped), policy);
    if (valid.ok()) valid = hardware::Check(equipped);
    if (!valid.ok()) return Error{variant.label + ": " + valid.error().message};
  }
  return variants;
}

/// Values for a part that no device has are a mistake: of a name, or the part was forgotten.
Status CheckParts(const ReplayOptions& options, const std::vector<DeviceVariant>& devices) {
  for (const ParameterValues& parameter : options.parameters) {
    const std::string part = PartOf(parameter.key);
    if (part.empty() || IsBrought(part, options.policies)) continue;
    if (std::ranges::any_of(devices, [&](const DeviceVariant& device) { return HasPart(device, part); })) continue;
    DeviceVariant scratch;
    GL_TRY_STATUS(Change(parameter.key, parameter.values[0], scratch));
    GL_TRY_STATUS(hardware::Check(scratch.spec));
  }
  return {};
}

/// Everything that a result depends on.
std::string KeyOf(const std::string& basis, const std::vector<FileIdentity>& traces, const sim::DeviceSpec& device,
                  const std::string& policy) {
  Hash hash;
  hash.Add(basis);
  for (const FileIdentity& trace : traces) hash.Add(trace.hash);
  for (const sim::DeviceField& field : sim::DeviceFields()) {
    hash.Add(field.key);
    hash.Add(sim::FieldText(field, device));
  }
  for (const hardware::KeyText& field : hardware::FieldsOf(device)) {
    hash.Add(field.key);
    hash.Add(field.value);
  }
  hash.Add(policy);
  return hash.Text();
}

/// Letters, digits and a few signs stay; the key keeps names apart.
std::string FileName(const std::string& workload, const std::string& device, const std::string& policy,
                     const std::string& key) {
  constexpr std::size_t kLongest = 120;
  std::string name = workload + "." + device + "." + policy;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::strchr("._+=-", c) != nullptr;
    if (!plain || c == '\0') c = '_';
  }
  if (name.starts_with('.')) name[0] = '_';
  return name.substr(0, kLongest) + "-" + key;
}

/// What a policy knows besides the kernels: its parameters in configs/policies, and profiles that it is given.
Result<std::string> PolicyInputs(const std::string& policy, const ReplayOptions& options) {
  GL_TRY(devices, sim::DeviceDirectory());
  const std::string parameters = (devices.parent_path() / "policies" / (policy + ".yaml")).string();
  std::string inputs;
  std::error_code error;
  for (const std::string& file :
       {std::filesystem::exists(parameters, error) ? parameters : std::string(), options.profiles}) {
    if (file.empty()) continue;
    GL_TRY(identity, Identify(file));
    inputs += identity.hash + " ";
  }
  return inputs;
}

Status SetBaseline(const std::string& text, ReplayPlan& plan) {
  if (text.empty()) {
    plan.base_device = plan.devices[0].label;
    plan.base_policy = plan.policies[0];
    return {};
  }
  std::vector<std::string> labels;
  for (const DeviceVariant& device : plan.devices) labels.push_back(device.label);
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    if (std::ranges::find(labels, name) != labels.end()) {
      plan.base_device = name;
    } else if (std::ranges::find(plan.policies, name) != plan.policies.end()) {
      plan.base_policy = name;
    } else {
      labels.insert(labels.end(), plan.policies.begin(), plan.policies.end());
      return Error{"--baseline: " + Choices("device or policy of this run", name, labels)};
    }
  }
  return {};
}

Status PlanDevices(const ReplayOptions& options, ReplayPlan& plan) {
  std::set<std::string> labels;
  for (const std::string& name : options.devices) {
    GL_TRY(variants, Variants(name, options));
    for (DeviceVariant& variant : variants) {
      if (!labels.insert(variant.label).second) return Error{"device " + variant.label + " is given twice"};
      plan.devices.push_back(std::move(variant));
    }
    if (plan.devices.size() > kMostReplays) return TooMany();
  }
  return CheckParts(options, plan.devices);
}

Status PlanPolicies(const ReplayOptions& options, ReplayPlan& plan) {
  for (const std::string& policy : options.policies) {
    GL_TRY(known, policy::FindPolicy(policy));
    static_cast<void>(known);
    if (std::ranges::find(plan.policies, policy) != plan.policies.end())
      return Error{"policy " + policy + " is given twice"};
    plan.policies.push_back(policy);
  }
  return {};
}

/// Each file is read once, however many workloads it belongs to.
Status PlanWorkloads(const ReplayOptions& options, ReplayPlan& plan) {
  std::map<std::string, FileIdentity> known;
  plan.workloads = options.workloads;
  for (const Workload& workload : plan.workloads) {
    plan.traces.emplace_back();
    for (const std::string& path : workload.traces) {
      if (!known.contains(path)) {
        GL_TRY(identity, Identify(path));
        known.emplace(path, identity);
      }
      plan.traces.back().push_back(known.at(path));
    }
  }
  return {};
}

/// The name of a trace's file without its ending.
std::string StemOf(const std::string& path) { return std::filesystem::path(path).stem().string(); }

/// Finishes cells and adds them to a plan.
class CellMaker {
 public:
  static Result<CellMaker> Create(const ReplayOptions& options) {
    GL_TRY(build, Identify("/proc/self/exe"));  // results of another build may differ
    return CellMaker(options, build.hash);
  }
  Status Add(Cell cell, ReplayPlan& plan) {
    auto basis = bases_.find(cell.policy);
    if (basis == bases_.end()) {
      GL_TRY(inputs, PolicyInputs(cell.policy, options_));
      basis = bases_.emplace(cell.policy, build_ + kCellFormat + inputs + (options_.kernels_only ? "kernels only" : ""))
                  .first;
    }
    cell.key = KeyOf(basis->second, plan.TracesOf(cell), plan.SpecOf(cell), cell.policy);
    cell.file = FileName(plan.WorkloadOf(cell), plan.devices[cell.device].label, cell.policy, cell.key);
    plan.cells.push_back(std::move(cell));
    return {};
  }

 private:
  CellMaker(const ReplayOptions& options, std::string build) : options_(options), build_(std::move(build)) {}
  const ReplayOptions& options_;
  const std::string build_;
  std::map<std::string, std::string> bases_;  ///< by policy
};

/// Cells of each program of the mixes alone; those that the plan has already are taken from it.
Status PlanAlone(CellMaker& maker, ReplayPlan& plan) {
  std::map<std::string, std::size_t> known;  // by key
  for (std::size_t i = 0; i < plan.cells.size(); ++i) known.emplace(plan.cells[i].key, i);
  for (std::size_t w = 0; w < plan.workloads.size(); ++w) {
    const std::size_t programs = plan.workloads[w].traces.size();
    for (std::size_t d = 0; programs > 1 && d < plan.devices.size(); ++d) {
      for (std::size_t p = 0; p < programs; ++p) {
        GL_TRY_STATUS(maker.Add(
            {.workload = w, .device = d, .policy = plan.alone_policy, .program = p, .key = {}, .file = {}}, plan));
        const auto [place, is_new] = known.emplace(plan.cells.back().key, plan.cells.size() - 1);
        if (!is_new) plan.cells.pop_back();
        plan.alone[{w, d}].push_back(place->second);
        if (plan.cells.size() > kMostReplays) return TooMany();
      }
    }
  }
  return {};
}

/// Adds the rows of `more` whose names are not there yet.
template <typename Row>
void AddNew(const std::vector<Row>& more, std::string_view Row::*name, std::vector<Row>& rows) {
  for (const Row& row : more) {
    if (std::ranges::find(rows, row.*name, name) == rows.end()) rows.push_back(row);
  }
}

}  // namespace

std::string ReplayPlan::NameOf(const Cell& cell) const {
  return WorkloadOf(cell) + (cell.program ? " alone on " : " on ") + devices[cell.device].label + " under " +
         cell.policy;
}

std::string ReplayPlan::WorkloadOf(const Cell& cell) const {
  const Workload& workload = workloads[cell.workload];
  return cell.program ? StemOf(workload.traces[*cell.program]) : workload.name;
}

std::vector<FileIdentity> ReplayPlan::TracesOf(const Cell& cell) const {
  const std::vector<FileIdentity>& all = traces[cell.workload];
  return cell.program ? std::vector{all[*cell.program]} : all;
}

std::vector<std::string> ReplayPlan::ProgramsOf(const Cell& cell) const {
  std::vector<std::string> files;
  for (const FileIdentity& trace : TracesOf(cell)) files.push_back(trace.path);
  std::vector<std::string> names;
  for (const Workload& one : WorkloadsOf(files, false)) names.push_back(one.name);
  return names;
}

Result<FileIdentity> Identify(const std::string& path) {
  FileIdentity identity{path, 0, {}};
  Hash hash;
  GL_TRY_STATUS(ReadFileInParts(path, [&](std::string_view part) {
    hash.Add(part.data(), part.size());
    identity.bytes += part.size();
  }));
  identity.hash = hash.Text();
  return identity;
}

sim::DeviceSpec ReplayPlan::SpecOf(const Cell& cell) const {
  sim::DeviceSpec spec = hardware::WithPartsFor(devices[cell.device].spec, cell.policy);
  // Values for a part that other policies bring.
  std::erase_if(spec.part_values, [&](const auto& value) { return !hardware::Has(spec, value.part); });
  return spec;
}

Status CheckNames(const ReplayOptions& options) {
  ReplayPlan plan;
  GL_TRY_STATUS(PlanPolicies(options, plan));
  return PlanDevices(options, plan);
}

Result<std::string> RangesFor(const ReplayOptions& options) {
  ReplayPlan plan;
  GL_TRY_STATUS(PlanPolicies(options, plan));
  GL_TRY_STATUS(PlanDevices(options, plan));
  std::set<std::string_view> forms;
  for (std::size_t device = 0; device < plan.devices.size(); ++device) {
    for (const std::string& policy : plan.policies) {
      const auto form =
          RangesOf(plan.SpecOf({.workload = 0, .device = device, .policy = policy, .key = {}, .file = {}}));
      if (form) forms.insert(trace::NameOf(*form));
    }
  }
  std::string text;
  for (const std::string_view form : forms) text += (text.empty() ? "" : ",") + std::string(form);
  return text;
}

std::vector<timing::CounterInfo> CountersOf(const ReplayPlan& plan) {
  std::vector<timing::CounterInfo> counters;
  for (const Cell& cell : plan.cells)
    AddNew(hardware::CountersOf(plan.SpecOf(cell)), &timing::CounterInfo::name, counters);
  return counters;
}

std::vector<timing::SchedulerState> StatesOf(const ReplayPlan& plan) {
  std::vector<timing::SchedulerState> states;
  for (const Cell& cell : plan.cells)
    AddNew(hardware::StatesOf(plan.SpecOf(cell)), &timing::SchedulerState::counter, states);
  return states;
}

Result<ReplayPlan> PlanReplays(const ReplayOptions& options) {
  ReplayPlan plan;
  GL_TRY_STATUS(PlanPolicies(options, plan));
  GL_TRY_STATUS(PlanDevices(options, plan));
  if (options.workloads.size() > kMostReplays / plan.devices.size() / plan.policies.size()) return TooMany();
  GL_TRY_STATUS(PlanWorkloads(options, plan));
  GL_TRY_STATUS(SetBaseline(options.baseline, plan));
  plan.alone_policy = options.baseline.empty() || plan.base_policy.empty() ? kAlonePolicy : plan.base_policy;
  GL_TRY(maker, CellMaker::Create(options));
  for (std::size_t w = 0; w < plan.workloads.size(); ++w) {
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
      for (const std::string& policy : plan.policies)
        GL_TRY_STATUS(maker.Add({.workload = w, .device = d, .policy = policy, .key = {}, .file = {}}, plan));
    }
  }
  plan.asked = plan.cells.size();
  if (options.alone) GL_TRY_STATUS(PlanAlone(maker, plan));
  return plan;
}

}  // namespace gridloom::study
