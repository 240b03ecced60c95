// What a study of a paper is. A study is one class, a row in sim/study/studies.cpp, files in configs/experiments and a page
// (docs/experiments.md says which, in which order).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/study/experiment/exhibit.h"
#include "sim/study/experiment/settings.h"
#include "sim/study/measure/measurements.h"

namespace gridloom::study {

/// Where a study finds and keeps things, and how it works.
struct Environment {
  std::filesystem::path tool;      ///< the `gridloom` command, which runs the workloads
  std::filesystem::path programs;  ///< folder of the workloads' programs
  std::filesystem::path work;      ///< folder that keeps traces and measurements; it is there
  std::filesystem::path kept;      ///< folder of the traces that come with Gridloom
  unsigned threads = 1;            ///< measurements at the same time
  MeasurementProgress progress{};  ///< may be empty
};

/// The figures and tables of a paper's evaluation, as an experiment's file describes them.
class Study {
 public:
  virtual ~Study() = default;
  /// Names of its exhibits, in the order of the paper.
  virtual std::vector<std::string> Exhibits() const = 0;
  /// One of Exhibits(). Nothing is traced or measured before the first exhibit that needs it.
  virtual Result<Exhibit> Show(const std::string& name) = 0;
};

/// The exhibits that the experiment shows (`show`). Fails on names that the study does not have, with the nearest one.
Result<std::vector<std::string>> ExhibitsToShow(const Settings& settings, const Study& study);

/// The devices that the experiment names (`devices`); at least one.
Result<std::vector<sim::DeviceSpec>> DevicesOf(const Settings& settings);

/// Measurements that are kept in the environment's folder.
Result<std::unique_ptr<RateCache>> OpenCache(const Environment& environment);

}  // namespace gridloom::study
