// The figures, tables and numbers of the paper's evaluation, and what goes beyond it.
#pragma once

#include "sim/study/crcs/outcomes.h"
#include "sim/study/paper/parts.h"
#include "sim/study/paper/runs.h"

namespace gridloom::study::crcs {

// Schemes are policies.
constexpr char kSerial[] = "serial", kFifo[] = "crcs-fifo", kPpcs[] = "crcs-ppcs", kReady[] = "crcs-ready";

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

}  // namespace gridloom::study::crcs
