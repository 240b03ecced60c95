// One question to the broker, as an operator.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "rewriter/support/result.h"
#include "scheduler/protocol/message.h"

namespace gridloom::broker {

/// How long an operator waits for the whole answer.
inline constexpr std::chrono::milliseconds kPatience{10'000};

/// The answer, or what the broker said against it. `socket` empty: the usual one. An error, too, where the whole answer
/// is not there after `patience`, whatever signals come meanwhile.
Result<nlohmann::ordered_json> Ask(const std::string& socket, const protocol::Request& request,
                                   std::chrono::milliseconds patience = kPatience);

}  // namespace gridloom::broker
