// What a study of a paper is: exhibits, and what measures for them. A study is a row in sim/study/studies.cpp, files in
// configs/experiments and a page (docs/experiments.md says which, in which order). Papers that replay programs need no
// class of their own (sim/study/paper).
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

/// A device on which the experiment simulates: what of kernels, it says for all its devices (`lowering`).
Result<sim::DeviceSpec> DeviceNamed(const Settings& settings, const std::string& name);

/// The devices that the experiment names (`devices`); at least one.
Result<std::vector<sim::DeviceSpec>> DevicesOf(const Settings& settings);

/// Measurements that are kept in the environment's folder.
Result<std::unique_ptr<RateCache>> OpenCache(const Environment& environment);

/// An exhibit, and how it is made from the settings and from what measures for it.
template <typename Subject>
struct ExhibitRow {
  std::string_view name;  ///< "fig13"
  Result<Exhibit> (*show)(const Settings& settings, Subject& subject);
};

/// A study whose exhibits are rows. Its subject measures for all of them; it is made from settings, environment and
/// `more`, which outlive it, and has
///   Status ReadSettings();              reads and checks what it needs of the settings; measures nothing
///   Status Begin(Measurements& kept);   comes before the first exhibit; `kept` outlives the subject
template <typename Subject>
class StudyOf final : public Study {
 public:
  using Rows = std::span<const ExhibitRow<Subject>>;

  template <typename... More>
  static Result<std::unique_ptr<Study>> Make(Rows rows, const Settings& settings, const Environment& environment,
                                             const More&... more) {
    std::unique_ptr<StudyOf> study(new StudyOf(rows, settings, environment, more...));
    GL_TRY_STATUS(study->subject_.ReadSettings());
    return std::unique_ptr<Study>(std::move(study));
  }

  std::vector<std::string> Exhibits() const override {
    std::vector<std::string> names;
    for (const ExhibitRow<Subject>& row : rows_) names.emplace_back(row.name);
    return names;
  }

  Result<Exhibit> Show(const std::string& name) override {
    const auto row = std::ranges::find(rows_, name, &ExhibitRow<Subject>::name);
    if (row == rows_.end()) return Error{settings_.name() + ": the study has no exhibit '" + name + "'"};
    GL_TRY_STATUS(Begin());
    GL_TRY(exhibit, row->show(settings_, subject_));
    exhibit.name = name;
    return exhibit;
  }

 private:
  template <typename... More>
  StudyOf(Rows rows, const Settings& settings, const Environment& environment, const More&... more)
      : rows_(rows), settings_(settings), environment_(environment), subject_(settings_, environment_, more...) {}

  Status Begin() {
    if (begun_) return {};
    GL_TRY(cache, OpenCache(environment_));
    cache_ = std::move(cache);
    measurements_ = std::make_unique<Measurements>(*cache_, environment_.threads, environment_.progress);
    GL_TRY_STATUS(subject_.Begin(*measurements_));
    begun_ = true;
    return {};
  }

  const Rows rows_;
  const Settings settings_;
  const Environment environment_;
  std::unique_ptr<RateCache> cache_;
  std::unique_ptr<Measurements> measurements_;
  bool begun_ = false;
  Subject subject_;  // last: it measures with the above
};

}  // namespace gridloom::study
