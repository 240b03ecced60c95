// The figures and tables of Kernelet's evaluation (section 5), from studies of one or more devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "interpose/launcher/experiment/exhibit.h"
#include "interpose/launcher/experiment/kernelet_study.h"

namespace gridloom::experiment {

/// Names that ShowKernelet knows: fig6 … fig14, table4, table6.
std::vector<std::string> KerneletExhibits();

/// One of them. Measures pairs where it needs them.
Result<Exhibit> ShowKernelet(const std::string& name, const Settings& settings, const std::vector<std::unique_ptr<KernelStudy>>& studies);

}  // namespace gridloom::experiment
