// One question to the broker, as an operator.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/protocol/message.h"

namespace gridloom::broker {

/// The answer, or what the broker said against it. `socket` empty: the usual one.
Result<nlohmann::ordered_json> Ask(const std::string& socket, const protocol::Request& request);

}  // namespace gridloom::broker
