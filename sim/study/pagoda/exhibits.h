// The figures and tables of the paper's evaluation, and what goes beyond it.
#pragma once

#include <cmath>
#include <string>

#include "sim/study/pagoda/outcome.h"
#include "sim/study/paper/parts.h"
#include "sim/study/paper/runs.h"

namespace gridloom::study::pagoda {

// Ways to run many narrow tasks. In batches, the host does nothing for a batch before the one before it has ended, and
// copies no inputs; where it is free, it leaves that to the runtime.
constexpr char kHyperQ[] = "HyperQ", kGraph[] = "graphs", kFusion[] = "fusion", kGemtc[] = "GeMTC",
               kGemtcFree[] = "GeMTC, host free", kBatching[] = "Pagoda in batches",
               kBatchingFree[] = "Pagoda in batches, host free", kPagoda[] = "Pagoda";

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

/// Whether the scheme can run the program: fusion, graphs and batches must know how many tasks it has (`uncounted`).
bool Can(const Settings& settings, const std::string& program, const std::string& scheme);

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
