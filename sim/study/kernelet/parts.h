// What the exhibits of Kernelet's evaluation have in common (exhibits.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/kernelet/exhibits.h"

namespace gridloom::study {

/// What a number is in several layouts.
struct Spread {
  double mean = 0, least = 0, most = 0;
};
Spread SpreadOf(const std::vector<double>& numbers);  ///< at least one

std::string PairName(const KernelStudy& study, std::size_t a, std::size_t b);  ///< "pc+tea"
std::string RatioText(const PairLoad& load);                                   ///< "1:7"

/// The ratio that the model chooses (balanced, Eq. 8).
std::optional<PairLoad> ModelsChoice(const KernelStudy& study, std::size_t a, std::size_t b);
/// CP (Eq. 1), measured; measures the pair if need be.
Result<double> MeasuredProfit(KernelStudy& study, const PairLoad& load);

// Scheduling (schedules.cpp).
Result<Exhibit> Pairs(const Settings& settings,
                      DeviceStudies& studies);  ///< what the best ratio of each pair saves, and the model's
Result<Exhibit> Fig13(const Settings& settings, DeviceStudies& studies);  ///< BASE, Kernelet, OPT
Result<Exhibit> Fig14(const Settings& settings, DeviceStudies& studies);  ///< random schedules
Result<Exhibit> Probes(const Settings& settings,
                       DeviceStudies& studies);  ///< Kernelet that tries its choices, beyond the paper
Result<Exhibit> Together(const Settings& settings, DeviceStudies& studies);  ///< all kernels at once

}  // namespace gridloom::study
