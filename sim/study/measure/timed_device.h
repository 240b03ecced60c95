// The device that time is simulated on, as options and the policy ask for it, and how programs run there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/trace/trace_file.h"

namespace gridloom::study {

/// Empty texts ask for nothing.
struct TimedDeviceOptions {
  std::string policy;
  std::string parts, values;  ///< as hardware::Equip
  std::string launches{};     ///< how kernels launch others: the name of a form (LaunchForms)
  std::string ranges;         ///< forms: where `strided` is the only one, a device that goes by ranges goes by these
};
/// How kernels launch kernels on the simulated device. A new form is a row.
struct LaunchForm {
  std::string_view name, parts, values, meaning;  ///< parts and values as hardware::Equip, besides those that are given
};
std::span<const LaunchForm> LaunchForms();
/// Gives the device what the options ask for, and the parts that the policy needs. Fails on what hardware::Check fails
/// on.
Status EquipForTiming(const TimedDeviceOptions& options, sim::DeviceSpec& device);

/// The ranges that the device goes by, if it follows who uses which memory (the part crcs), so that parts of programs
/// overlap; nothing for other devices.
std::optional<trace::LaunchInfo::Ranges> RangesOf(const sim::DeviceSpec& device);

/// Whether it goes by the order in which programs have filled what they copy (hardware.crcs.order=recorded).
bool GoesByRecordedOrder(const sim::DeviceSpec& device);

}  // namespace gridloom::study
