#include "sim/study/measure/timed_device.h"

#include <algorithm>

#include "sim/hardware/catalog.h"

namespace gridloom::study {
namespace {

constexpr LaunchForm kForms[] = {
    {"cdp", "", "", "as kernels, with the times of the device file"},
    {"cdp-ideal", "", "timing.device_launch.percent=0", "as kernels, in no time"},
    {"dtbl", "dtbl", "", "as thread blocks that join kernels which run"},
    {"dtbl-ideal", "dtbl", "timing.device_launch.percent=0,hardware.dtbl.search_cycles=0", "likewise, in no time"},
};

Result<const LaunchForm*> FindForm(const std::string& name) {
  const auto* const form = std::ranges::find(kForms, name, &LaunchForm::name);
  if (form != std::end(kForms)) return form;
  std::string names;
  for (const LaunchForm& one : kForms) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return Error{"kernels launch kernels in none of the ways '" + name + "'; there are " + names};
}

constexpr const char* kPart = "crcs";
constexpr const char* kRangesKey = "ranges";

bool SaysWhichRanges(const sim::DeviceSpec& device) {
  return std::ranges::any_of(
      device.part_values, [](const sim::PartValue& value) { return value.part == kPart && value.key == kRangesKey; });
}

/// Whether a key of the device's parts has that value. Of a device without the part it has none.
bool Is(const sim::DeviceSpec& device, std::string_view key, std::string_view value) {
  const auto keys = hardware::KeysOf(device);
  if (!keys.ok()) return false;
  const auto found = std::ranges::find(*keys, key, &hardware::KeyText::key);
  return found != keys->end() && found->value == value;
}

}  // namespace

std::span<const LaunchForm> LaunchForms() { return kForms; }

Status EquipForTiming(const TimedDeviceOptions& options, sim::DeviceSpec& device) {
  if (!options.parts.empty()) sim::Propose(options.parts, device);
  if (!options.launches.empty()) {
    GL_TRY(form, FindForm(options.launches));
    if (!form->parts.empty() && !hardware::Has(device, form->parts)) device.proposed.emplace_back(form->parts);
    GL_TRY_STATUS(hardware::Equip("", form->values, device));
  }
  device = hardware::WithPartsFor(std::move(device), options.policy);
  GL_TRY_STATUS(hardware::Equip("", options.values, device));
  if (options.ranges == "strided" && hardware::Has(device, kPart) && !SaysWhichRanges(device))
    device.part_values.push_back(
        {.part = kPart, .key = kRangesKey, .value = options.ranges, .where = "--ranges " + options.ranges});
  // What the policy needs is not to be set otherwise.
  device = hardware::WithPartsFor(std::move(device), options.policy);
  return {};
}

std::optional<trace::LaunchInfo::Ranges> RangesOf(const sim::DeviceSpec& device) {
  if (!hardware::Has(device, kPart)) return std::nullopt;
  return Is(device, "hardware.crcs.ranges", "strided") ? trace::LaunchInfo::Ranges::kStrided
                                                       : trace::LaunchInfo::Ranges::kInterval;
}

bool GoesByRecordedOrder(const sim::DeviceSpec& device) { return Is(device, "hardware.crcs.order", "recorded"); }

}  // namespace gridloom::study
