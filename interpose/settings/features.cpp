#include "interpose/settings/features.h"

#include <strings.h>

#include <algorithm>

namespace gridloom::settings {
namespace {

/// The words of the conditions in features.def.
class Conditions {
 public:
  explicit Conditions(const ValueOf& value) : value_(value) {}

  bool Is(std::string_view variable, std::string_view text) const { return value_(variable) == text; }
  bool On(std::string_view variable) const { return IsOn(value_(variable)); }
  bool Given(std::string_view variable) const {
    const std::string text = value_(variable);
    return !text.empty() && text != "0";
  }
  static bool Always() { return true; }
  static bool Found() { return false; }

  FeatureSet Evaluate() const {
    FeatureSet features;
#define GL_FEATURE(id, option, condition) \
  if (condition) features.Add(Feature::id);
#include "interpose/settings/features.def"
    return features;
  }

 private:
  const ValueOf& value_;
};

constexpr ExclusionRow kExclusions[] = {
#define GL_EXCLUDE(one, other, sentence) {Feature::one, Feature::other, sentence},
#include "interpose/settings/features.def"
};

constexpr NeedRow kNeeds[] = {
#define GL_NEED(one, first, second, sentence) {Feature::one, Feature::first, Feature::second, sentence},
#include "interpose/settings/features.def"
};

constexpr YieldRow kYields[] = {
#define GL_YIELD(one, other) {Feature::one, Feature::other},
#include "interpose/settings/features.def"
};

}  // namespace

FeatureSet AskedFor(const ValueOf& value) { return Conditions(value).Evaluate(); }

Status CheckExclusions(const FeatureSet& features) {
  for (const ExclusionRow& row : kExclusions) {
    if (features.Has(row.one) && features.Has(row.other)) return Error{std::string(row.sentence)};
  }
  return {};
}

Status CheckNeeds(const FeatureSet& features) {
  for (const NeedRow& row : kNeeds) {
    if (features.Has(row.one) && !features.Has(row.first) && !features.Has(row.second))
      return Error{std::string(row.sentence)};
  }
  return {};
}

bool Runs(Feature feature, const FeatureSet& features) {
  return features.Has(feature) && std::ranges::none_of(kYields, [&](const YieldRow& row) {
           return row.one == feature && features.Has(row.other);
         });
}

bool IsOn(const std::string& text) {
  return std::ranges::any_of(std::initializer_list<const char*>{"1", "on", "true", "yes"},
                             [&](const char* yes) { return strcasecmp(text.c_str(), yes) == 0; });
}

std::span<const ExclusionRow> Exclusions() { return kExclusions; }
std::span<const NeedRow> Needs() { return kNeeds; }
std::span<const YieldRow> Yields() { return kYields; }

}  // namespace gridloom::settings
