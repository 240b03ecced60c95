// What the allocator's steps tell: which stages ran side by side, on how many SMs, for how long.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/study/pipeline/outcome.h"

namespace gridloom::study::pipeline {

/// Stages that ran side by side, the most advanced first.
using Stages = std::vector<std::size_t>;

/// "K1-K2", as the paper names pairs.
std::string NameOf(const Stages& stages);

/// One step of a pair.
struct PairStep {
  std::vector<std::uint32_t> sms;  ///< by the pair's stages
  std::vector<double> took;
  double longest() const;
};

/// Steps of more than one kernel, by their stages.
std::map<Stages, std::vector<PairStep>> PairsOf(const Outcome& outcome);

/// Steps until the split does not change any more, 1 if it never does; 0 if the last step still had another one than
/// the step before.
std::size_t StepsToConverge(const std::vector<PairStep>& steps);

/// The median of a pair's steps from the one with number `from` on.
double MedianTime(const std::vector<PairStep>& steps, std::size_t from);

/// Time of each stage alone, from the steps in which it was.
std::map<std::size_t, double> AloneTimes(const Outcome& outcome);

/// For all pairs of stages: the more advanced one gets `first` of `sms` SMs.
std::map<Stages, std::vector<std::uint32_t>> SplitAllPairs(std::uint32_t first, std::uint32_t sms);

}  // namespace gridloom::study::pipeline
