// What the hosts' threads and the simulation's thread of a live timeline tell each other. With the timeline's lock
// held, but for what is said to need none.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "sim/timing/live/place.h"

namespace gridloom::timing {

class SimulationSignals {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // ---- from hosts
  /// A host has said something. The number of what was said so far.
  std::uint64_t Changed();
  /// A host that could not submit anything can again: the device may not be simulated beyond its time, so the
  /// simulation stops and looks anew at what hosts may still submit.
  void Look();
  /// As Look; the host has not said anything.
  void StopToLook() { look_ = true; }
  /// The simulation ends.
  void End();
  /// Waits until the simulation tells something. False when that took longer than `patience`.
  bool Wait(Lock& lock, std::chrono::milliseconds patience);
  /// Waits until all that hosts have said has its consequences, and `idle` says that nothing is left to do.
  template <typename Idle>
  void WaitUntilReached(Lock& lock, const Idle& idle) {
    told_.wait(lock, [&] { return (idle() && reached_ == version_) || !problem_.empty(); });
  }

  // ---- from the simulation
  /// It looks at what hosts have said: up to that number.
  std::uint64_t BeginLook();
  std::uint64_t version() const { return version_; }
  /// All consequences of what was said up to that number are simulated.
  void SetReached(std::uint64_t version) { reached_ = version; }
  /// Waits until a host has said more than that.
  void WaitForHosts(Lock& lock, std::uint64_t version);
  void TellHosts() { told_.notify_all(); }
  /// Nothing is simulated any more. The first reason stays.
  void Fail(const std::string& why);
  bool failed() const { return !problem_.empty(); }
  /// The host before whose kernel the simulation stands, as that is not decided.
  void SetUndecided(std::optional<HostId> host) { undecided_ = host; }
  std::optional<HostId> undecided() const { return undecided_; }

  // ---- without the lock
  bool ends() const { return end_; }
  bool looks() const { return look_; }
  std::string problem() const { return failed_.load(std::memory_order_acquire) ? problem_ : std::string(); }
  /// Simulated so far.
  Cycle now() const { return now_.load(std::memory_order_relaxed); }
  void SetNow(Cycle now) { now_.store(now, std::memory_order_relaxed); }
  /// The simulation waits for a CTA of the host's, and has it.
  void BeginLoad(HostId host) { loading_.store(host); }
  void EndLoad();
  bool LoadsOf(HostId host) const { return loading_.load() == static_cast<std::int64_t>(host); }
  /// CTAs and works so far.
  std::uint64_t progress() const { return progress_; }
  void AddProgress() { ++progress_; }

 private:
  std::condition_variable said_;  ///< by hosts
  std::condition_variable told_;  ///< by the simulation
  std::uint64_t version_ = 0, reached_ = 0;
  std::optional<HostId> undecided_;
  std::string problem_;  ///< does not change once failed_ is set
  std::atomic<Cycle> now_{0};
  std::atomic<std::int64_t> loading_{-1};  ///< -1: for no CTA
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<bool> end_{false}, look_{false}, failed_{false};
};

}  // namespace gridloom::timing
