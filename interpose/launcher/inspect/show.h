// The two forms in which `gridloom inspect` shows its report.
#pragma once

#include <string>

#include "interpose/launcher/inspect/report.h"

namespace gridloom::launcher {

struct InspectView {
  std::string kernel;    ///< only kernels whose name contains this; empty for all
  bool details = false;  ///< a paragraph per kernel instead of a line
};

/// A line for each kind of entry: how many there are, for what, and their bytes.
std::string BriefText(const InspectReport& report);
std::string ReportText(const InspectReport& report, const InspectView& view);
std::string ReportJson(const InspectReport& report, const InspectView& view);

/// True when the view wants this kernel.
bool Wanted(const InspectView& view, const std::string& name, const std::string& demangled);

}  // namespace gridloom::launcher
