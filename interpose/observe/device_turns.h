// Who works on the device while launches are undone there: any number of works together, or one alone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gridloom::session {

class DeviceTurns {
 public:
  /// How long one waits to be alone.
  explicit DeviceTurns(std::chrono::milliseconds patience) : patience_(patience) {}

  /// Returns when nobody is alone on the device, and nobody waits to be.
  void Begin();
  void End();
  /// False when others do not come to an end: they may wait for what comes behind. From then on, until it has been
  /// alone again, nobody waits.
  bool BeginAlone();
  void EndAlone();

 private:
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned running_ = 0, waiting_ = 0;
  bool alone_ = false, in_vain_ = false;
};

}  // namespace gridloom::session
