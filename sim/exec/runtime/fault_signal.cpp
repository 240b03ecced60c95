#include "sim/exec/runtime/fault_signal.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "rewriter/support/own_thread.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/worker.h"

namespace gridloom::exec {
namespace {

// Read in the signal handler, so its storage must exist without a call: initial-exec.
__attribute__((tls_model("initial-exec"))) thread_local Worker* t_worker = nullptr;

__attribute__((tls_model("initial-exec"))) thread_local bool t_passing_on = false;

__attribute__((tls_model("initial-exec"))) thread_local bool t_has_signal_stack = false;

// Handlers that were there before ours: SIGSEGV, SIGBUS. A new one comes in front when a program installs one over
// ours; none is ever freed, because a handler may be reading it.
struct Previous {
  struct sigaction action;
  const Previous* older;
};
std::atomic<const Previous*> g_previous[2];

#if defined(__x86_64__)
std::uintptr_t ProgramCounter(const ucontext_t& context) {
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
}
std::uintptr_t StackPointer(const ucontext_t& context) {
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
}
std::span<const std::uint64_t> Registers(const ucontext_t& context) {
  return {reinterpret_cast<const std::uint64_t*>(context.uc_mcontext.gregs), REG_RIP};  // the general ones come first
}
void ContinueAt(ucontext_t& context, void (*function)(Warp*), Warp* argument, std::byte* stack_top) {
  context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(function));
  context.uc_mcontext.gregs[REG_RDI] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(argument));
  // The stack pointer stands as after a call.
  context.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(stack_top) - 8);
  context.uc_mcontext.gregs[REG_EFL] &= ~greg_t{0x400};  // direction flag
}
#elif defined(__aarch64__)
std::uintptr_t ProgramCounter(const ucontext_t& context) { return context.uc_mcontext.pc; }
std::uintptr_t StackPointer(const ucontext_t& context) { return context.uc_mcontext.sp; }
std::span<const std::uint64_t> Registers(const ucontext_t& context) {
  return {reinterpret_cast<const std::uint64_t*>(context.uc_mcontext.regs), 31};
}
void ContinueAt(ucontext_t& context, void (*function)(Warp*), Warp* argument, std::byte* stack_top) {
  context.uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(function);
  context.uc_mcontext.regs[0] = reinterpret_cast<std::uintptr_t>(argument);
  context.uc_mcontext.sp = reinterpret_cast<std::uintptr_t>(stack_top);
}
#else
#error "fault_signal.cpp: say where this processor keeps its program counter"
#endif

/// Runs on the faulting warp's stack, from its top: what was on it is not needed any more.
void Land(Warp* warp) {
  Worker& worker = warp->cta->unit->worker;
  const std::int32_t lane = worker.access_lane;
  const std::uint32_t line = worker.access_line;
  worker.access_lane = -1;
  if (worker.fault_is_stack)
    RaiseFault(*warp, FaultKind::kStackOverflow, kNoLane, worker.fault_address, 0,
               "stack overflow: the calls of device functions nest too deeply");
  if (lane >= 0)
    RaiseFault(*warp, FaultKind::kIllegalAddress, static_cast<std::uint32_t>(lane), worker.fault_address, line,
               "illegal address");
  // Where a whole warp faults, nobody knows which thread it was.
  const std::uint32_t alone = std::exchange(warp->ctx.access_lane, 0);
  const std::uint32_t only = alone != 0 ? alone - 1 : warp->ctx.initial_mask == 1 ? 0 : kNoLane;
  const std::uint32_t called_line = std::exchange(warp->ctx.access_line, 0);
  RecordFault(*worker.launch, warp, FaultKind::kIllegalAddress, only, worker.fault_address, called_line,
              "illegal address", worker.fault_pc);
  LeaveStopped(*warp);
}

/// A request of TellToLeave's: the signal carries this address.
constexpr int kLeaveSignal = SIGSEGV;
char g_leave = 0;

bool IsRequestToLeave(int signal, const siginfo_t& info) {
  return signal == kLeaveSignal && info.si_code == SI_QUEUE && info.si_pid == getpid() &&
         info.si_value.sival_ptr == &g_leave;
}

bool IsInKernel(const Worker& worker, std::uintptr_t pc) {
  const CodeObject* const code = worker.launch->kernel->code.get();
  return code && pc >= code->code_begin() && pc < code->code_end();
}

void LandToLeave(Warp* warp) { LeaveStopped(*warp); }

/// Ends the thread's launch. In generated code nothing is held that somebody waits for, so the warp is left as after a
/// fault.
void Leave(ucontext_t& context) {
  Worker* const worker = t_worker;
  if (!worker || !worker->launch) return;
  worker->launch->stop.store(true);
  if (!IsInKernel(*worker, ProgramCounter(context))) return;
  Warp* const warp = worker->WarpAt(StackPointer(context), Registers(context));
  if (!warp) return;
  ForgetFrames(*warp);
  ContinueAt(context, &LandToLeave, warp, warp->stack_low + warp->stack_bytes);
}

/// A GPU would not have noticed: the access is repeated, and the launch remembers the first one.
bool LetThrough(Worker& worker, const Warp& warp, std::uint64_t address) {
  Launch& launch = *worker.launch;
  if (!launch.services->memory->LetThrough(address)) return false;
  if (!launch.stray.noted.exchange(true)) {
    launch.stray.address = address;
    launch.stray.line = worker.access_lane >= 0 ? worker.access_line : 0;
    launch.stray.cta = PlaceInGrid(*warp.cta);
  }
  return true;
}

