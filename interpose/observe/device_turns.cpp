#include "interpose/observe/device_turns.h"

namespace gridloom::session {

void DeviceTurns::Begin() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !alone_ && waiting_ == 0; });
  ++running_;
}

void DeviceTurns::End() {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

bool DeviceTurns::BeginAlone() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  const auto patience = in_vain_ ? std::chrono::milliseconds(0) : patience_;
  const bool alone = changed_.wait_for(lock, patience, [&] { return !alone_ && running_ == 0; });
  --waiting_;
  in_vain_ = !alone;
  if (alone) alone_ = true;
  changed_.notify_all();
  return alone;
}

void DeviceTurns::EndAlone() {
  const std::lock_guard lock(mutex_);
  alone_ = false;
  changed_.notify_all();
}

}  // namespace gridloom::session
