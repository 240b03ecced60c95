// Slurm as far as sweeps need it: an array job is written, submitted and waited for, through its command-line programs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/study/sweep/file.h"

namespace gridloom::study {

/// Where `sbatch` is found on the PATH.
bool SlurmIsThere();

/// The script of an array job whose task N runs `command N`. Logs go to `folder`/slurm/JOB_TASK.log.
std::string BatchScript(const SlurmRequest& request, const std::string& name, const std::string& folder,
                        const std::vector<std::string>& command);

/// "0-3,7": numbers in ascending order.
std::string ArrayRange(const std::vector<std::size_t>& numbers);

/// Submits the script for these tasks, at most `at_once` of them at a time (0: no limit); the job's id.
Result<std::string> SubmitArray(const std::string& script, const std::vector<std::size_t>& tasks, unsigned at_once);

/// How many tasks of the job have not ended. A job that Slurm does not know any more has none.
Result<std::size_t> UnfinishedTasks(const std::string& job);

/// The last line that a task wrote; empty when it has no log.
std::string LastWords(const std::string& folder, const std::string& job, std::size_t task);

}  // namespace gridloom::study
