// The figures and tables of the paper's evaluation, and what goes beyond it.
#pragma once

#include <cmath>
#include <string>

#include "sim/study/experiment/exhibit.h"
#include "sim/study/pagoda/runs.h"

namespace gridloom::study::pagoda {

using Row = std::vector<nlohmann::ordered_json>;

/// Mean of ratios.
class GeometricMean {
 public:
  void Add(double value) {
    if (!std::isfinite(value) || value <= 0) return;
    logs_ += std::log(value);
    ++count_;
  }
  double value() const { return count_ == 0 ? std::nan("") : std::exp(logs_ / count_); }

 private:
  double logs_ = 0, count_ = 0;
};

/// Null where there is none.
inline nlohmann::ordered_json Cell(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
/// Adds what the paper says under `paper.findings.KEY`.
Status AddFinding(const Settings& settings, const std::string& what, const std::string& key, const std::string& ours, Exhibit& exhibit);

Result<Exhibit> Table3(const Settings& settings, Runs& runs);    ///< shares of copies and computation
Result<Exhibit> Fig5(const Settings& settings, Runs& runs);      ///< all schemes, with copies
Result<Exhibit> Fig6(const Settings& settings, Runs& runs);      ///< numbers of tasks
Result<Exhibit> Fig7(const Settings& settings, Runs& runs);      ///< threads of a task
Result<Exhibit> Fig8(const Settings& settings, Runs& runs);      ///< sizes of inputs and threads
Result<Exhibit> Fig9(const Settings& settings, Runs& runs);      ///< tasks of irregular sizes, static fusion
Result<Exhibit> Fig10(const Settings& settings, Runs& runs);     ///< latency of a task
Result<Exhibit> Fig11(const Settings& settings, Runs& runs);     ///< what continuous spawning brings
Result<Exhibit> Table5(const Settings& settings, Runs& runs);    ///< shared memory
Result<Exhibit> Readings(const Settings& settings, Runs& runs);  ///< where the paper is open: each replaces one default
Result<Exhibit> Devices(const Settings& settings, Runs& runs);   ///< on other devices, against graphs

}  // namespace gridloom::study::pagoda
