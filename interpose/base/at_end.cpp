#include "interpose/base/at_end.h"

#include <mutex>
#include <utility>
#include <vector>

namespace gridloom::session {
namespace {

struct Functions {
  std::mutex mutex;
  std::vector<std::function<void()>> list;
};

/// Never destroyed: it is used after all static destructors.
Functions& TheFunctions() {
  static Functions* const functions = new Functions;
  return *functions;
}

__attribute__((destructor)) void RunThem() { RunAtEnd(); }

}  // namespace

void AtEnd(std::function<void()> function) {
  Functions& functions = TheFunctions();
  const std::lock_guard lock(functions.mutex);
  functions.list.push_back(std::move(function));
}

void RunAtEnd() {
  Functions& functions = TheFunctions();
  for (;;) {
    std::function<void()> function;
    {
      const std::lock_guard lock(functions.mutex);
      if (functions.list.empty()) return;
      function = std::move(functions.list.back());
      functions.list.pop_back();
    }
    function();
  }
}

}  // namespace gridloom::session
