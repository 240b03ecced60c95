#include "scheduler/cli/ask.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "rewriter/support/json.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether there is something to read before `end`.
bool Readable(int fd, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd wanted{fd, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/// A conversation that is over even where a child, forked meanwhile, has its descriptor, too.
struct Conversation {
  explicit Conversation(protocol::Fd fd) : socket(std::move(fd)) {}
  ~Conversation() { shutdown(socket.get(), SHUT_RDWR); }
  Conversation(const Conversation&) = delete;
  const protocol::Fd socket;
};

}  // namespace

Result<nlohmann::ordered_json> Ask(const std::string& path, const protocol::Request& request,
                                   std::chrono::milliseconds patience) {
  const auto end = Clock::now() + patience;
  const std::string where = path.empty() ? protocol::DefaultSocketPath() : path;
  GL_TRY(connected, protocol::Connect(where, static_cast<unsigned>(std::max<std::int64_t>(patience.count(), 1))));
  const Conversation with_broker(std::move(connected));
  const int socket = with_broker.socket.get();
  if (!protocol::Send(socket, Format(request), true))
    return Error{"the broker on " + where + " does not take the question"};
  std::string answer;
  while (true) {
    if (!Readable(socket, end)) return Error{"the broker on " + where + " does not answer"};
    GL_TRY(received, protocol::Receive(socket, false));
    if (received.state == protocol::Received::State::kNothing) continue;
    if (received.state != protocol::Received::State::kMessage)
      return Error{"the broker on " + where + " does not answer"};
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
