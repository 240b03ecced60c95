// The figures and tables of Kernelet's evaluation (section 5), from studies of one or more devices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/study/experiment/study.h"
#include "sim/study/kernelet/kernel_study.h"

namespace gridloom::study {

/// The measurements of one device, one for each layout of pages; at least one. For some kernels a pair's rates depend
/// on which rows and banks of DRAM they share, which is chance on a device, too. Figures about schedules are means over
/// layouts; the others are those of the first layout.
using LayoutStudies = std::vector<std::unique_ptr<KernelStudy>>;

/// What Kernelet's study measures with: the kernels of the experiment's file on each of its devices.
class DeviceStudies {
 public:
  DeviceStudies(const Settings& settings, const Environment& environment)
      : settings_(settings), environment_(environment) {}
  Status ReadSettings();
  /// Measures every kernel alone and in slices, on each device in each layout of pages.
  Status Begin(Measurements& kept);

  auto begin() const { return devices_.begin(); }
  auto end() const { return devices_.end(); }
  const LayoutStudies& front() const { return devices_.front(); }

 private:
  Result<std::vector<StudyKernel>> LoadKernels() const;

  const Settings& settings_;
  const Environment& environment_;
  std::uint64_t layouts_ = 0, first_layout_ = 0;
  std::vector<LayoutStudies> devices_;
};

/// fig6 … fig14, table4, table6, pairs, probes, together. They measure pairs where they need them.
std::span<const ExhibitRow<DeviceStudies>> KerneletExhibits();

}  // namespace gridloom::study
