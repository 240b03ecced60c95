#include "scheduler/model/kernelet_config.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "sim/device/yaml_map.h"

namespace gridloom::model {
namespace {

TEST_CASE("SetKerneletParameter_UnknownKey_NamesTheNearestOne_WrongValue_WhatItMustBe") {
  KerneletConfig config;
  CHECK(SetKerneletParameter(config, "prune.pru", "1").error().message ==
        "no parameter 'prune.pru'; did you mean 'prune.pur'?");
  CHECK(SetKerneletParameter(config, "something", "1").error().message == "no parameter 'something'");
  CHECK(SetKerneletParameter(config, "ratio", "even").error().message ==
        "ratio is 'even'; it must be `balanced` or `best`");
  for (const char* wrong : {"", "-1", "1e3", "nan", "0.4x", " 0.4"})
    CHECK_FALSE(SetKerneletParameter(config, "prune.pur", wrong).ok());
  CHECK(config.plan.prune_pur == 0.4);
  CHECK_FALSE(SetKerneletParameter(config, "patience", "1.5").ok());
  CHECK_FALSE(SetKerneletParameter(config, "model.max_states", "0").ok());
}

TEST_CASE("SetKerneletParameter_EachKey_SetsItsParameter") {
  KerneletConfig c;
  CHECK(SetKerneletParameter(c, "overhead_percent", "5").ok());
  CHECK(SetKerneletParameter(c, "launch_interval_us", "2.5").ok());
  CHECK(SetKerneletParameter(c, "model.bounds", "0.8").ok());
  CHECK(SetKerneletParameter(c, "prune.pur", "0.3").ok());
  CHECK(SetKerneletParameter(c, "prune.mur", "0.105").ok());
  CHECK(SetKerneletParameter(c, "ratio", "balanced").ok());
  CHECK(SetKerneletParameter(c, "ratio_tolerance", "0.03").ok());
  CHECK(SetKerneletParameter(c, "max_ratios", "0").ok());
  CHECK(SetKerneletParameter(c, "least_profit", "0.01").ok());
  CHECK(SetKerneletParameter(c, "replan", "end").ok());
  CHECK(SetKerneletParameter(c, "patience", "64").ok());
  CHECK(SetKerneletParameter(c, "model.granularity", "warp").ok());
  CHECK(SetKerneletParameter(c, "model.max_states", "200").ok());
  CHECK(SetKerneletParameter(c, "model.uncoalesced", "false").ok());
  CHECK(SetKerneletParameter(c, "model.virtual_sm", "false").ok());
  CHECK((c.overhead_percent == 5 && c.launch_interval_us == 2.5 && c.bounds == 0.8));
  CHECK((c.plan.prune_pur == 0.3 && c.plan.prune_mur == 0.105 && c.plan.ratio == PlanOptions::Ratio::kBalanced));
  CHECK(c.plan.ratio_tolerance == 0.03);
  CHECK((c.plan.max_ratios == 0 && c.plan.least_profit == 0.01));
  CHECK((!c.policy.replan_on_arrival && c.policy.patience == 64));
  CHECK((c.model.granularity == ModelOptions::Granularity::kWarp && c.model.max_states == 200));
  CHECK((!c.model.uncoalesced && !c.model.virtual_sm));
}

TEST_CASE("KerneletYaml_GivesEveryParameterItsDefault") {
  std::ifstream file("configs/policies/kernelet.yaml");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto entries = sim::ReadYamlMap(text, "kernelet.yaml");
  REQUIRE(entries.ok());
  const KerneletConfig d;
  KerneletConfig c;
  c.bounds = c.plan.ratio_tolerance = 0.5;
  c.overhead_percent = c.launch_interval_us = c.plan.prune_pur = c.plan.prune_mur = c.plan.least_profit = 0.9;
  c.plan.max_ratios = c.policy.patience = c.model.max_states = 77;
  c.plan.ratio = PlanOptions::Ratio::kBalanced;
  c.policy.replan_on_arrival = c.model.uncoalesced = c.model.virtual_sm = false;
  c.model.granularity = ModelOptions::Granularity::kWarp;
  std::set<std::string> keys;
  for (const sim::YamlEntry& entry : *entries) {
    CHECK(SetKerneletParameter(c, entry.key, entry.value).ok());
    keys.insert(entry.key);
  }
  CHECK(keys.size() == KerneletParameters().size());
  CHECK((c.overhead_percent == d.overhead_percent && c.plan.prune_pur == d.plan.prune_pur &&
         c.plan.prune_mur == d.plan.prune_mur));
  CHECK((c.plan.ratio == d.plan.ratio && c.plan.max_ratios == d.plan.max_ratios &&
         c.plan.least_profit == d.plan.least_profit));
  CHECK((c.policy.replan_on_arrival == d.policy.replan_on_arrival && c.policy.patience == d.policy.patience));
  CHECK((c.launch_interval_us == d.launch_interval_us && c.bounds == d.bounds &&
         c.plan.ratio_tolerance == d.plan.ratio_tolerance));
  CHECK((c.model.granularity == d.model.granularity && c.model.max_states == d.model.max_states));
  CHECK((c.model.uncoalesced == d.model.uncoalesced && c.model.virtual_sm == d.model.virtual_sm));
}

}  // namespace
}  // namespace gridloom::model
