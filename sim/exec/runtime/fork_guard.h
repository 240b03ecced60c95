// Objects with locks or threads that must survive fork(). Every registered object is told before a fork (take your locks),
// and after it in the parent and in the child. The child has the forking thread only.
#pragma once

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
void UnregisterForkAware(ForkAware* object);

}  // namespace gridloom::exec
