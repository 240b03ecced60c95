// What `replay`, `compare` and `sweep` have in common: which workloads on which devices under which policies, and what
// becomes of it.
#pragma once

#include <string>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::study {

/// Programs that share the device.
struct Workload {
  std::string name;
  std::vector<std::string> traces;  ///< files
};

/// Values for a key of the device file: one variant of each device for each of them.
struct ParameterValues {
  std::string key;
  std::vector<std::string> values;
};

struct ReplayOptions {
  std::vector<Workload> workloads;
  std::vector<std::string> devices;  ///< ids or YAML files; none: the default device
  /// Proposed parts in place of a device's own ("a,b"; "none"): a variant of each device for each.
  std::vector<std::string> hardware;
  std::vector<std::string> policies;        ///< none: leftover
  std::vector<ParameterValues> parameters;  ///< several: every combination
  /// Rates of the host's storage ("500MB/s"): a variant of each device for each; Complete() reads them.
  std::vector<std::string> storage;
  /// sim::kLoweringNames: a variant of each device for each; none: as the devices' files say.
  std::vector<std::string> lowering;
  std::string baseline;  ///< device, policy or both (with a comma) that others are compared with; empty: the first
  std::string profiles;  ///< file with profiles of kernels on the one device, for kernelet; empty: it makes them
  std::string report;    ///< folder; empty: no report
  std::string title, command;  ///< of the report: what it is, and what does the same again
  unsigned jobs = 0;           ///< replays at the same time; 0: one per core
  unsigned threads = 1;        ///< host threads of each replay
  /// Millions of warp instructions of one launch, beyond which a replay fails: more than an hour of simulation. 0: any
  /// number.
  unsigned most_instructions = 4000;
  bool kernels_only = false;  ///< no copies, no time of the programs'
  bool alone = true;          ///< replay each program of a mix alone, too: what it is slowed down by
  bool fresh = false;         ///< replay what is finished in the report's folder, too
  bool quiet = false;         ///< no progress

  std::vector<std::string> sets;  ///< more parameters as text, KEY=VALUE,...; Complete() reads them

  /// Fills in defaults and reads what was given as text. Fails with one sentence about what cannot be.
  Status Complete();

 private:
  Status CheckKeys() const;
};

/// Each trace alone, named after its file; with `mix` all of them together. Names are unique.
std::vector<Workload> WorkloadsOf(const std::vector<std::string>& traces, bool mix);

/// "timing.l1.mshrs=16,32"; fails when there is no key or no value.
Result<ParameterValues> ParseParameter(const std::string& text);

}  // namespace gridloom::study
