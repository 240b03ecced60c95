#include "sim/exec/runtime/background/after_end.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace gridloom::exec::background {
namespace {

constexpr int kLowestPriority = 19;
/// A tenth of a session's share that nobody lowers. With less a service would not get on while all processors are busy.
constexpr char kSessionPriority[] = "10";
constexpr unsigned kWaitingForEach = 2;
constexpr timespec kLookEvery{0, 100'000'000};

std::vector<int> OpenAll(const std::string& beginning, unsigned count) {
  std::vector<int> files;
  for (unsigned i = 0; i < count; ++i) {
    const std::string path = beginning + std::to_string(i) + ".lock";
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) files.push_back(file);
  }
  return files;
}

}  // namespace

void LowerPriority() {
  setpriority(PRIO_PGRP, 0, kLowestPriority);  // the group is this process alone
  const int file = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  // The kernel takes one such change in a tenth of a second from all users together.
  for (int i = 0; i < 20 && write(file, kSessionPriority, sizeof kSessionPriority - 1) < 0; ++i)
    nanosleep(&kLookEvery, nullptr);
  close(file);
}

PlacesAfterEnd::PlacesAfterEnd(const std::string& directory, unsigned working) {
  if (directory.empty()) return;
  work_ = OpenAll(directory + "/after-end.work.", working);
  wait_ = OpenAll(directory + "/after-end.wait.", working * kWaitingForEach);
}

PlacesAfterEnd::~PlacesAfterEnd() {
  for (const std::vector<int>* files : {&work_, &wait_})
    for (const int file : *files) close(file);
}

bool PlacesAfterEnd::TakeOne(const std::vector<int>& files, int& taken) {
  for (const int file : files) {
    // Where files cannot be locked at all nobody counts.
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    taken = file;
    return true;
  }
  return false;
}

PlacesAfterEnd::Place PlacesAfterEnd::Take() {
  if (work_.empty() || TakeOne(work_, working_)) return Place::kWork;
  return TakeOne(wait_, waiting_) ? Place::kWait : Place::kNone;
}

void PlacesAfterEnd::WaitForWork() {
  while (!TakeOne(work_, working_)) nanosleep(&kLookEvery, nullptr);
  if (waiting_ >= 0) flock(waiting_, LOCK_UN);
}

}  // namespace gridloom::exec::background
