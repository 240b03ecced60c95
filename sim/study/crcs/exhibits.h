// The figures, tables and numbers of the paper's evaluation, and what goes beyond it.
#pragma once

#include <string>

#include "sim/study/crcs/runs.h"
#include "sim/study/experiment/exhibit.h"

namespace gridloom::study::crcs {

// Speed-ups over one stage after the other (speedups.cpp).
Result<Exhibit> Fig9(const Settings& settings, Runs& runs);    ///< bounds, CRCS with FIFO and with PPCS
Result<Exhibit> Fig12(const Settings& settings, Runs& runs);   ///< HSP with more and more launches
Result<Exhibit> Random(const Settings& settings, Runs& runs);  ///< inputs that are initialised in other orders
Result<Exhibit> Beyond(const Settings& settings, Runs& runs);  ///< strided ranges, CTAs whose pages are there first
// What a run's time is spent on (breakdowns.cpp).
Result<Exhibit> Fig2(const Settings& settings, Runs& runs);
Result<Exhibit> Fig11(const Settings& settings, Runs& runs);
// Finished CTAs over time (progress.cpp).
Result<Exhibit> Fig10(const Settings& settings, Runs& runs);
// What it costs (costs.cpp).
Result<Exhibit> Profilers(const Settings& settings, Runs& runs);  ///< time in profilers, instructions of release code
Result<Exhibit> Storage(const Settings& settings, Runs& runs);    ///< bits on the chip
// On other hardware (sweeps.cpp).
Result<Exhibit> Readings(const Settings& settings, Runs& runs);  ///< where the paper is open
Result<Exhibit> Pays(const Settings& settings, Runs& runs);      ///< storage, PCIe, pages, devices

/// What the paper says of a workload, or null: a number below `paper.KEY.WORKLOAD`.
nlohmann::ordered_json PaperValue(const Settings& settings, const std::string& key, const std::string& workload);

}  // namespace gridloom::study::crcs
