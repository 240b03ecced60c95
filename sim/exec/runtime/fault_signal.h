// Turns a SIGSEGV or SIGBUS inside a kernel into a fault of the launch. Every other one goes where it went before.
#pragma once

#include <sys/types.h>

namespace gridloom::exec {

class Worker;

/// Makes sure that the handlers are in place, also when the program has installed others since. A handler that was there
/// before is called for faults that are not ours.
void InstallFaultHandler();

/// Lets the calling thread receive faults, and gives it an alternate signal stack, unless it has one: a warp whose stack
/// overflowed has no room for the handler's frame. Taken back when the thread ends.
void PrepareThreadForFaults();

/// Tells a thread of this process, by the system's number, that its launch is to end. Where it is in generated code, it leaves its warp at
/// once; elsewhere it stays, and may be told again. A thread that runs no kernel goes on as if nothing had been.
void TellToLeave(pid_t thread);

/// While one lives, the calling thread runs kernels of `worker`.
class FaultScope {
 public:
  explicit FaultScope(Worker& worker);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
};

}  // namespace gridloom::exec
