// Who did what: one line of JSON for each event, appended to a file (docs/broker.md lists the events).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

class Audit {
 public:
  /// An empty path: nothing is kept.
  static Result<Audit> Open(const std::string& path);
  /// Adds time and event to the details; one write, so that lines never mix. What cannot be written is counted.
  void Note(std::string_view event, nlohmann::ordered_json details);
  std::uint64_t lost() const { return lost_; }

 private:
  protocol::Fd file_;
  std::uint64_t lost_ = 0;
};

}  // namespace gridloom::broker
