#include "rewriter/image/select.h"

#include <catch2/catch.hpp>

namespace gridloom::image {
namespace {

Entry Ptx(std::uint32_t sm, ArchScope scope = ArchScope::kForward) {
  return Entry{.kind = EntryKind::kPtx, .arch = {ComputeCapability::FromSm(sm), scope}};
}
Entry Sass(std::uint32_t sm) { return Entry{.kind = EntryKind::kCubin, .arch = {ComputeCapability::FromSm(sm)}}; }

std::string Selected(const std::vector<Entry>& entries, ComputeCapability device) {
  const Container container{.entries = entries};
  const Entry* entry = SelectPtx(container, device);
  return entry == nullptr ? "none" : entry->arch.text();
}

TEST_CASE("SelectPtx_TakesTheHighestArchitectureTheDeviceRuns") {
  const std::vector<Entry> entries{Ptx(80), Sass(90), Ptx(52), Ptx(100), Ptx(75)};
  CHECK(Selected(entries, {9, 0}) == "sm_80");
  CHECK(Selected(entries, {12, 1}) == "sm_100");
  CHECK(Selected(entries, {7, 5}) == "sm_75");
  CHECK(Selected(entries, {5, 0}) == "none");
}

TEST_CASE("SelectPtx_ArchSpecific_OnlyOnExactlyThatDevice") {
  const std::vector<Entry> entries{Ptx(90), Ptx(90, ArchScope::kExact)};
  CHECK(Selected(entries, {9, 0}) == "sm_90a");
  CHECK(Selected(entries, {10, 0}) == "sm_90");
  CHECK(Selected({Ptx(90, ArchScope::kExact)}, {10, 0}) == "none");
}

TEST_CASE("SelectPtx_FamilySpecific_OnLaterDevicesOfTheSameFamily") {
  const std::vector<Entry> entries{Ptx(100, ArchScope::kFamily), Ptx(90)};
  CHECK(Selected(entries, {10, 0}) == "sm_100f");
  CHECK(Selected(entries, {10, 3}) == "sm_100f");
  CHECK(Selected(entries, {12, 0}) == "sm_90");
  CHECK(Selected({Ptx(103, ArchScope::kFamily)}, {10, 0}) == "none");
}

TEST_CASE("SelectPtx_RdcProgram_GivesOneTextPerPart") {
  const ImageSet set{.format = Format::kWrapper,
                     .containers = {{.entries = {Sass(90)}},
                                    {.relocatable = true, .entries = {Sass(90), Ptx(90)}},
                                    {.relocatable = true, .entries = {Ptx(80), Ptx(90)}}}};
  const auto texts = SelectPtx(set, {9, 0});
  REQUIRE(texts.ok());
  REQUIRE(texts->size() == 2);
  CHECK((*texts)[1]->arch.text() == "sm_90");
}

TEST_CASE("SelectPtx_RdcPartWithoutPtx_IsAnError") {
  const ImageSet set{
      .format = Format::kWrapper,
      .containers = {{.relocatable = true, .entries = {Ptx(80)}}, {.relocatable = true, .entries = {Sass(90)}}}};
  CHECK_FALSE(SelectPtx(set, {9, 0}).ok());
}

// libcudadevrt: machine code for every device, PTX for the newest only.
TEST_CASE("SelectPtx_RdcLibraryWithNewerPtx_StandsInWhereItHasMachineCode") {
  ImageSet set{.format = Format::kWrapper,
               .containers = {{.relocatable = true, .entries = {Ptx(75)}},
                              {.relocatable = true, .entries = {Sass(75), Sass(90), Ptx(120), Ptx(121)}}}};
  const auto texts = SelectPtx(set, {9, 0});
  REQUIRE(texts.ok());
  REQUIRE(texts->size() == 2);
  CHECK((*texts)[1]->arch.text() == "sm_120");
  CHECK(FittingCapability(set, {9, 0}) == ComputeCapability{9, 0});
  CHECK_FALSE(SelectPtx(set, {8, 0}).ok());
  // The program's own parts are never stood in for alone.
  set.containers[0].entries = {Sass(90), Ptx(120)};
  CHECK_FALSE(SelectPtx(set, {9, 0}).ok());
  CHECK(FittingCapability(set, {9, 0}) == ComputeCapability{12, 0});
}

// cuRAND, loaded when the device has been chosen: a GPU would run its machine code. A device that fits is still
// preferred.
TEST_CASE("SelectPartsToLink_LibraryOfNothingButStandIns_IsTaken") {
  const ImageSet library{.format = Format::kArchive,
                         .containers = {{.relocatable = true, .entries = {Sass(80), Sass(90), Ptx(121)}}}};
  CHECK_FALSE(SelectPtx(library, {9, 0}).ok());
  const auto parts = SelectPartsToLink(library, {9, 0});
  REQUIRE(parts.ok());
  CHECK(parts->front()->arch.text() == "sm_121");
  CHECK_FALSE(
      SelectPartsToLink(library, {7, 0}).ok());  // no machine code for it: the library was not built for such a device
}

TEST_CASE("SelectPtx_LibraryWithNewerPtx_StandsInWhereItHasMachineCode") {
  const ImageSet set{.format = Format::kWrapper, .containers = {{.entries = {Sass(75), Sass(90), Ptx(121)}}}};
  const auto texts = SelectPtx(set, {9, 0});
  REQUIRE(texts.ok());
  REQUIRE(texts->size() == 1);
  CHECK(texts->front()->arch.text() == "sm_121");
  CHECK(FittingCapability(set, {9, 0}) == ComputeCapability{12, 1});
  CHECK_FALSE(SelectPtx(set, {7, 0}).ok());
}

TEST_CASE("SelectPtx_MachineCodeOnly_SaysForWhatAndHowToRebuild") {
  const ImageSet set{.containers = {{.entries = {Sass(90), Sass(80), Sass(90)}}}};
  const auto texts = SelectPtx(set, {9, 0});
  REQUIRE_FALSE(texts.ok());
  CHECK(texts.error().message ==
        "the image holds machine code for sm_80, sm_90 but no PTX, and Gridloom runs PTX; rebuild with "
        "-gencode arch=compute_90,code=compute_90");
}

TEST_CASE("SelectPtx_OnlyNewerPtx_NamesADeviceThatRunsIt") {
  const ImageSet set{.containers = {{.entries = {Ptx(120)}}}};
  CHECK(SelectPtx(set, {9, 0}).error().message.find("(--device sm_120)") != std::string::npos);
}

TEST_CASE("FittingCapability_PrefersThenRaisesThenLowers") {
  const auto fitting = [](std::vector<Entry> entries, ComputeCapability preferred) {
    const ImageSet set{.containers = {{.entries = std::move(entries)}}};
    const auto found = FittingCapability(set, preferred);
    return found ? found->text() : "none";
  };
  CHECK(fitting({Ptx(75)}, {9, 0}) == "9.0");
  CHECK(fitting({Ptx(100)}, {9, 0}) == "10.0");
  CHECK(fitting({Ptx(80, ArchScope::kExact)}, {9, 0}) == "8.0");
  CHECK(fitting({Sass(90)}, {9, 0}) == "none");
}

TEST_CASE("FittingCapability_SeveralContainers_AllMustRun") {
  ImageSet set{
      .containers = {{.entries = {Ptx(80)}}, {.entries = {Ptx(100, ArchScope::kExact)}}, {.entries = {Sass(75)}}}};
  CHECK(FittingCapability(set, {9, 0}) == ComputeCapability{10, 0});
  set.containers.push_back({.entries = {Ptx(120)}});
  CHECK_FALSE(FittingCapability(set, {9, 0}));
}

}  // namespace
}  // namespace gridloom::image
