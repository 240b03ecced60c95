// A sweep as a file describes it: docs/commands.md has the keys.
#pragma once

#include <string>
#include <vector>

#include "sim/study/replay/options.h"

namespace gridloom::study {

/// What the array job asks of Slurm.
struct SlurmRequest {
  std::string partition, account, time, memory;  ///< as sbatch takes them; empty: Slurm's default
  unsigned cpus = 1;                             ///< of a task, which runs as many replays at the same time
  unsigned tasks = 1000;                         ///< of the array at most; each takes its share of the replays
  unsigned at_once = 0;                          ///< tasks at the same time at most; 0: as Slurm decides
  unsigned retries = 1;                          ///< how often tasks with missing results are submitted again
  std::vector<std::string> options;              ///< further options of sbatch
};

struct Sweep {
  ReplayOptions replays;
  SlurmRequest slurm;
};

/// Fails with file, line and what was expected. Paths in the file are relative to its folder.
Result<Sweep> ReadSweepFile(const std::string& path);
Result<Sweep> ParseSweep(const std::string& text, const std::string& path);

}  // namespace gridloom::study
