#include "sim/timing/live/simulation_signals.h"

namespace gridloom::timing {

std::uint64_t SimulationSignals::Changed() {
  said_.notify_one();
  return ++version_;
}

void SimulationSignals::Look() {
  look_ = true;
  Changed();
}

void SimulationSignals::End() {
  end_ = true;
  said_.notify_all();
}

bool SimulationSignals::Wait(Lock& lock, std::chrono::milliseconds patience) {
  return told_.wait_for(lock, patience) != std::cv_status::timeout;
}

std::uint64_t SimulationSignals::BeginLook() {
  look_ = false;
  return version_;
}

void SimulationSignals::WaitForHosts(Lock& lock, std::uint64_t version) {
  said_.wait(lock, [&] { return end_ || look_ || version != version_; });
}

void SimulationSignals::Fail(const std::string& why) {
  if (problem_.empty()) problem_ = why;
  failed_.store(true, std::memory_order_release);
}

void SimulationSignals::EndLoad() {
  ++progress_;
  loading_.store(-1);
}

}  // namespace gridloom::timing
