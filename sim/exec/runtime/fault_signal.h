// Turns a SIGSEGV or SIGBUS inside a kernel into a fault of the launch. Every other one goes where it went before.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace gridloom::exec {

class Worker;

/// Makes sure that the handlers are in place, also when the program has installed others since. A handler that was
/// there before is called for faults that are not ours.
void InstallFaultHandler();

/// While one lives, the calling thread receives faults, and has an alternate signal stack, unless it has one: a warp
/// whose stack overflowed has no room for the handler's frame. That stack is taken back when the thread ends, the mask
/// of a thread of the program's at the end of the scope.
class FaultsArrive {
 public:
  FaultsArrive();
  ~FaultsArrive();
  FaultsArrive(const FaultsArrive&) = delete;
  FaultsArrive& operator=(const FaultsArrive&) = delete;

 private:
  sigset_t before_;
  bool restore_ = false;
};

/// Tells a thread of this process, by the system's number, that its launch is to end. Where it is in generated code, it
/// leaves its warp at once; elsewhere it stays, and may be told again. A thread that runs no kernel goes on as if
/// nothing had been.
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
