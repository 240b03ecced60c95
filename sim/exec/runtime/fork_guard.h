// Objects with locks or threads that must survive fork(). Every registered object is told before a fork (take your
// locks), and after it in the parent and in the child. The child has the forking thread only.
#pragma once

#include <mutex>

namespace gridloom::exec {

class ForkAware {
 public:
  virtual void BeforeFork() = 0;
  virtual void AfterForkInParent() = 0;
  virtual void AfterForkInChild() = 0;

 protected:
  ~ForkAware() = default;
};

/// pthread_atfork cannot be undone, so one list per process is kept here; it is empty when no object lives.
void RegisterForkAware(ForkAware* object);
/// Done by the first registration. Handlers that are installed after it are called before it when the process forks:
/// locks that are held while objects are made or used belong to those.
void InstallForkHandlers();
void UnregisterForkAware(ForkAware* object);

/// A mutex that no other thread holds while the process forks, so that the child finds it free and what it guards
/// whole. Who locks A and then B makes B before A.
class ForkSafeMutex final : ForkAware {
 public:
  ForkSafeMutex() { RegisterForkAware(this); }
  ~ForkSafeMutex() { UnregisterForkAware(this); }
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  void BeforeFork() override { mutex_.lock(); }
  void AfterForkInParent() override { mutex_.unlock(); }
  void AfterForkInChild() override { mutex_.unlock(); }  // the child's only thread is the one that has locked it

  std::mutex mutex_;
};

}  // namespace gridloom::exec
