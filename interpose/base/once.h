// An object of the process that is made when it is first asked for and never destroyed: threads of the program use it
// until the very end, and so do exit handlers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

namespace gridloom::session {

template <typename T>
class Once {
 public:
  Once() = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  /// The object; the first call has `make` make it, and others wait meanwhile. Null when `make` made none.
  template <typename Make>
  T* Get(const Make& make) {
    if (!made_.load(std::memory_order_acquire)) [[unlikely]]
      MakeNow(make);
    return object_;
  }

 private:
  /// Apart, so that Get is a few instructions: launches ask several times each.
  template <typename Make>
  [[gnu::noinline, gnu::cold]] void MakeNow(const Make& make) {
    const std::lock_guard lock(mutex_);
    if (made_.load(std::memory_order_relaxed)) return;
    std::unique_ptr<T> object = make();
    object_ = object.release();
    made_.store(true, std::memory_order_release);
  }

  std::atomic<bool> made_{false};
  std::mutex mutex_;
  T* object_ = nullptr;
};

}  // namespace gridloom::session
