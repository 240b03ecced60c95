// The gate in front of the broker's page. Anybody on the machine can connect to a port of the loopback, so that
// connections are few and short here: one thread, places for kConnections in all and for kStrangers of each user who
// has not shown the secret yet, and a time by which a request has to be there whole and its answer be read. Where
// places are scarce the stranger who has waited longest goes, first of the user who has most of them: whoever opens
// connections closes their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "rewriter/support/result.h"
#include "scheduler/daemon/http_request.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

/// What the gate lets through. All calls but OnStart come from the server's thread.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// `wake` says that an answer may be there now; from any thread, also when the server has gone.
  virtual void OnStart(std::function<void()> wake) = 0;
  /// Whether who asks has shown the secret. Others hear 401, whatever they asked for, and are hung up on.
  virtual bool Allowed(const HttpRequest& request) const = 0;
  /// The answer; nothing: it is not there yet, and is asked for again after a wake. `ticket` is 0 the first time, and
  /// whatever the handler makes of it afterwards.
  virtual std::optional<HttpAnswer> Answer(const HttpRequest& request, std::uint64_t* ticket) = 0;
  /// Milliseconds until Answer is worth another try although nobody wakes the server; negative: it is not.
  virtual int AgainMs() const { return -1; }
};

class HttpServer {
 public:
  struct Limits {
    std::size_t connections = 64;  ///< in all
    std::size_t strangers = 8;     ///< of one user, before the secret is shown
    std::size_t accepts = 500;     ///< a second
    std::size_t head_bytes = 8192;
    int request_ms = 5000;          ///< from the connection's beginning until its first request is there
    int idle_ms = 15'000;           ///< until the next one is
    int wait_ms = 2000;             ///< for the handler
    int answer_ms = 10'000;         ///< until the answer is read
    std::uint32_t requests = 1000;  ///< over one connection
  };
  /// Descriptors that a server takes at most.
  static constexpr std::size_t kMostDescriptors = 64 + 4;

  /// Serves a port of 127.0.0.1 until destroyed. `handler` has to outlive it.
  static Result<std::unique_ptr<HttpServer>> Start(std::uint32_t port, HttpHandler& handler, const Limits& limits);
  static Result<std::unique_ptr<HttpServer>> Start(std::uint32_t port, HttpHandler& handler) {
    return Start(port, handler, Limits());
  }
  ~HttpServer();

 private:
  class Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);
  const std::unique_ptr<Loop> loop_;
  std::thread thread_;  ///< of the loop
};

}  // namespace gridloom::broker
