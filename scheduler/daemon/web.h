// Metrics and a live page over HTTP, on the loopback alone, for who knows the secret. Its thread sleeps while nobody
// asks; what it shows it asks of the broker's thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/daemon/broker.h"

namespace gridloom::broker {

class Web {
 public:
  /// Serves config().http_port of 127.0.0.1 until destroyed, which has to be before the broker is.
  static Result<std::unique_ptr<Web>> Start(Broker& broker);
  virtual ~Web() = default;
};

/// Broker::State() in Prometheus' text format.
std::string MetricsText(const nlohmann::ordered_json& state);

}  // namespace gridloom::broker
