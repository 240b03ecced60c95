// Where the broker listens. One broker at a path: a lock beside the socket is held as long as it lives, so that two
// that start at once do not replace each other's sockets, and one that ends removes its own alone.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/daemon/spare_descriptor.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

class Listener {
 public:
  /// An error where another broker listens.
  static Result<std::unique_ptr<Listener>> Open(const std::string& path, mode_t mode);
  ~Listener();

  int fd() const { return socket_.get(); }
  struct Accepted {
    enum class State : std::uint8_t {
      kConnection,
      kRefused,    ///< there was no descriptor for it, and it has been told so
      kNothing,    ///< nobody waits
      kExhausted,  ///< somebody waits, and there is nothing to answer with: asking again at once would be the same
    };
    State state = State::kNothing;
    protocol::Fd socket;
  };
  Accepted Accept();

 private:
  Listener(std::string path, protocol::Fd lock, protocol::Fd socket);

  const std::string path_;
  const protocol::Fd lock_, socket_;
  struct stat made_ {};  ///< the socket's file
  SpareDescriptor spare_;
};

}  // namespace gridloom::broker
