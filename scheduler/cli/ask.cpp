#include "scheduler/cli/ask.h"

#include "rewriter/support/json.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {
namespace {

constexpr unsigned kPatienceMs = 10'000;

}  // namespace

Result<nlohmann::ordered_json> Ask(const std::string& path, const protocol::Request& request) {
  const std::string where = path.empty() ? protocol::DefaultSocketPath() : path;
  GL_TRY(socket, protocol::Connect(where, kPatienceMs));
  if (!protocol::Send(socket.get(), Format(request), true)) return Error{"the broker on " + where + " does not take the question"};
  std::string answer;
  while (true) {
    GL_TRY(received, protocol::Receive(socket.get(), true));
    if (received.state != protocol::Received::State::kMessage) return Error{"the broker on " + where + " does not answer"};
    GL_TRY(message, protocol::ParseMessage(received.bytes));
    const auto* const text = std::get_if<protocol::Text>(&message);
    if (text == nullptr) return Error{"the broker on " + where + " answers something else"};
    answer += text->text;
    if (text->type != protocol::MessageType::kReply || text->code != 0) return Error{answer};
    if (!text->more) break;
  }
  auto json = ParseJson<nlohmann::ordered_json>(answer);
  if (json.is_discarded()) return Error{"the broker on " + where + " answers something else"};
  return json;
}

}  // namespace gridloom::broker
