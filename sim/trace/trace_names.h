// Names of trace files with "%p", which stands for the number of the process that writes one.
#pragma once

#include <string>
#include <vector>

namespace gridloom::trace {

/// `name` for this process.
std::string NameForThisProcess(std::string name);
/// The files there are by that name, by their processes' numbers.
std::vector<std::string> FilesOfProcesses(const std::string& name);

}  // namespace gridloom::trace
