// The list of proposed parts, and what a device file may say of them.
#include "sim/hardware/catalog.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "sim/hardware/reference.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::hardware {
namespace {

/// A V100 with the lines of a device file.
sim::DeviceSpec With(const std::string& lines) {
  sim::DeviceSpec device = timing::TestDevice("v100");
  const auto applied = sim::ApplyDeviceText(lines, "file.yaml", device);
  INFO((applied.ok() ? "" : applied.error().message));
  REQUIRE(applied.ok());
  return device;
}

std::string ProblemOf(const std::string& lines) {
  const auto parts = Build(With(lines));
  return parts.ok() ? "" : parts.error().message;
}

TEST_CASE("Catalog_Kinds_AreSortedAndCompletelyDescribed") {
  CHECK(std::ranges::is_sorted(Kinds(), {}, [](const PartKind* kind) { return kind->name; }));
  std::set<std::string_view> counters;
  for (const timing::CounterInfo& counter : timing::CounterTable()) counters.insert(counter.name);
  for (const PartKind* const kind : Kinds()) {
    INFO(kind->name);
    CHECK(Find(kind->name) == kind);
    CHECK(kind->name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos);
    CHECK((!kind->summary.empty() && !kind->source.empty()));
    for (const PartKey& key : kind->keys) {
      INFO(key.name);
      CHECK((!key.meaning.empty() && key.name.find('.') == std::string_view::npos));
      if (key.choices.empty()) CHECK((key.least <= key.value && key.value <= key.most));
      else CHECK(key.value < key.choices.size());
    }
    for (const timing::PartCounter& counter : kind->counters) {
      INFO(counter.name);
      CHECK(counters.insert(counter.name).second);  // no two of a device have one name
      CHECK((!counter.unit.empty() && !counter.meaning.empty()));
    }
    for (const PartStall& stall : kind->stalls) {
      INFO(stall.name);
      CHECK((counters.insert(stall.name).second && stall.name.starts_with("stall_")));
      CHECK((!stall.label.empty() && !stall.meaning.empty()));
    }
    const auto parts = Build(With("proposed: " + std::string(kind->name)));
    REQUIRE(parts.ok());
    CHECK(parts->front()->counters() == kind->counters.size());
  }
}

TEST_CASE("DeviceFile_ProposesParts_ByListOrText_WithKeysOfTheirOwn") {
  CHECK(With("{}").proposed.empty());
  CHECK(With("proposed: [lazy-ctas, other]").proposed == std::vector<std::string>{"lazy-ctas", "other"});
  CHECK(With("proposed: lazy-ctas, other third").proposed == std::vector<std::string>{"lazy-ctas", "other", "third"});
  sim::DeviceSpec device = With("proposed: [lazy-ctas]\nhardware: {lazy-ctas: {watch: 3, lazy: off}}");
  REQUIRE(sim::ApplyDeviceText("hardware.lazy-ctas.watch: 5", "--set", device).ok());
  REQUIRE(device.part_values.size() == 2);
  const auto keys = KeysOf(device);
  REQUIRE(keys.ok());
  std::string text;
  for (const KeyText& key : *keys) text += key.key + "=" + key.value + " ";
  CHECK(
      text ==
      "hardware.lazy-ctas.lazy=off hardware.lazy-ctas.watch=5 hardware.lazy-ctas.least=1 hardware.lazy-ctas.block=2 ");
  // A later file replaces the list.
  REQUIRE(sim::ApplyDeviceText("proposed: ''", "child.yaml", device).ok());
  CHECK(device.proposed.empty());
  CHECK(Build(device)->empty());
}

TEST_CASE("DeviceFile_MistakesAboutParts_AreNamedWithTheirPlace") {
  CHECK(ProblemOf("proposed: lazy-cta") ==
        "there is no proposed part 'lazy-cta'; did you mean 'lazy-ctas'?\n  `gridloom hardware` lists them");
  CHECK(ProblemOf("proposed: [lazy-ctas, lazy-ctas]") == "the proposed part 'lazy-ctas' is there twice");
  CHECK(ProblemOf("proposed: lazy-ctas\nhardware: {lazy-ctas: {wach: 3}}") ==
        "file.yaml:2: the part lazy-ctas has no key 'wach'; did you mean 'watch'?");
  CHECK(ProblemOf("proposed: lazy-ctas\nhardware: {lazy-ctas: {watch: 0}}") ==
        "file.yaml:2: hardware.lazy-ctas.watch is '0'; expected a number from 1 to 1024");
  CHECK(ProblemOf("proposed: lazy-ctas\nhardware: {lazy-ctas: {lazy: maybe}}") ==
        "file.yaml:2: hardware.lazy-ctas.lazy is 'maybe'; expected off or on");
  CHECK(ProblemOf("hardware: {lazy-cats: {watch: 1}}") ==
        "file.yaml:1: there is no proposed part 'lazy-cats'; did you mean 'lazy-ctas'?");
  CHECK(ProblemOf("proposed: lazy-ctas\nhardware: {lazy-ctas: {lazy: off, block: 1}}") ==
        "the proposed part lazy-ctas: with lazy off and blocks of 1 it does nothing");
  sim::DeviceSpec device;
  CHECK(sim::ApplyDeviceText("hardware: {watch: 1}", "f", device).error().message ==
        "f:1: 'hardware.watch' is no key of a proposed part; expected hardware.PART.KEY");
  CHECK(sim::ApplyDeviceText("sm: {count: [1]}", "f", device).error().message == "f:1: a list is not expected here");
}

TEST_CASE("CountersOf_ADeviceWithParts_AreThoseOfTheModelAndTheParts") {
  const std::size_t common = timing::CounterTable().size();
  CHECK(CountersOf(With("{}")).size() == common);
  const auto counters = CountersOf(With("proposed: lazy-ctas"));
  REQUIRE(counters.size() == common + 4);
  timing::Counters values;
  values.parts[1] = 17;
  CHECK(counters[common + 1].name == "lazy_limits");
  CHECK(counters[common + 1].value(values) == 17);
}

TEST_CASE("FieldsOf_ADevice_AreItsPartsAndTheirKeys_NoneWithoutParts") {
  CHECK(FieldsOf(With("hardware: {lazy-ctas: {watch: 3}}")).empty());
  const auto fields = FieldsOf(With("proposed: lazy-ctas\nhardware: {lazy-ctas: {watch: 3}}"));
  REQUIRE(fields.size() == 5);
  CHECK((fields[0].key == "proposed" && fields[0].value == "lazy-ctas"));
  CHECK((fields[2].key == "hardware.lazy-ctas.watch" && fields[2].value == "3"));
  for (const KeyText& field : fields) CHECK(!MeaningOf(field.key).empty());
}

TEST_CASE("Equip_GivesPartsInPlaceOfTheDevicesOwn_AndValues") {
  sim::DeviceSpec device = timing::TestDevice("v100");
  REQUIRE(Equip("", "", device).ok());
  CHECK(sim::DeviceLabel(device) == "v100");
  REQUIRE(Equip("lazy-ctas", "hardware.lazy-ctas.watch=4,timing.l1.mshrs=16", device).ok());
  CHECK(sim::DeviceLabel(device) == "v100 + lazy-ctas");
  CHECK(PartsText(device) == "lazy-ctas");
  CHECK(KeysOf(device)->at(1).value == "4");
  CHECK(device.timing.l1.mshrs == 16);
  device.part_values.clear();
  REQUIRE(Equip("none", "", device).ok());
  CHECK(device.proposed.empty());
  const auto error = [](std::string_view parts, std::string_view values) {
    sim::DeviceSpec spec = timing::TestDevice("v100");
    const Status status = Equip(parts, values, spec);
    return status.ok() ? "" : status.error().message;
  };
  CHECK(error("lazy-cta", "").find("did you mean 'lazy-ctas'?") != std::string::npos);
  CHECK(error("", "timing.l1.mshrs") ==
        "--set timing.l1.mshrs: expected a key of the device file and a value, such as timing.l1.mshrs=16");
  CHECK(error("", "timing.l1.mshr=4") ==
        "--set timing.l1.mshr=4: unknown key 'timing.l1.mshr'; did you mean 'timing.l1.mshrs'?");
  CHECK(error("", "timing.l1.mshrs=5000") == "timing.l1.mshrs must be at most 4096");
  CHECK(error("lazy-ctas", "hardware.lazy-ctas.blok=1").find("did you mean 'block'?") != std::string::npos);
  CHECK(error("", "hardware.lazy-ctas.block=1").find("the device has no part lazy-ctas") != std::string::npos);
}

TEST_CASE("Docs_HardwareReference_IsWhatThePartsSay") {
  std::ifstream file("docs/hardware-reference.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  INFO("regenerate it: gridloom hardware --markdown > docs/hardware-reference.md");
  CHECK(page == ReferencePage());
}

}  // namespace
}  // namespace gridloom::hardware
