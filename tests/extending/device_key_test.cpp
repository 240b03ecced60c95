// The example of a device key in docs/extending.md.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/device/device_files.h"
#include "sim/device/device_spec.h"

namespace gridloom::sim {
namespace {

std::string ExampleFile(const std::string& path) {
  std::ifstream file(EXAMPLE_FOLDER "/" + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// A folder with all device files, the one that the example changes among them.
std::string DevicesWithTheKey() {
  const std::filesystem::path folder = EXAMPLE_FOLDER "/devices";
  const auto replace = std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive;
  std::filesystem::copy("configs/devices", folder, replace);
  std::filesystem::copy(EXAMPLE_FOLDER "/configs/devices", folder, replace);
  return folder.string();
}

TEST_CASE("Stacks_AreReadFromDeviceFiles_AndShown") {
  DeviceSpec spec;
  REQUIRE(ApplyDeviceText("memory: {stacks: 6}\n", "x.yaml", spec).ok());
  CHECK(spec.memory.stacks == 6);
  bool shown = false;
  for (const DeviceField& field : DeviceFields())
    shown |= field.key == "memory.stacks" && FieldText(field, spec) == "6";
  CHECK(shown);
}

TEST_CASE("Stacks_AreNoneByDefault_AndMustDivideTheChannels") {
  DeviceSpec spec;
  REQUIRE(ApplyDeviceText(ExampleFile("configs/devices/_base.yaml"), "_base.yaml", spec).ok());
  CHECK(spec.memory.stacks == 0);

  auto device = LoadDevice(DevicesWithTheKey() + "/v100.yaml");
  INFO((device.ok() ? std::string() : device.error().message));
  REQUIRE(device.ok());
  CHECK(ValidateDevice(*device).ok());
  device->memory.stacks = device->timing.dram.channels;
  CHECK(ValidateDevice(*device).ok());
  device->memory.stacks += 1;
  const Status broken = ValidateDevice(*device);
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().message == "timing.dram.channels must be a multiple of memory.stacks");
}

TEST_CASE("Stacks_AreDocumented") {
  CHECK(ExampleFile("docs/devices.md")
            .find("| `memory.stacks` | stacks of HBM beside the GPU; 0 = chips on the board |") != std::string::npos);
}

}  // namespace
}  // namespace gridloom::sim
