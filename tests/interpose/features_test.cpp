// What goes together (interpose/settings/features.def), row by row: each pair gives its sentence, and so does each
// feature without what it is for.
#include "interpose/settings/features.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

using namespace gridloom;
using namespace gridloom::settings;

namespace {

FeatureSet SetOf(std::initializer_list<Feature> features) {
  FeatureSet set;
  for (const Feature feature : features) set.Add(feature);
  return set;
}

FeatureSet AskedForWith(const std::map<std::string, std::string, std::less<>>& variables) {
  return AskedFor([&](std::string_view variable) {
    const auto found = variables.find(variable);
    return found != variables.end() ? found->second : std::string();
  });
}

}  // namespace

TEST_CASE("Features_EachPairThatExcludesGivesItsSentence") {
  REQUIRE(!Exclusions().empty());
  for (const ExclusionRow& row : Exclusions()) {
    const Status status = CheckExclusions(SetOf({row.one, row.other}));
    REQUIRE(!status.ok());
    CHECK(status.error().message == row.sentence);
    CHECK(CheckExclusions(SetOf({row.one})).ok());
    CHECK(CheckExclusions(SetOf({row.other})).ok());
  }
}

TEST_CASE("Features_EveryOtherPairGoesTogether") {
  const auto count = static_cast<std::size_t>(Feature::kCount);
  for (std::size_t one = 0; one < count; ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      const auto first = static_cast<Feature>(one), second = static_cast<Feature>(other);
      const bool excluded = std::ranges::any_of(Exclusions(), [&](const ExclusionRow& row) {
        return (row.one == first && row.other == second) || (row.one == second && row.other == first);
      });
      CHECK(CheckExclusions(SetOf({first, second})).ok() == !excluded);
    }
  }
}

TEST_CASE("Features_EachWithoutWhatItIsForGivesItsSentence") {
  REQUIRE(!Needs().empty());
  for (const NeedRow& row : Needs()) {
    const Status status = CheckNeeds(SetOf({row.one}));
    REQUIRE(!status.ok());
    CHECK(status.error().message == row.sentence);
    CHECK(CheckNeeds(SetOf({row.one, row.first})).ok());
    CHECK(CheckNeeds(SetOf({row.one, row.second})).ok());
  }
}

TEST_CASE("Features_OneThatYieldsIsOffBesideTheOther") {
  REQUIRE(!Yields().empty());
  for (const YieldRow& row : Yields()) {
    CHECK(Runs(row.one, SetOf({row.one})));
    CHECK_FALSE(Runs(row.one, SetOf({row.one, row.other})));
  }
}

TEST_CASE("Features_AreOnAsTheEnvironmentSays") {
  CHECK_FALSE(AskedForWith({}).Has(Feature::kTrace));
  CHECK(AskedForWith({{"GRIDLOOM_TRACE", "file"}}).Has(Feature::kTrace));
  CHECK_FALSE(AskedForWith({{"GRIDLOOM_SLICE", "0"}}).Has(Feature::kSlice));
  CHECK(AskedForWith({{"GRIDLOOM_SLICE", "8"}}).Has(Feature::kSlice));
  CHECK(AskedForWith({{"GRIDLOOM_TIMING", "Yes"}}).Has(Feature::kTiming));
  CHECK_FALSE(AskedForWith({{"GRIDLOOM_TIMING", "off"}}).Has(Feature::kTiming));
  CHECK(AskedForWith({{"GRIDLOOM_LEAK_CHECK", "1"}}).Has(Feature::kMemcheck));
  CHECK(AskedForWith({{"GRIDLOOM_POLICY", "pagoda"}}).Has(Feature::kTasks));
  CHECK_FALSE(AskedForWith({{"GRIDLOOM_POLICY", "pagoda"}, {"GRIDLOOM_TIMING", "1"}}).Has(Feature::kTasks));
  CHECK_FALSE(AskedForWith({{"GRIDLOOM_POLICY", "serial"}}).Has(Feature::kTasks));
  CHECK_FALSE(AskedForWith({{"GRIDLOOM_TIMING", "1"}}).Has(Feature::kTimedRanges));  // who knows adds it
}
