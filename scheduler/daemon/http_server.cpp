#include "scheduler/daemon/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <list>
#include <map>
#include <vector>

#include "scheduler/daemon/peer_user.h"

namespace gridloom::broker {
namespace {

using protocol::Fd;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Connection {
  enum class State : std::uint8_t { kReading, kWaiting, kWriting, kOver };
  Fd fd;
  std::optional<uid_t> user;
  State state = State::kReading;
  Clock::time_point deadline;
  std::string in;
  HttpRequest request;
  bool known = false;  ///< has shown the secret
  bool keep_alive = false;
  std::uint32_t requests = 0;
  std::uint64_t ticket = 0;
  std::string head;
  std::shared_ptr<const std::string> body;
  std::size_t sent = 0;  ///< of head and body
};

Result<Fd> ListenOn(std::uint32_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  // Not SO_REUSEPORT: another process could listen on the same port, and take requests with the secret in them.
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(fd.get(), 512) != 0) {
    return Error{"cannot serve HTTP on port " + std::to_string(port) + " of 127.0.0.1"};
  }
  return fd;
}

}  // namespace

class HttpServer::Loop {
 public:
  Loop(Fd listener, Fd wake, HttpHandler& handler, const Limits& limits)
      : listener_(std::move(listener)),
        wake_(std::make_shared<Fd>(std::move(wake))),
        handler_(handler),
        limits_(limits) {}

  void Run();
  void Stop() {
    stop_ = true;
    Wake(*wake_);
  }
  const std::shared_ptr<Fd>& wake() const { return wake_; }
  static void Wake(const Fd& fd) {
    const std::uint64_t one = 1;
    static_cast<void>(!write(fd.get(), &one, sizeof one));
  }

 private:
  using State = Connection::State;
  bool Accepts(Clock::time_point now);
  int TimeoutMs(Clock::time_point now) const;
  void Accept(Clock::time_point now);
  bool MakeRoom(const std::optional<uid_t>& user);
  Connection* OldestStranger(const std::optional<uid_t>& user);
  void Serve(Connection& connection, Clock::time_point now);
  bool Step(Connection& connection, Clock::time_point now);
  void Read(Connection& connection);
  bool Parse(Connection& connection, Clock::time_point now);
  void Say(Connection& connection, const HttpAnswer& answer, bool keep_alive, Clock::time_point now);
  bool Write(Connection& connection, Clock::time_point now);

  const Fd listener_;
  const std::shared_ptr<Fd> wake_;  ///< shared with those who may call late
  HttpHandler& handler_;
  const Limits limits_;
  const PeerUsers users_;
  std::atomic<bool> stop_{false};
  std::list<Connection> connections_;  ///< in the order in which they came
  Clock::time_point no_accept_until_{}, second_{};
  std::size_t accepted_ = 0;  ///< in this second
};

void HttpServer::Loop::Run() {
  static_cast<void>(setpriority(PRIO_PROCESS, 0, 10));  // of this thread: the broker's goes first
  std::vector<pollfd> watched;
  while (!stop_) {
    Clock::time_point now = Clock::now();
    watched.assign({{wake_->get(), POLLIN, 0}, {Accepts(now) ? listener_.get() : -1, POLLIN, 0}});
    for (const Connection& connection : connections_) {
      const short events = connection.state == State::kReading   ? POLLIN
                           : connection.state == State::kWriting ? POLLOUT
                                                                 : 0;
      watched.push_back({connection.fd.get(), events, 0});
    }
    if (poll(watched.data(), watched.size(), TimeoutMs(now)) < 0 && errno != EINTR) return;
    now = Clock::now();
    std::uint64_t count = 0;
    if ((watched[0].revents & POLLIN) != 0) static_cast<void>(!read(wake_->get(), &count, sizeof count));
    std::size_t place = 2;
    for (Connection& connection : connections_) {
      const short happened = watched[place++].revents;
      if ((happened & (POLLERR | POLLHUP | POLLNVAL)) != 0) connection.state = State::kOver;
      if (happened != 0 || connection.state == State::kWaiting) Serve(connection, now);
      if (now < connection.deadline) continue;
      if (connection.state != State::kWaiting) {
        connection.state = State::kOver;
      } else {
        Say(connection, HttpProblem(503), false, now);
        Serve(connection, now);
      }
    }
    connections_.remove_if([](const Connection& connection) { return connection.state == State::kOver; });
    if ((watched[1].revents & POLLIN) != 0) Accept(now);
  }
}

