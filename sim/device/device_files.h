// Finds and reads device files: configs/devices beside a build, share/gridloom/devices in an installed tree.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"

namespace gridloom::sim {

/// The device taken when the user names none.
inline constexpr std::string_view kDefaultDevice = "h200";

/// Folder of the device files, found relative to the executable or library this code is part of. Works from the build
/// tree and from an installed tree wherever it was moved; no environment variable is read.
Result<std::filesystem::path> DeviceDirectory();

/// Ids of all devices in a folder, sorted; files that start with '_' are bases to inherit from, not devices.
std::vector<std::string> DeviceIds(const std::filesystem::path& directory);

/// The device `name` of `directory`, or the file `name` when it has a slash or ends in ".yaml". What it inherits from
/// is looked for beside it, then in `directory`. An unknown id is an error that lists the nearest ones.
Result<DeviceSpec> LoadDevice(std::string_view name, const std::filesystem::path& directory);
Result<DeviceSpec> LoadDevice(std::string_view name);

/// Id of the generic device of a compute capability: "sm_90".
std::string GenericDeviceId(ComputeCapability capability);

}  // namespace gridloom::sim
