#include "sim/exec/runtime/background/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "sim/exec/runtime/background/messages.h"

namespace gridloom::exec::background {
namespace {

struct Plan {
  char* const* words;
  char* const* environment;
  int socket;
  bool failed;
};

/// In the grandchild, which shares the program's memory until it is another program: system calls only.
int Become(void* context) {
  auto& plan = *static_cast<Plan*>(context);
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < NSIG; ++number)
    signal(number, SIG_DFL);  // this process's own table: CLONE_SIGHAND is not set
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setsid();
  const int socket = plan.socket == kServiceSocket ? plan.socket : dup2(plan.socket, kServiceSocket);
  const int nothing = open("/dev/null", O_RDWR);
  bool ok = socket >= 0 && nothing >= 0 && fcntl(kServiceSocket, F_SETFD, 0) == 0 && chdir("/") == 0;
  for (int fd = 0; fd < 3 && ok; ++fd) ok = dup2(nothing, fd) == fd;
  ok = ok && syscall(SYS_close_range, static_cast<unsigned>(kServiceSocket + 1), ~0u, 0u) == 0;
  if (ok) execve(plan.words[0], plan.words, plan.environment);
  plan.failed = true;
  _exit(127);
}

constexpr std::size_t kStackBytes = 64u << 10;

/// In the child: it only makes another one, which nobody is the parent of when it has ended.
int MakeOther(void* context) {
  auto* const stack = static_cast<char*>(context) - kStackBytes;
  auto* const plan = *reinterpret_cast<Plan**>(context);
  if (clone(&Become, stack, CLONE_VM | CLONE_VFORK, plan) < 0) plan->failed = true;
  _exit(0);
}

}  // namespace

bool SpawnDetached(const std::vector<std::string>& words, int socket) {
#if defined(__SANITIZE_THREAD__)
  // Its tables of threads, handlers and files, which clone, signal and open change, are in the memory that the
  // processes share: what it says of the program after that is wrong.
  return false;
#endif
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  std::vector<std::string> kept;
  for (const char* const name : {"PATH", "HOME"})
    if (const char* const value = std::getenv(name)) kept.push_back(std::string(name) + "=" + value);
  std::vector<char*> environment;
  for (std::string& one : kept) environment.push_back(one.data());
  environment.push_back(nullptr);
  Plan plan{pointers.data(), environment.data(), socket, false};
  // Two stacks, the plan's address at the top of the upper one.
  const auto memory = std::make_unique<char[]>(2 * kStackBytes + 64);
  char* const top = memory.get() + (2 * kStackBytes + 48) / 16 * 16 - 16;
  *reinterpret_cast<Plan**>(top) = &plan;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of the program runs in a process that shares its memory
  // Without a signal at its end (0), the child is none that wait() of the program would find.
  const int child = clone(&MakeOther, top - 64, CLONE_VM | CLONE_VFORK, top);
  if (child > 0) waitpid(child, nullptr, __WALL);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return child > 0 && !plan.failed;
}

}  // namespace gridloom::exec::background
