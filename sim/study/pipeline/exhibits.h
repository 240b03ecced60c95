// The figures and tables of the paper's evaluation, and what goes beyond it.
#pragma once

#include <string>

#include "sim/study/paper/parts.h"
#include "sim/study/paper/runs.h"
#include "sim/study/pipeline/outcome.h"

namespace gridloom::study::pipeline {

// One data set after the other, kernel after kernel, which others are compared with; the hardware's own schedule; the
// allocator, and its kin. Labelled: L2 with labels.
constexpr char kSerial[] = "serial", kSerialLabelled[] = "serial with labels", kPreemptive[] = "preemptive",
               kDka[] = "dka", kDkaLabelled[] = "dka with labels", kDkaPredicted[] = "dka-predicted",
               kDkaGuarded[] = "dka-guarded";

// How kernels gain from more SMs (scaling.cpp).
Result<Exhibit> Fig2(const Settings& settings, Runs& runs);     ///< all programs, channels fixed and proportional
Result<Exhibit> Fig3(const Settings& settings, Runs& runs);     ///< the kernels of one program alone
Result<Exhibit> Classes(const Settings& settings, Runs& runs);  ///< stages: SMs required (Eq. 1), times alone
// Fixed splits of the SMs (splits.cpp).
Result<Exhibit> Fig4(const Settings& settings, Runs& runs);   ///< two kernels
Result<Exhibit> Fig12(const Settings& settings, Runs& runs);  ///< three kernels, and the best pairs
Result<Exhibit> Best(const Settings& settings,
                     Runs& runs);  ///< the best fixed split of each program beside what the allocator found
// How the allocator converges (convergence.cpp).
Result<Exhibit> Fig6(const Settings& settings, Runs& runs);
Result<Exhibit> Table4(const Settings& settings, Runs& runs);
Result<Exhibit> Starts(const Settings& settings,
                       Runs& runs);  ///< where the search begins: straight lines, or Kernelet's model
Result<Exhibit> Together(const Settings& settings,
                         Runs& runs);  ///< more than two kernels at once, their shares searched for
// Against one kernel after the other (comparison.cpp).
Result<Exhibit> Fig9(const Settings& settings, Runs& runs);   ///< three devices
Result<Exhibit> Fig10(const Settings& settings, Runs& runs);  ///< what the allocator and the labels bring
Result<Exhibit> Fig11(const Settings& settings, Runs& runs);  ///< bytes of DRAM
// A policy of our own (guarded.cpp).
Result<Exhibit> Guarded(const Settings& settings, Runs& runs);
// Other hardware and other readings (alternatives.cpp).
Result<Exhibit> VictimTable(const Settings& settings, Runs& runs);  ///< which lines of L2 go first
Result<Exhibit> Readings(const Settings& settings, Runs& runs);     ///< where the paper is open
Result<Exhibit> Sizes(const Settings& settings, Runs& runs);        ///< L2 from small to large, Fermi to H200

/// Whether the experiment's file calls a workload light (`light`).
Result<bool> IsLight(const Settings& settings, const std::string& workload);
/// Gains in per cent: of what is compared in columns, for all workloads, light ones and heavy ones.
class Means {
 public:
  void Add(double value, bool light);
  double all() const { return Of(true, true); }
  double light() const { return Of(true, false); }
  double heavy() const { return Of(false, true); }

 private:
  double Of(bool light, bool heavy) const;
  double sum_[2] = {};
  std::size_t count_[2] = {};
};

}  // namespace gridloom::study::pipeline
