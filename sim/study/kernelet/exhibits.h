// The figures and tables of Kernelet's evaluation (section 5), from studies of one or more devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/study/experiment/exhibit.h"
#include "sim/study/kernelet/kernel_study.h"

namespace gridloom::study {

/// Of one device, one for each layout of pages; at least one. Of some kernels a pair's rates depend on which rows and banks of DRAM they
/// share, which is chance on a device, too: what is about schedules is a mean over layouts, the rest is the first one's.
using LayoutStudies = std::vector<std::unique_ptr<KernelStudy>>;
using DeviceStudies = std::vector<LayoutStudies>;  ///< by device

/// Names that ShowKernelet knows: fig6 … fig14, table4, table6, pairs, probes, together.
std::vector<std::string> KerneletExhibits();

/// One of them. Measures pairs where it needs them.
Result<Exhibit> ShowKernelet(const std::string& name, const Settings& settings, const DeviceStudies& studies);

}  // namespace gridloom::study
