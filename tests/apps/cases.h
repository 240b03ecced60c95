// Cases that end a process or leave it unusable: each runs in a child of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "app.h"

/// Starts this program once for each number below `count`, with the number as its argument; each must end with status
/// 0.
inline void RunCases(const char* program, int count) {
  for (int which = 0; which < count; ++which) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(40);  // a kernel that never ends is one case, not all of them
      const std::string number = std::to_string(which);
      execl("/proc/self/exe", program, number.c_str(), static_cast<char*>(nullptr));
      _exit(99);
    }
    int status = -1;
    waitpid(child, &status, 0);
    Same("case", which, WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), 0);
  }
}
