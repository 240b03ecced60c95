// The proposed parts there are, and those that a device has.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/hardware/part_kind.h"
#include "sim/timing/counters.h"
#include "sim/timing/derived.h"

namespace gridloom::hardware {

/// All kinds, sorted by name: the one list (catalog.cpp).
std::span<const PartKind* const> Kinds();

/// The kind of that name, or null.
const PartKind* Find(std::string_view name);
/// The kind of that name, or an error with the nearest right name.
Result<const PartKind*> FindOrSuggest(std::string_view name);

/// "hardware.lazy-ctas.watch"
std::string KeyName(const PartKind& kind, const PartKey& key);
/// The value's text as device files have it.
std::string ValueText(const PartKey& key, std::uint64_t value);
/// "1 to 32", "off or on"
std::string RangeText(const PartKey& key);

/// The kinds that a device has, in the order of its file. Fails on names that do not exist (with the nearest right one)
/// and on parts that are there twice.
Result<std::vector<const PartKind*>> KindsOf(const sim::DeviceSpec& device);

/// Parts for one engine of the device; none where it proposes none. Fails as KindsOf, and on keys and values that
/// cannot be.
Result<timing::Parts> Build(const sim::DeviceSpec& device);

/// The keys of the device's parts, and their values as text: what a report says of the device besides
/// sim::DeviceFields.
struct KeyText {
  std::string key;  ///< "hardware.lazy-ctas.watch"
  std::string value;
};
Result<std::vector<KeyText>> KeysOf(const sim::DeviceSpec& device);

/// What a device file would say of its parts: `proposed`, and KeysOf as far as it can be. Nothing of a device without
/// parts. Keys of results, hashes and tables of a device have them behind sim::DeviceFields.
std::vector<KeyText> FieldsOf(const sim::DeviceSpec& device);
/// What one of these keys means, in a few words.
std::string_view MeaningOf(std::string_view key);

/// What Build and its callers would fail on, as one sentence; also values that an option (`--set`) gives to a part that
/// the device does not have.
Status Check(const sim::DeviceSpec& device);

/// What options ask of a device: parts in place of its own ("a,b"; "none"), and values of keys ("KEY=VALUE,..."); empty
/// texts ask nothing. Fails on what Check fails on.
Status Equip(std::string_view parts, std::string_view values, sim::DeviceSpec& device);
/// The device's parts, and the values of their keys, as Equip takes them.
std::string PartsText(const sim::DeviceSpec& device);
std::string ValuesText(const sim::DeviceSpec& device);

/// The device with the parts that a policy needs besides its own (policy::Need::kRanges: "crcs"). Of a policy that does
/// not exist, or needs none, the same.
sim::DeviceSpec WithPartsFor(sim::DeviceSpec device, std::string_view policy);
/// Whether the device has the part.
bool Has(const sim::DeviceSpec& device, std::string_view part);

/// Every counter of the device's engines: timing::CounterTable, then stall reasons and counters of its parts. Of a
/// device that KindsOf fails on, the first alone.
std::vector<timing::CounterInfo> CountersOf(const sim::DeviceSpec& device);

/// All that the device's schedulers do, with waiting for the parts' gates.
std::vector<timing::SchedulerState> StatesOf(const sim::DeviceSpec& device);

}  // namespace gridloom::hardware