/// True when the fault was a kernel's and the thread will go on, at Land or with the same access.
bool TakeOver(int signal, const siginfo_t& info, ucontext_t& context) {
  Worker* const worker = t_worker;
  if (!worker || !worker->launch || info.si_code <= 0) return false;  // not ours, or sent by somebody
  const std::uintptr_t pc = ProgramCounter(context);
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  const bool in_kernel = IsInKernel(*worker, pc);
  const bool in_access = worker->access_lane >= 0;
  const bool in_guard = worker->IsStackGuard(address);
  if (!in_kernel && !in_access && !in_guard) return false;
  Warp* warp = worker->WarpAt(StackPointer(context), Registers(context));
  if (!warp) return false;
  if (!in_guard && LetThrough(*worker, *warp, address)) return true;
  worker->fault_address = address;
  worker->fault_pc = in_kernel ? pc : 0;
  worker->fault_is_stack = in_guard;
  worker->fault_is_bus = signal == SIGBUS;
  ForgetFrames(*warp);
  ContinueAt(context, &Land, warp, warp->stack_low + warp->stack_bytes);
  return true;
}

void PassOn(int signal, siginfo_t* info, void* context) {
  const Previous* const entry = g_previous[signal == SIGBUS ? 1 : 0].load(std::memory_order_acquire);
  const struct sigaction* const previous = entry ? &entry->action : nullptr;
  const bool has_handler = previous && previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN;
  if (!has_handler || t_passing_on) {  // a handler that was put over ours, and that we call, may call us in turn
    // Take the default: the faulting instruction runs again and ends the process. A signal that was sent must be
    // repeated.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    if (info->si_code <= 0) raise(signal);
    return;
  }
  t_passing_on = true;
  if ((previous->sa_flags & SA_SIGINFO) != 0) previous->sa_sigaction(signal, info, context);
  else previous->sa_handler(signal);
  t_passing_on = false;
}

void Handle(int signal, siginfo_t* info, void* context) {
  if (IsRequestToLeave(signal, *info)) return Leave(*static_cast<ucontext_t*>(context));
  if (!TakeOver(signal, *info, *static_cast<ucontext_t*>(context))) PassOn(signal, info, context);
}

// A thread's alternate signal stack, ours. As large as a thread's own by default: a handler of the program's may run on
// it that asked for the alternate stack and has set none. Pages are touched only as deep as handlers go.
constexpr std::size_t kSignalStackBytes = std::size_t{8} << 20;

/// At the end of a thread.
void RemoveSignalStack(void* memory) {
  stack_t current{};
  if (sigaltstack(nullptr, &current) == 0 && current.ss_sp == memory) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  munmap(memory, kSignalStackBytes);
  t_has_signal_stack = false;
}

/// Gives the thread an alternate signal stack, unless it has one.
void ProvideSignalStack() {
  if (t_has_signal_stack) return;
  stack_t current{};
  if (sigaltstack(nullptr, &current) == 0 && (current.ss_flags & SS_DISABLE) == 0) return;
  void* const memory = mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, kSignalStackBytes, MADV_NOHUGEPAGE);
  stack_t ours{};
  ours.ss_sp = memory;
  ours.ss_size = kSignalStackBytes;
  if (sigaltstack(&ours, nullptr) != 0) {
    munmap(memory, kSignalStackBytes);
    return;
  }
  static const ThreadEnd end(RemoveSignalStack);
  end.Watch(memory);
  t_has_signal_stack = true;
}

sigset_t FaultSignals() {
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  return faults;
}

}  // namespace

void InstallFaultHandler() {
  static std::mutex mutex;
  struct sigaction current {};
  if (sigaction(SIGSEGV, nullptr, &current) == 0 && current.sa_sigaction == &Handle) return;
  const std::lock_guard lock(mutex);
  struct sigaction action {};
  action.sa_sigaction = &Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  const int signals[] = {SIGSEGV, SIGBUS};
  for (int i = 0; i < 2; ++i) {
    if (sigaction(signals[i], nullptr, &current) != 0 || current.sa_sigaction == &Handle) continue;
    g_previous[i].store(new Previous{current, g_previous[i].load()}, std::memory_order_release);
    sigaction(signals[i], &action, nullptr);
  }
}

FaultsArrive::FaultsArrive() {
  if (t_receives_faults) return;
  ProvideSignalStack();
  // The kernel ends a process when a fault's signal is blocked in the thread that faults. The program's threads may
  // have blocked it since the last grid; of ours, nothing but the program's callbacks could.
  const sigset_t faults = FaultSignals();
  if (pthread_sigmask(SIG_UNBLOCK, &faults, &before_) != 0) return;
  if (t_own_thread) t_receives_faults = true;
  else restore_ = sigismember(&before_, SIGSEGV) == 1 || sigismember(&before_, SIGBUS) == 1;
}

FaultsArrive::~FaultsArrive() {
  if (restore_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void TellToLeave(pid_t thread) {
  siginfo_t info{};
  info.si_signo = kLeaveSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = &g_leave;
  syscall(SYS_rt_tgsigqueueinfo, info.si_pid, thread, kLeaveSignal, &info);
}

FaultScope::FaultScope(Worker& worker) { t_worker = &worker; }
FaultScope::~FaultScope() { t_worker = nullptr; }

}  // namespace gridloom::exec
