// What both halves of launch_speed share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

constexpr unsigned kLaunchThreads = 128;

struct LaunchSizes {
  unsigned launches = 32768, streams = 32, runs = 9;
};

class LaunchClock {
 public:
  double us() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// Microseconds a launch of each run: until the last call returned, and until all launches had ended.
class LaunchTimes {
 public:
  void Add(double enqueue, double whole) {
    enqueue_.insert(std::ranges::upper_bound(enqueue_, enqueue), enqueue);
    whole_.insert(std::ranges::upper_bound(whole_, whole), whole);
  }
  double enqueue() const { return enqueue_[enqueue_.size() / 2]; }
  double whole() const { return whole_[whole_.size() / 2]; }
  double best() const { return whole_.front(); }
  double worst() const { return whole_.back(); }

 private:
  std::vector<double> enqueue_, whole_;
};

/// Each launch added 1 to each number of its stream. Ends the program if one was lost.
inline void CheckLaunches(const LaunchSizes& sizes, unsigned stream, const std::vector<float>& got) {
  const unsigned a_run = sizes.launches / sizes.streams + (stream < sizes.launches % sizes.streams);
  const auto wanted = static_cast<float>(std::size_t{a_run} * (sizes.runs + 1));  // below 2^24
  if (std::ranges::all_of(got, [&](float number) { return number == wanted; })) return;
  std::fprintf(stderr, "launch_speed: stream %u has %g for %g\n", stream, static_cast<double>(got[0]),
               static_cast<double>(wanted));
  std::exit(1);
}

/// The same on the first OpenCL CPU device; false with a reason when there is none.
bool MeasureOpenCl(const LaunchSizes& sizes, LaunchTimes& times, std::string& reason);

}  // namespace bench
