// A descriptor kept for when there are no others: given up for a moment, it lets one more thing be opened.
#pragma once

#include <fcntl.h>

#include <cerrno>

#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

class SpareDescriptor {
 public:
  SpareDescriptor() { Keep(); }
  /// Whether a call that failed with this error may succeed with one descriptor more; the spare one is free then.
  bool Help(int error) {
    if ((error != EMFILE && error != ENFILE) || !spare_) return false;
    protocol::Fd gone = std::move(spare_);
    return true;
  }
  /// Takes one again, if there is one.
  void Keep() {
    if (!spare_) spare_ = protocol::Fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }

 private:
  protocol::Fd spare_;
};

}  // namespace gridloom::broker
