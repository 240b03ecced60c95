// What a process is asked for, and what of it goes together: features.def.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"

namespace gridloom::settings {

enum class Feature : std::uint8_t {
#define GL_FEATURE(id, option, condition) id,
#include "interpose/settings/features.def"
  kCount,
};

class FeatureSet {
 public:
  bool Has(Feature feature) const { return on_.test(static_cast<std::size_t>(feature)); }
  void Add(Feature feature) { on_.set(static_cast<std::size_t>(feature)); }

 private:
  std::bitset<static_cast<std::size_t>(Feature::kCount)> on_;
};

/// The value that a variable has for the program; empty when it is not set.
using ValueOf = std::function<std::string(std::string_view variable)>;

/// What the environment asks for.
FeatureSet AskedFor(const ValueOf& value);

/// The sentence for the first two that exclude each other.
Status CheckExclusions(const FeatureSet& features);
/// The sentence for the first one that is there without what it is for.
Status CheckNeeds(const FeatureSet& features);

/// Whether the feature is on, and none of those that it yields to.
bool Runs(Feature feature, const FeatureSet& features);

/// "1", "on", "true", "yes" (any case).
bool IsOn(const std::string& text);

// ---- the table, for tests
struct ExclusionRow {
  Feature one, other;
  std::string_view sentence;
};
struct NeedRow {
  Feature one, first, second;
  std::string_view sentence;
};
struct YieldRow {
  Feature one, other;
};
std::span<const ExclusionRow> Exclusions();
std::span<const NeedRow> Needs();
std::span<const YieldRow> Yields();

}  // namespace gridloom::settings
