#include "sim/device/device_spec.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "sim/device/yaml_map.h"
#include "tests/growth.h"

namespace gridloom::sim {
namespace {

std::string ErrorOf(std::string_view text) {
  DeviceSpec spec;
  const auto applied = ApplyDeviceText(text, "x.yaml", spec);
  return applied.ok() ? "" : applied.error().message;
}

TEST_CASE("ReadYamlMap_ManyKeys_CostInProportion") {
  const double growth = testing::Growth(5'000, [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += "key" + std::to_string(i) + ": 1\n";
    const auto entries = ReadYamlMap(text, "x.yaml");
    REQUIRE(entries.ok());
    CHECK(entries->size() == count);
  });
  CHECK(growth < testing::kLinear);
}

TEST_CASE("ReadYamlLists_KeysGivenTwice_AreNamed") {
  for (const char* text :
       {"a: 1\nb: 2\na: 3\n", "a: [1, 2]\na: 3\n", "a: []\na: []\n", "m: {x: 1, x: 2}\n", "m: {a: 1}\nm: {a: 1}\n"})
    CHECK(!ReadYamlLists(text, "x.yaml").ok());
}

TEST_CASE("ApplyDeviceText_SetsWhatIsGivenAndNothingElse") {
  DeviceSpec spec;
  spec.sm.clock_mhz = 7;
  const auto applied = ApplyDeviceText(
      "inherits: h200\nname: Mine\ncompute_capability: 12.1\nsm:\n  count: 3\nmemory: {size_bytes: 2 GiB, ecc: true}\n",
      "x.yaml", spec);
  REQUIRE(applied.ok());
  CHECK(applied->inherits == "h200");
  CHECK(applied->keys.size() == 5);
  CHECK(spec.name == "Mine");
  CHECK(spec.compute_capability == ComputeCapability{12, 1});
  CHECK(spec.sm.count == 3);
  CHECK(spec.sm.clock_mhz == 7);
  CHECK(spec.memory.size_bytes == 2ull << 30);
  CHECK(spec.memory.ecc);
}

TEST_CASE("ApplyDeviceText_Mistakes_AreNamedWithFileAndLine") {
  CHECK(ErrorOf("sm:\n  cout: 3\n") == "x.yaml:2: unknown key 'sm.cout'; did you mean 'sm.count'?");
  CHECK(ErrorOf("banana: 3\n") == "x.yaml:1: unknown key 'banana'; docs/devices.md lists the keys");
  CHECK(ErrorOf("sm: {count: -1}\n") ==
        "x.yaml:1: sm.count is '-1'; expected a number below 2^32, optionally with KiB, MiB or GiB");
  CHECK(ErrorOf("sm: {count: 4294967296}\n").find("below 2^32") != std::string::npos);
  CHECK(ErrorOf("memory: {size_bytes: 99999999999 GiB}\n").find("expected a number") != std::string::npos);
  CHECK(ErrorOf("memory: {size_bytes: 4 GB}\n").find("KiB, MiB or GiB") != std::string::npos);
  CHECK(ErrorOf("memory: {ecc: yes}\n") == "x.yaml:1: memory.ecc is 'yes'; expected true or false");
  CHECK(ErrorOf("compute_capability: 9\n").find("such as 9.0") != std::string::npos);
  CHECK(ErrorOf("name: a\nname: b\n") == "x.yaml:2: key 'name' is given twice");
  CHECK(ErrorOf("sm: [1, 2]\n") == "x.yaml:1: a list is not expected here");
  CHECK(ErrorOf("sm: {count: *x}\n") == "x.yaml:1: anchors and aliases are not supported");
  CHECK(ErrorOf("just text\n") == "x.yaml:1: expected 'key: value' lines");
  CHECK_FALSE(ErrorOf("name: [\n").empty());
  CHECK_FALSE(ErrorOf("? {a: b}\n: c\n").empty());
}

TEST_CASE("ApplyDeviceText_TimingKeys_SetTheirMembers") {
  DeviceSpec spec;
  REQUIRE(ApplyDeviceText(
              "timing:\n  sm: {warp_order: two_level, sub_cores: true}\n  op:\n    int_mul: {pipe: sfu, latency: 15}\n"
              "  units: {fp64: 3}\n  l1: {size_bytes: 16 KiB, stores_of_global: write_evict}\n",
              "x.yaml", spec)
              .ok());
  CHECK(spec.timing.sm.warp_order == WarpOrder::kTwoLevel);
  CHECK(spec.timing.sm.sub_cores);
  CHECK(spec.timing.of(trace::OpClass::kIntMul).pipe == Pipe::kSfu);
  CHECK(spec.timing.of(trace::OpClass::kIntMul).latency == 15);
  CHECK(spec.timing.units_of(Pipe::kFp64) == 3);
  CHECK(spec.timing.l1.size_bytes == 16384);
  CHECK(spec.timing.l1.stores_of_global == StorePolicy::kWriteEvict);
  CHECK(ErrorOf("timing: {sm: {warp_order: gtoo}}\n") ==
        "x.yaml:1: timing.sm.warp_order is 'gtoo'; expected lrr, gto or two_level");
  CHECK(ErrorOf("timing: {dram: {tCDD: 1}}\n") ==
        "x.yaml:1: unknown key 'timing.dram.tCDD'; did you mean 'timing.dram.tCCD'?");
}

TEST_CASE("ApplyDeviceText_CutAnywhere_NeverCrashes") {
  const std::string text = "inherits: h200\nname: \"a b\"\nsm:\n  count: 3\nmemory: {size_bytes: 2 GiB}\n";
  for (std::size_t length = 0; length < text.size(); ++length) (void)ErrorOf(text.substr(0, length));
}

TEST_CASE("Documentation_NamesEveryKeyWithItsMeaning") {
  std::ifstream file("docs/devices.md");
  const std::string docs((std::istreambuf_iterator<char>(file)), {});
  for (const DeviceField& field : DeviceFields()) {
    INFO(field.key);
    CHECK(docs.find("| `" + std::string(field.key) + "` | " + std::string(field.meaning) + " |") != std::string::npos);
  }
}

}  // namespace
}  // namespace gridloom::sim
