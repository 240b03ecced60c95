#include "scheduler/model/kernelet_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "rewriter/support/suggest.h"

namespace gridloom::model {
namespace {

template <typename T>
bool SetNumber(T& target, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) return false;
  target = value;
  return true;
}

/// The value of the name that `text` is.
template <typename T>
bool SetChoice(T& target, std::string_view text, std::string_view first, T first_value, std::string_view second,
               T second_value) {
  if (text != first && text != second) return false;
  target = text == first ? first_value : second_value;
  return true;
}

bool SetBool(bool& target, std::string_view text) { return SetChoice(target, text, "true", true, "false", false); }

struct Key {
  std::string_view name, expected;
  bool (*set)(KerneletConfig& config, std::string_view text);
};

using Config = KerneletConfig;
using Text = std::string_view;

constexpr Key kKeys[] = {
    {"overhead_percent", "a number from 0 to 100",
     [](Config& c, Text t) { return SetNumber(c.overhead_percent, t, 0.0, 100.0); }},
    {"launch_interval_us", "a number from 0 to 1000",
     [](Config& c, Text t) { return SetNumber(c.launch_interval_us, t, 0.0, 1000.0); }},
    {"profile_instructions", "a whole number",
     [](Config& c, Text t) { return SetNumber(c.profile_instructions, t, std::uint64_t{0}, std::uint64_t{1} << 32); }},
    {"prune.pur", "a number from 0 to 10", [](Config& c, Text t) { return SetNumber(c.plan.prune_pur, t, 0.0, 10.0); }},
    {"prune.mur", "a number from 0 to 10", [](Config& c, Text t) { return SetNumber(c.plan.prune_mur, t, 0.0, 10.0); }},
    {"ratio", "`balanced` or `best`",
     [](Config& c, Text t) {
       return SetChoice(c.plan.ratio, t, "balanced", PlanOptions::Ratio::kBalanced, "best", PlanOptions::Ratio::kBest);
     }},
    {"ratio_tolerance", "a number from 0 to 1",
     [](Config& c, Text t) { return SetNumber(c.plan.ratio_tolerance, t, 0.0, 1.0); }},
    {"max_ratios", "a whole number", [](Config& c, Text t) { return SetNumber(c.plan.max_ratios, t, 0u, 1u << 20); }},
    {"least_profit", "a number from -1 to 1",
     [](Config& c, Text t) { return SetNumber(c.plan.least_profit, t, -1.0, 1.0); }},
    {"replan", "`arrival` or `end`",
     [](Config& c, Text t) { return SetChoice(c.policy.replan_on_arrival, t, "arrival", true, "end", false); }},
    {"patience", "a whole number", [](Config& c, Text t) { return SetNumber(c.policy.patience, t, 0u, 0xffffffffu); }},
    {"probe_waves", "a whole number from 1 to 1000",
     [](Config& c, Text t) { return SetNumber(c.policy.probe_waves, t, 1u, 1000u); }},
    {"model.bounds", "a number from 0 to 1", [](Config& c, Text t) { return SetNumber(c.bounds, t, 0.0, 1.0); }},
    {"model.granularity", "`cta` or `warp`",
     [](Config& c, Text t) {
       return SetChoice(c.model.granularity, t, "cta", ModelOptions::Granularity::kCta, "warp",
                        ModelOptions::Granularity::kWarp);
     }},
    {"model.max_states", "a whole number from 4 to 4096",
     [](Config& c, Text t) { return SetNumber(c.model.max_states, t, 4u, 4096u); }},
    {"model.uncoalesced", "true or false", [](Config& c, Text t) { return SetBool(c.model.uncoalesced, t); }},
    {"model.virtual_sm", "true or false", [](Config& c, Text t) { return SetBool(c.model.virtual_sm, t); }},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kKeys)> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kKeys[i].name;
  return names;
}();

}  // namespace

Status SetKerneletParameter(KerneletConfig& config, std::string_view key, std::string_view value) {
  const auto* known = std::ranges::find(kKeys, key, &Key::name);
  if (known == std::end(kKeys)) {
    const std::string_view nearest = NearestName(key, kNames);
    return Error{"no parameter '" + std::string(key) + "'" +
                 (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?")};
  }
  if (!known->set(config, value))
    return Error{std::string(key) + " is '" + std::string(value) + "'; it must be " + std::string(known->expected)};
  return {};
}

std::span<const std::string_view> KerneletParameters() { return kNames; }

}  // namespace gridloom::model
