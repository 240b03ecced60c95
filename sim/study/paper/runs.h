// Runs of a paper's programs, traced and replayed; what a replay gave is kept.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/experiment/study.h"
#include "sim/study/measure/measurements.h"
#include "sim/study/paper/replayed.h"
#include "sim/study/replay/job.h"
#include "sim/study/replay/plan.h"

namespace gridloom::study {

struct Paper;
struct Scheme;

using DeviceKeys = std::map<std::string, std::string>;  ///< keys of a device file, and their values

/// A program as it is replayed.
struct Run {
  std::string program{};                 ///< a name below Paper::programs of the experiment's file
  std::string scheme{};                  ///< a name of Paper::schemes, or of a policy; empty: the first scheme
  std::vector<std::string> arguments{};  ///< behind those of the file
  std::string device{};                  ///< empty: the file's
  DeviceKeys keys{};
  std::string sizes{};    ///< the key below which the program's arguments stand; empty: Paper::programs
  ReplayInputs inputs{};  ///< of the replay, besides
};

/// The subject of a paper's study.
class Runs {
 public:
  Runs(const Settings& settings, const Environment& environment, const Paper& paper)
      : settings_(settings), environment_(environment), paper_(paper) {}
  Status ReadSettings();
  Status Begin(Measurements& kept);

  const Environment& environment() const { return environment_; }
  const std::vector<std::string>& programs() const { return programs_; }
  const std::vector<std::string>& devices() const { return devices_; }
  const std::string& device() const { return devices_.back(); }  ///< that of most exhibits

  /// What the runs gave, in their order. Several are measured at the same time.
  template <typename Outcome>
  Result<std::vector<Outcome>> Measure(const std::vector<Run>& runs) {
    GL_TRY(kept, Measure(runs, {.what = Outcome::kWhat, .numbers = NumbersOf<Outcome>}));
    std::vector<Outcome> outcomes(kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      NumberReader reader(kept[i]);
      outcomes[i].Keep(reader);
      if (!reader.complete()) return Error{NameOf(runs[i]) + ": what was kept of its measurement is damaged"};
    }
    return outcomes;
  }
  /// The outcomes of every program under each of the schemes: by program, then by scheme.
  template <typename Outcome>
  Result<std::vector<std::vector<Outcome>>> MeasureAll(const std::vector<std::string>& schemes,
                                                       const DeviceKeys& keys = {}, const std::string& device = {}) {
    std::vector<Run> runs;
    for (const std::string& program : programs_) {
      for (const std::string& scheme : schemes)
        runs.push_back({.program = program, .scheme = scheme, .device = device, .keys = keys});
    }
    GL_TRY(outcomes, Measure<Outcome>(runs));
    std::vector<std::vector<Outcome>> by_program;
    for (auto next = outcomes.begin(); next != outcomes.end(); next += static_cast<std::ptrdiff_t>(schemes.size()))
      by_program.emplace_back(next, next + static_cast<std::ptrdiff_t>(schemes.size()));
    return by_program;
  }

  /// The device of a run, with all that the run and its scheme ask for.
  Result<sim::DeviceSpec> DeviceOf(const Run& run) const;
  /// Made now if need be.
  Result<FileIdentity> TraceOfRun(const Run& run);

 private:
  /// How an outcome is kept.
  struct Kept {
    std::string_view what;
    Result<std::vector<double>> (*numbers)(const Replayed& replayed);
  };
  template <typename Outcome>
  static Result<std::vector<double>> NumbersOf(const Replayed& replayed) {
    GL_TRY(outcome, Outcome::Of(replayed));
    NumberWriter writer;
    outcome.Keep(writer);
    return writer.Take();
  }

  Result<std::vector<std::vector<double>>> Measure(const std::vector<Run>& runs, const Kept& kept);
  Result<Measurement> MeasurementOf(const Run& run, const Kept& kept);
  Result<Run> Completed(Run run) const;
  Result<sim::DeviceSpec> DeviceOfCompleted(const Run& run) const;
  Status SetKeys(const DeviceKeys& keys, sim::DeviceSpec& device) const;
  /// Words of the experiment's file for the run's program.
  Result<std::vector<std::string>> ArgumentsOf(const Run& run) const;
  Scheme SchemeOf(const Run& run) const;
  std::string NameOf(const Run& run) const;

  const Settings& settings_;
  const Environment& environment_;
  const Paper& paper_;
  std::vector<std::string> programs_, devices_;
  DeviceKeys keys_;
  Measurements* kept_ = nullptr;
  std::map<std::string, FileIdentity> traces_;  // by file name
};

}  // namespace gridloom::study
