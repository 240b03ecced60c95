#include "sim/hardware/catalog.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include "rewriter/support/suggest.h"
#include "scheduler/policy/builtin.h"
#include "sim/hardware/crcs/crcs.h"
#include "sim/hardware/dtbl/dtbl.h"
#include "sim/hardware/gemtc/gemtc.h"
#include "sim/hardware/hazards/hazards.h"
#include "sim/hardware/lazy_ctas.h"
#include "sim/hardware/pagoda/pagoda.h"
#include "sim/hardware/tagged_l2/tagged_l2.h"

namespace gridloom::hardware {
namespace {

/// A new part is a pair of files and a row.
constexpr const PartKind* kKinds[] = {&kCrcs, &kDtbl, &kGemtc, &kHazards, &kLazyCtas, &kPagoda, &kTaggedL2};

/// What policies need of a device.
struct PolicyPart {
  policy::Need need;
  const PartKind* kind;
  std::string_view key{}, value{};
};
constexpr PolicyPart kPolicyParts[] = {
    {policy::Need::kRanges, &kCrcs},
    {policy::Need::kReadiness, &kCrcs, "readiness", "on"},
    {policy::Need::kTasks, &kPagoda},
    {policy::Need::kBatches, &kGemtc},
};

std::string Near(std::string_view name, std::span<const std::string_view> names) {
  const std::string_view nearest = NearestName(name, names);
  return nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?";
}

std::vector<std::string_view> KindNames() {
  std::vector<std::string_view> names;
  for (const PartKind* const kind : kKinds) names.push_back(kind->name);
  return names;
}

std::string Where(const sim::PartValue& value) { return value.where.empty() ? "" : value.where + ": "; }

std::string Expected(const PartKey& key) { return (key.choices.empty() ? "a number from " : "") + RangeText(key); }

std::optional<std::uint64_t> Parse(const PartKey& key, std::string_view text) {
  if (!key.choices.empty()) {
    const auto choice = std::ranges::find(key.choices, text);
    if (choice == key.choices.end()) return std::nullopt;
    return static_cast<std::uint64_t>(choice - key.choices.begin());
  }
  const auto value = sim::ParseNumber(text);
  if (!value || *value < key.least || *value > key.most) return std::nullopt;
  return value;
}

/// The values of a part's keys: what the device says, else what the kind does.
Result<std::vector<std::uint64_t>> ValuesOf(const PartKind& kind, const sim::DeviceSpec& device) {
  std::vector<std::uint64_t> values;
  std::vector<std::string_view> names;
  for (const PartKey& key : kind.keys) {
    values.push_back(key.value);
    names.push_back(key.name);
  }
  for (const sim::PartValue& given : device.part_values) {
    if (given.part != kind.name) continue;
    const auto key = std::ranges::find(kind.keys, given.key, &PartKey::name);
    if (key == kind.keys.end()) {
      return Error{Where(given) + "the part " + std::string(kind.name) + " has no key '" + given.key + "'" +
                   Near(given.key, names)};
    }
    const auto value = Parse(*key, given.value);
    if (!value)
      return Error{Where(given) + KeyName(kind, *key) + " is '" + given.value + "'; expected " + Expected(*key)};
    values[static_cast<std::size_t>(key - kind.keys.begin())] = *value;
  }
  return values;
}

/// Values of a part that does not exist are mistakes; those of one that the device does not have wait for it.
Status CheckNames(const sim::DeviceSpec& device) {
  for (const sim::PartValue& given : device.part_values) {
    if (Find(given.part) != nullptr) continue;
    return Error{Where(given) + "there is no proposed part '" + given.part + "'" + Near(given.part, KindNames())};
  }
  return {};
}

std::uint64_t ReadGate(const timing::SmCounters& counters, std::size_t gate) { return counters.stall_gate[gate]; }
std::uint64_t ReadStall(const timing::Counters& counters, std::size_t gate) { return counters.sm.stall_gate[gate]; }
std::uint64_t ReadPart(const timing::Counters& counters, std::size_t index) { return counters.parts[index]; }

}  // namespace

std::span<const PartKind* const> Kinds() { return kKinds; }

std::string KeyName(const PartKind& kind, const PartKey& key) {
  return "hardware." + std::string(kind.name) + "." + std::string(key.name);
}

std::string ValueText(const PartKey& key, std::uint64_t value) {
  return key.choices.empty() ? std::to_string(value) : std::string(key.choices[value]);
}

std::string RangeText(const PartKey& key) {
  if (key.choices.empty()) return std::to_string(key.least) + " to " + std::to_string(key.most);
  std::string text;
  for (std::size_t i = 0; i < key.choices.size(); ++i) {
    if (i > 0) text += i + 1 == key.choices.size() ? " or " : ", ";
    text += key.choices[i];
  }
  return text;
}

const PartKind* Find(std::string_view name) {
  const auto kind = std::ranges::find(kKinds, name, &PartKind::name);
  return kind == std::end(kKinds) ? nullptr : *kind;
}

Result<const PartKind*> FindOrSuggest(std::string_view name) {
  if (const PartKind* const kind = Find(name)) return kind;
  return Error{"there is no proposed part '" + std::string(name) + "'" + Near(name, KindNames()) +
               "\n  `gridloom hardware` lists them"};
}

Result<std::vector<const PartKind*>> KindsOf(const sim::DeviceSpec& device) {
  GL_TRY_STATUS(CheckNames(device));
  std::vector<const PartKind*> kinds;
  for (const std::string& name : device.proposed) {
    GL_TRY(kind, FindOrSuggest(name));
    if (std::ranges::find(kinds, kind) != kinds.end()) return Error{"the proposed part '" + name + "' is there twice"};
    kinds.push_back(kind);
  }
  return kinds;
}

Result<timing::Parts> Build(const sim::DeviceSpec& device) {
  GL_TRY(kinds, KindsOf(device));
  timing::Parts parts;
  if (kinds.empty()) return parts;
  GL_TRY(parameters, timing::Derive(device));
  for (const PartKind* const kind : kinds) {
    GL_TRY(values, ValuesOf(*kind, device));
    auto part = kind->make(parameters, values);
    if (!part.ok()) return Error{"the proposed part " + std::string(kind->name) + ": " + part.error().message};
    parts.push_back(*std::move(part));
  }
  return parts;
}

Result<std::vector<KeyText>> KeysOf(const sim::DeviceSpec& device) {
  GL_TRY(kinds, KindsOf(device));
  std::vector<KeyText> texts;
  for (const PartKind* const kind : kinds) {
    GL_TRY(values, ValuesOf(*kind, device));
    for (std::size_t i = 0; i < values.size(); ++i) {
      texts.push_back({KeyName(*kind, kind->keys[i]), ValueText(kind->keys[i], values[i])});
    }
  }
  return texts;
}

std::vector<timing::CounterInfo> CountersOf(const sim::DeviceSpec& device) {
  const auto common = timing::CounterTable();
  std::vector<timing::CounterInfo> counters(common.begin(), common.end());
  const auto kinds = KindsOf(device);
  if (!kinds.ok()) return counters;
  std::size_t gate = 0, index = 0;
  for (const PartKind* const kind : *kinds) {
    for (const PartStall& stall : kind->stalls)
      counters.push_back({stall.name, "cycles", stall.meaning, ReadStall, gate++});
    for (const timing::PartCounter& counter : kind->counters) {
      counters.push_back({counter.name, counter.unit, counter.meaning, ReadPart, index++});
    }
  }
  return counters;
}

std::vector<timing::SchedulerState> StatesOf(const sim::DeviceSpec& device) {
  const auto common = timing::SchedulerStates();
  std::vector<timing::SchedulerState> states(common.begin(), common.end());
  const auto kinds = KindsOf(device);
  if (!kinds.ok()) return states;
  std::size_t gate = 0;
  for (const PartKind* const kind : *kinds) {
    for (const PartStall& stall : kind->stalls) states.push_back({stall.name, stall.label, ReadGate, gate++});
  }
  return states;
}

std::string PartsText(const sim::DeviceSpec& device) {
  std::string text;
  for (const std::string& name : device.proposed) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string ValuesText(const sim::DeviceSpec& device) {
  std::string text;
  const auto keys = KeysOf(device);
  if (!keys.ok()) return text;
  for (const KeyText& key : *keys) text += (text.empty() ? "" : ",") + key.key + "=" + key.value;
  return text;
}

std::vector<KeyText> FieldsOf(const sim::DeviceSpec& device) {
  std::vector<KeyText> fields;
  if (device.proposed.empty()) return fields;
  fields.push_back({"proposed", PartsText(device)});
  if (auto keys = KeysOf(device); keys.ok()) fields.insert(fields.end(), keys->begin(), keys->end());
  return fields;
}

Status Equip(std::string_view parts, std::string_view values, sim::DeviceSpec& device) {
  if (!parts.empty()) sim::Propose(parts, device);
  std::istringstream list{std::string(values)};
  for (std::string item; std::getline(list, item, ',');) {
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == item.npos || equals + 1 == item.size()) {
      return Error{"--set " + item + ": expected a key of the device file and a value, such as timing.l1.mshrs=16"};
    }
    GL_TRY_STATUS(sim::SetDeviceKey(item.substr(0, equals), item.substr(equals + 1), "--set " + item, device));
  }
  if (!values.empty()) GL_TRY_STATUS(sim::ValidateDevice(device));
  return Check(device);
}

Status Check(const sim::DeviceSpec& device) {
  GL_TRY(parts, Build(device));
  static_cast<void>(parts);
  for (const sim::PartValue& value : device.part_values) {
    if (std::ranges::find(device.proposed, value.part) == device.proposed.end() && value.where.starts_with("--set")) {
      return Error{value.where + ": the device has no part " + value.part + "; --hardware " + value.part +
                   " gives it one"};
    }
  }
  return {};
}

std::string_view MeaningOf(std::string_view key) {
  if (key == "proposed") return "parts of hardware that no such GPU has";
  for (const PartKind* const kind : kKinds) {
    for (const PartKey& known : kind->keys) {
      if (key == KeyName(*kind, known)) return known.meaning;
    }
  }
  return "";
}

bool Has(const sim::DeviceSpec& device, std::string_view part) {
  return std::ranges::find(device.proposed, part) != device.proposed.end();
}

sim::DeviceSpec WithPartsFor(sim::DeviceSpec device, std::string_view policy) {
  const auto known = policy::FindPolicy(policy);
  if (!known.ok()) return device;
  for (const PolicyPart& part : kPolicyParts) {
    if (!(*known)->needs.Has(part.need)) continue;
    if (!Has(device, part.kind->name)) device.proposed.emplace_back(part.kind->name);
    if (part.key.empty()) continue;
    device.part_values.push_back({.part = std::string(part.kind->name),
                                  .key = std::string(part.key),
                                  .value = std::string(part.value),
                                  .where = "policy " + std::string(policy)});
  }
  return device;
}

}  // namespace gridloom::hardware
