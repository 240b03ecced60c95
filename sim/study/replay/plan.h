// Which replays a run consists of, and under which key each one's result is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/device/device_spec.h"
#include "sim/study/replay/options.h"
#include "sim/timing/counters.h"
#include "sim/timing/derived.h"

namespace gridloom::study {

/// A device, perhaps with proposed parts and changed numbers.
struct DeviceVariant {
  std::string label;  ///< "v100", "v100 timing.l1.mshrs=16" or "v100 + lazy-ctas hardware.lazy-ctas.watch=2"
  sim::DeviceSpec spec;
  std::vector<std::pair<std::string, std::string>> changes;  ///< key and value
};

/// One replay.
struct Cell {
  std::size_t workload = 0, device = 0;  ///< in the plan
  std::string policy;
  std::optional<std::size_t> program = std::nullopt;  ///< only this one of the workload's traces: what it takes alone
  std::string key;   ///< equal for replays that must give the same: this build, the traces' contents, device, policy
  std::string file;  ///< name of its result in the report's folder, unique in the plan

  bool operator==(const Cell&) const = default;
};

/// What a result depends on of a file.
struct FileIdentity {
  std::string path;
  std::uint64_t bytes = 0;
  std::string hash;  ///< XXH3 of the contents, 64 bits
};
Result<FileIdentity> Identify(const std::string& path);

struct ReplayPlan {
  std::vector<Workload> workloads;
  std::vector<std::vector<FileIdentity>> traces;  ///< by workload
  std::vector<DeviceVariant> devices;
  std::vector<std::string> policies;
  /// By workload, within a workload by device, within a device by policy; then programs alone that are not among them.
  std::vector<Cell> cells;
  std::size_t asked = 0;                 ///< those before the programs alone
  std::string base_device, base_policy;  ///< labels that speed-ups refer to; empty: the same as the cell's
  std::string alone_policy;              ///< under which programs are alone
  /// By workload and device: cells of the programs of a mix, each alone.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> alone;

  std::string NameOf(const Cell& cell) const;  ///< "app on v100 under serial"
  /// "app", or "one+two"; of one program of a mix alone, its name.
  std::string WorkloadOf(const Cell& cell) const;
  std::vector<FileIdentity> TracesOf(const Cell& cell) const;
  /// Names of the programs of the cell, by trace; unique.
  std::vector<std::string> ProgramsOf(const Cell& cell) const;
  /// The cell's device, with the parts that its policy needs.
  sim::DeviceSpec SpecOf(const Cell& cell) const;
};

/// Whether devices, parts of hardware, keys and policies can be what `options` says: fails as PlanReplays, without a
/// look at traces.
Status CheckNames(const ReplayOptions& options);
/// The forms of ranges that traces have to tell of ("interval,strided"), as some of the devices go by them under some
/// of the policies; else nothing. Fails as CheckNames.
Result<std::string> RangesFor(const ReplayOptions& options);

/// Counters of all devices of the plan: those of the model, then those of the parts that some have.
std::vector<timing::CounterInfo> CountersOf(const ReplayPlan& plan);
/// What the schedulers of the plan's devices do.
std::vector<timing::SchedulerState> StatesOf(const ReplayPlan& plan);

/// Reads devices and traces' contents. Fails with one sentence on names that do not exist, unreadable files, values
/// that cannot be.
Result<ReplayPlan> PlanReplays(const ReplayOptions& options);

}  // namespace gridloom::study