/// Whether connections are taken now; if not, they wait in the kernel's queue.
bool HttpServer::Loop::Accepts(Clock::time_point now) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    accepted_ = 0;
  }
  if (accepted_ >= limits_.accepts) no_accept_until_ = second_ + std::chrono::seconds(1);
  return now >= no_accept_until_;
}

int HttpServer::Loop::TimeoutMs(Clock::time_point now) const {
  std::optional<Clock::time_point> next;
  const auto consider = [&next](Clock::time_point at) { next = std::min(next.value_or(at), at); };
  bool waits = false;
  for (const Connection& connection : connections_) {
    consider(connection.deadline);
    waits = waits || connection.state == State::kWaiting;
  }
  if (no_accept_until_ > now) consider(no_accept_until_);
  if (const int again = handler_.AgainMs(); waits && again >= 0) consider(now + milliseconds(again));
  if (!next) return -1;
  return static_cast<int>(std::max<std::int64_t>(std::chrono::ceil<milliseconds>(*next - now).count(), 0));
}

void HttpServer::Loop::Accept(Clock::time_point now) {
  for (int i = 0; i < 16 && accepted_ < limits_.accepts; ++i) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // Without descriptors the connection stays in the queue, and poll would answer at once.
      if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) no_accept_until_ = now + milliseconds(100);
      break;
    }
    ++accepted_;
    const auto user = users_.UserOf(fd.get());
    if (!MakeRoom(user)) continue;
    Connection& connection = connections_.emplace_back();
    connection.fd = std::move(fd);
    connection.user = user;
    connection.deadline = now + milliseconds(limits_.request_ms);
    Serve(connection, now);  // mostly the request is there already
  }
  connections_.remove_if([](const Connection& connection) { return connection.state == State::kOver; });
}

/// The connection of a user's strangers that came first.
Connection* HttpServer::Loop::OldestStranger(const std::optional<uid_t>& user) {
  const auto at = std::ranges::find_if(connections_, [&](const Connection& c) { return !c.known && c.user == user; });
  return at != connections_.end() ? &*at : nullptr;
}

/// Closes what has to give way to one more connection of this user; false when nothing does.
bool HttpServer::Loop::MakeRoom(const std::optional<uid_t>& user) {
  connections_.remove_if([](const Connection& connection) { return connection.state == State::kOver; });
  std::map<std::optional<uid_t>, std::size_t> strangers;
  for (const Connection& connection : connections_) strangers[connection.user] += connection.known ? 0 : 1;
  Connection* goes = nullptr;
  if (strangers[user] >= limits_.strangers) {
    goes = OldestStranger(user);
  } else if (connections_.size() >= limits_.connections) {
    const auto most = std::ranges::max_element(strangers, {}, [](const auto& entry) { return entry.second; });
    goes = OldestStranger(most->first);
    if (goes == nullptr) {  // all are known: one who asks nothing now
      const auto idle = std::ranges::find(connections_, State::kReading, &Connection::state);
      if (idle == connections_.end()) return false;
      goes = &*idle;
    }
  }
  if (goes != nullptr) connections_.remove_if([goes](const Connection& connection) { return &connection == goes; });
  return true;
}

/// Goes on with a connection until something has to be waited for.
void HttpServer::Loop::Serve(Connection& connection, Clock::time_point now) {
  if (connection.state == State::kReading) Read(connection);
  while (Step(connection, now)) {
  }
}

