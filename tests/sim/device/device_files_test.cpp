#include "sim/device/device_files.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "rewriter/image/select.h"

namespace gridloom::sim {
namespace {

const std::filesystem::path kDevices = "configs/devices";

/// A folder of device files that vanishes with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_("/tmp/gridloom_devices_" + std::to_string(getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

std::string ErrorOf(std::string_view name) {
  const auto device = LoadDevice(name, kDevices);
  return device.ok() ? "" : device.error().message;
}

TEST_CASE("LoadDevice_EveryShippedDevice_IsCompleteAndValid") {
  const auto ids = DeviceIds(kDevices);
  CHECK(ids.size() >= 15);
  for (const std::string& id : ids) {
    const auto device = LoadDevice(id, kDevices);
    INFO(id << ": " << (device.ok() ? "" : device.error().message));
    REQUIRE(device.ok());
    CHECK(device->id == id);
  }
}

TEST_CASE("LoadDevice_H200_HasTheFactsProgramsAskFor") {
  const auto device = LoadDevice(kDefaultDevice, kDevices);
  REQUIRE(device.ok());
  CHECK(device->name == "NVIDIA H200");
  CHECK(device->compute_capability == ComputeCapability{9, 0});
  CHECK(device->sm.count == 132);
  CHECK(device->sm.max_threads == 2048);
  CHECK(device->max_warps_per_sm() == 64);
  CHECK(device->block.shared_bytes == 49152);
  CHECK(device->block.shared_optin_bytes == 227 * 1024);
  CHECK(device->block.shared_reserved_bytes == 1024);
  CHECK(device->sm.shared_bytes == 228 * 1024);
  CHECK(device->cluster.max_blocks == 8);
  CHECK(device->texture.max_3d_alternate_depth == 32768);
}

TEST_CASE("LoadDevice_EveryKnownComputeCapability_HasAGenericDevice") {
  for (const ComputeCapability capability : image::KnownCapabilities()) {
    const auto device = LoadDevice(GenericDeviceId(capability), kDevices);
    INFO(capability.text());
    REQUIRE(device.ok());
    CHECK(device->compute_capability == capability);
  }
}

TEST_CASE("LoadDevice_CRCS_HasTheTableOfThePaper") {
  const auto device = LoadDevice("crcs", kDevices);
  REQUIRE(device.ok());
  const TimingSpec& timing = device->timing;
  CHECK(device->sm.count == 64);
  CHECK(device->sm.max_blocks == 8);
  CHECK(device->l2.size_bytes == 1536 * 1024);
  CHECK(timing.clock.sm_mhz == 700);
  CHECK(timing.clock.l2_mhz == 924);
  CHECK(timing.clock.dram_mhz == 1600);
  CHECK(timing.dram.tRP == 12);
  CHECK(timing.dram.tCCD == 2);
  CHECK(timing.dram.tRAS == 28);
  CHECK(timing.pcie.to_host_mb_s == 15750);
}

TEST_CASE("ValidateDevice_MoreThanTheModelCanName_IsRefused") {
  const auto device = LoadDevice("v100", kDevices);
  REQUIRE(device.ok());
  const auto error_with = [&](const char* text) {
    DeviceSpec changed = *device;
    REQUIRE(ApplyDeviceText(text, "x.yaml", changed).ok());
    const auto status = ValidateDevice(changed);
    return status.ok() ? std::string() : status.error().message;
  };
  CHECK(error_with("sm: {count: 1024}").empty());
  CHECK(error_with("sm: {count: 4096}\ntiming: {l1: {mshrs: 128, stores: 127}}").empty());
  CHECK(error_with("sm: {count: 4096}\ntiming: {l1: {mshrs: 128, stores: 128}}") ==
        "sm.count * (timing.l1.mshrs + stores) must be below 1048576");
  CHECK(error_with("sm: {count: 4000000000}") == "sm.count must be at most 4096");
  CHECK(error_with("sm: {count: 65617}") == "sm.count must be at most 4096");  // 81 in 16 bits
  CHECK(error_with("sm: {max_blocks: 4000000000}") == "sm.max_blocks must be at most 1024");
  CHECK(error_with("timing: {l2: {slices: 1048576}}") == "timing.l2.slices must be at most 4096");
  CHECK(error_with("timing: {launch: {queues: 4000000000}}") == "timing.launch.queues must be at most 4096");
  CHECK(error_with("timing: {tlb: {entries: 4000000000}}") == "timing.tlb.entries must be at most 65536");
  CHECK(error_with("timing: {l1: {size_bytes: 4294836224}}").find("at most 16 MiB") != std::string::npos);
}

TEST_CASE("DeviceDirectory_IsFoundFromTheBuildTree") {
  const auto directory = DeviceDirectory();
  REQUIRE(directory.ok());
  CHECK(LoadDevice("h200").ok());
}

TEST_CASE("LoadDevice_OwnFile_InheritsFromAShippedOneOrFromOneBesideIt") {
  const TemporaryDirectory directory;
  const std::string small = directory.Write("small.yaml", "inherits: h200\nname: Small\nsm: {count: 13}\n");
  const std::string smaller = directory.Write("smaller.yaml", "inherits: small\nsm: {count: 1}\n");
  const auto device = LoadDevice(smaller, kDevices);
  REQUIRE(device.ok());
  CHECK(device->id == "smaller");
  CHECK(device->name == "Small");
  CHECK(device->sm.count == 1);
  CHECK(device->sm.max_threads == 2048);
}

TEST_CASE("LoadDevice_Mistakes_AreOneClearSentence") {
  const TemporaryDirectory directory;
  CHECK(ErrorOf("h100") == "unknown device 'h100' (looked in configs/devices); did you mean 'a100'?");
  CHECK(ErrorOf("nothing.yaml") == "cannot read nothing.yaml: No such file or directory");
  const std::string loop = directory.Write("loop.yaml", "inherits: loop\n");
  CHECK(ErrorOf(loop) == loop + ": devices inherit from each other in a circle");
  const std::string bare = directory.Write("bare.yaml", "name: x\n");
  CHECK(ErrorOf(bare) == bare + ": key 'description' is missing (one line for `gridloom devices`)");
  const std::string wrong = directory.Write("wrong.yaml", "inherits: h200\nblock: {shared_optin_bytes: 500 KiB}\n");
  CHECK(ErrorOf(wrong) ==
        wrong + ": block.shared_optin_bytes plus block.shared_reserved_bytes must not exceed sm.shared_bytes");
  const std::string thin = directory.Write("thin.yaml", "inherits: h200\ntiming: {dram: {bytes_per_cycle: 16}}\n");
  CHECK(ErrorOf(thin).find("timing.dram.tCCD must leave time") != std::string::npos);
  const std::string slow = directory.Write("slow.yaml", "inherits: h200\ntiming: {clock: {dram_mhz: 1000}}\n");
  CHECK(ErrorOf(slow).find("must be within 2 %") != std::string::npos);
  const std::string sets = directory.Write("sets.yaml", "inherits: h200\ntiming: {l1: {ways: 3}}\n");
  CHECK(ErrorOf(sets) == sets + ": timing.l1.size_bytes must be a multiple of 128 * timing.l1.ways");
  const std::string zero = directory.Write("zero.yaml", "inherits: h200\nsm: {count: 0}\n");
  CHECK(ErrorOf(zero) == zero + ": sm.count must be greater than 0");
}

}  // namespace
}  // namespace gridloom::sim
