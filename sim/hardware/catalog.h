// The proposed parts there are, and those that a device has.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/hardware/part_kind.h"
#include "sim/timing/counters.h"

namespace gridloom::hardware {

/// All kinds, sorted by name: the one list (catalog.cpp).
std::span<const PartKind* const> Kinds();

/// The kind of that name, or null.
const PartKind* Find(std::string_view name);

/// The kinds that a device has, in the order of its file. Fails on names that do not exist (with the nearest right one) and on parts
/// that are there twice.
Result<std::vector<const PartKind*>> KindsOf(const sim::DeviceSpec& device);

/// Parts for one engine of the device; none where it proposes none. Fails as KindsOf, and on keys and values that cannot be.
Result<timing::Parts> Build(const sim::DeviceSpec& device);

/// The keys of the device's parts, and their values as text: what a report says of the device besides sim::DeviceFields.
struct KeyText {
  std::string key;  ///< "hardware.lazy-ctas.watch"
  std::string value;
};
Result<std::vector<KeyText>> KeysOf(const sim::DeviceSpec& device);

/// Every counter of the device's engines: timing::CounterTable, then stall reasons and counters of its parts. Of a device that KindsOf
/// fails on, the first alone.
std::vector<timing::CounterInfo> CountersOf(const sim::DeviceSpec& device);

}  // namespace gridloom::hardware