bool HttpServer::Loop::Step(Connection& connection, Clock::time_point now) {
  switch (connection.state) {
    case State::kReading: return Parse(connection, now);
    case State::kWaiting: {
      const auto answer = handler_.Answer(connection.request, &connection.ticket);
      if (answer) Say(connection, *answer, connection.keep_alive, now);
      return answer.has_value();
    }
    case State::kWriting: return Write(connection, now);
    case State::kOver: return false;
  }
  return false;
}

/// No more than one request may be long: what comes beyond it waits in the kernel.
void HttpServer::Loop::Read(Connection& connection) {
  char part[4096];
  while (connection.in.size() <= limits_.head_bytes) {
    const ssize_t size = recv(connection.fd.get(), part, sizeof part, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) {  // it says no more; what it has said whole is answered
      if (size < 0 || connection.in.find("\r\n\r\n") == std::string::npos) connection.state = State::kOver;
      return;
    }
    connection.in.append(part, static_cast<std::size_t>(size));
  }
}

/// False when no request is there whole.
bool HttpServer::Loop::Parse(Connection& connection, Clock::time_point now) {
  const std::size_t end = connection.in.find("\r\n\r\n");
  if (end == std::string::npos && connection.in.size() <= limits_.head_bytes) return false;
  int wrong = end > limits_.head_bytes
                  ? 431
                  : ParseHttpRequest(std::string_view(connection.in).substr(0, end), &connection.request);
  // What is wrong with a request is told to anybody; what there is here is not.
  if (wrong == 0 && !handler_.Allowed(connection.request)) wrong = 401;
  if (wrong != 0) {
    Say(connection, HttpProblem(wrong), false, now);
    return true;
  }
  connection.in.erase(0, end + 4);
  connection.known = true;
  connection.keep_alive = connection.request.keep_alive && ++connection.requests < limits_.requests;
  connection.ticket = 0;
  connection.state = State::kWaiting;
  connection.deadline = now + milliseconds(limits_.wait_ms);
  return true;
}

void HttpServer::Loop::Say(Connection& connection, const HttpAnswer& answer, bool keep_alive, Clock::time_point now) {
  connection.keep_alive = keep_alive;
  connection.head = HttpHead(answer, keep_alive);
  connection.body = answer.body;
  connection.sent = 0;
  connection.state = State::kWriting;
  connection.deadline = now + milliseconds(limits_.answer_ms);
}

/// False when the other side does not take more now, or nothing follows.
bool HttpServer::Loop::Write(Connection& connection, Clock::time_point now) {
  const std::size_t all = connection.head.size() + connection.body->size();
  while (connection.sent < all) {
    std::string_view rest = connection.sent < connection.head.size() ? connection.head : *connection.body;
    rest.remove_prefix(connection.sent < connection.head.size() ? connection.sent
                                                                : connection.sent - connection.head.size());
    const ssize_t size = send(connection.fd.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (size < 0) {
      connection.state = State::kOver;
      return false;
    }
    connection.sent += static_cast<std::size_t>(size);
  }
  connection.body.reset();
  connection.state = connection.keep_alive ? State::kReading : State::kOver;
  connection.deadline = now + milliseconds(limits_.idle_ms);
  return connection.state == State::kReading && !connection.in.empty();
}

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)), thread_([this] { loop_->Run(); }) {}

HttpServer::~HttpServer() {
  loop_->Stop();
  thread_.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(std::uint32_t port, HttpHandler& handler, const Limits& limits) {
  GL_TRY(listener, ListenOn(port));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Error{"no descriptors are left"};
  auto loop = std::make_unique<Loop>(std::move(listener), std::move(wake), handler, limits);
  handler.OnStart([descriptor = loop->wake()] { Loop::Wake(*descriptor); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(loop)));
}

}  // namespace gridloom::broker
