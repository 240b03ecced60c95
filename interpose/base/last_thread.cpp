#include "interpose/base/last_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "rewriter/support/own_thread.h"

namespace gridloom::session {
namespace {

constexpr auto kMainLook = std::chrono::milliseconds(100), kOthersLook = std::chrono::milliseconds(20);

std::atomic<bool (*)()> g_work_left{nullptr};
std::atomic<bool> g_watching{false};
std::atomic<bool> g_main_noted{false};  ///< the main thread tells of its end itself

bool IsMain() { return syscall(SYS_gettid) == getpid(); }

/// The main thread stays listed when it has ended, as a zombie.
bool HasEnded(pid_t thread) {
  char path[48], text[256];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  const ssize_t bytes = read(file, text, sizeof text);
  close(file);
  const std::string_view stat(text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::size_t name_end = stat.rfind(") ");  // the name may hold anything
  return name_end == std::string_view::npos || stat.substr(name_end + 2).starts_with('Z') ||
         stat.substr(name_end + 2).starts_with('X');
}

/// True, too, where that cannot be told.
bool ProgramsThreadLives() {
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return true;
  bool lives = false;
  while (const dirent* const entry = readdir(threads)) {
    const pid_t thread = std::atoi(entry->d_name);
    lives = lives || (thread != 0 && !IsOwnThread(thread) && !HasEnded(thread));
  }
  closedir(threads);
  return lives;
}

bool IsNeeded() {
  const auto work_left = g_work_left.load();
  return ProgramsThreadLives() || (work_left != nullptr && work_left());
}

/// `signals`: the mask of the program's thread that came here, which its exit handlers get.
void Main(sigset_t signals) {
  BecomeOwnThread();
  while (!HasEnded(getpid())) std::this_thread::sleep_for(kMainLook);
  // A thread that begins another one may end between two entries of the list.
  for (int quiet = 0; quiet < 2; quiet = IsNeeded() ? 0 : quiet + 1) std::this_thread::sleep_for(kOthersLook);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  std::exit(0);  // as the C library ends a process with its last thread
}

}  // namespace

void SetWorkLeft(bool (*function)()) { g_work_left.store(function); }

void NoteThread() {
  if (IsMain()) g_main_noted.store(true);
}

void ThreadEnds() {
  if (!IsMain() && g_main_noted.load()) return;
  if (access("/proc/self/task", X_OK) != 0 || g_watching.exchange(true)) return;
  sigset_t signals;
  pthread_sigmask(SIG_SETMASK, nullptr, &signals);
  const OwnThreadSignals blocked;
  try {
    std::thread(Main, signals).detach();
  } catch (...) {  // no thread to be had: the process stays
    g_watching.store(false);
  }
}

void ForgetLastThread(bool noted) {
  g_watching.store(false);
  g_main_noted.store(noted);
}

}  // namespace gridloom::session
