// Starts a process that is nobody's child: a program that waits for all its children, or is told when one ends, never
// learns of it.
#pragma once

#include <string>
#include <vector>

namespace gridloom::exec::background {

/// Runs `words` with `socket` as descriptor kServiceSocket, the standard streams at /dev/null, no other descriptors,
/// and an environment of PATH and HOME alone. False when that fails.
bool SpawnDetached(const std::vector<std::string>& words, int socket);

}  // namespace gridloom::exec::background
