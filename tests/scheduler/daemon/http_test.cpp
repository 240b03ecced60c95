// The gate in front of the broker's page: requests of all kinds, and clients that are slow, many, or another user's.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "scheduler/daemon/http_server.h"
#include "tests/scheduler/daemon/broker_fixture.h"
#include "tests/scheduler/daemon/loopback.h"

namespace gridloom::broker {
namespace {

using protocol::Fd;
using Clock = std::chrono::steady_clock;

TEST_CASE("ParseHttpRequest_TakesWhatThePageNeeds_AndNothingElse") {
  HttpRequest request;
  CHECK(ParseHttpRequest(
            "GET /state?a=b&token=x%41+%zz&token=%C3%A4 HTTP/1.1\r\nhost: x\r\nAUTHORIZATION:  Bearer abc \r\n",
            &request) == 0);
  CHECK(request.path == "/state");
  CHECK(request.token == "\xc3\xa4");
  CHECK(request.authorization == "Bearer abc");
  CHECK(request.keep_alive);
  CHECK(ParseHttpRequest("GET /?token=x%41+%zz%4 HTTP/1.0", &request) == 0);
  CHECK(request.token == "xA %zz%4");
  CHECK(request.authorization.empty());
  CHECK_FALSE(request.keep_alive);
  CHECK(ParseHttpRequest("GET / HTTP/1.1\r\nConnection: Close", &request) == 0);
  CHECK_FALSE(request.keep_alive);
  CHECK_FALSE(request.token);
  struct Row {
    std::string_view head;
    int status;
  };
  for (const auto& [head, status] : {
           Row{"", 400},
           Row{"GET", 400},
           Row{"GET /", 400},
           Row{"GET / HTTP/2.0", 505},
           Row{"GET / HTTP/1.1 ", 505},
           Row{"POST / HTTP/1.1", 405},
           Row{"get / HTTP/1.1", 405},
           Row{"GET http://localhost/ HTTP/1.1", 400},
           Row{"GET  / HTTP/1.1", 400},
           Row{std::string_view("GET /\0 HTTP/1.1", 15), 400},
           Row{"GET / HTTP/1.1\r\nno colon", 400},
           Row{"GET / HTTP/1.1\r\n: empty", 400},
           Row{"GET / HTTP/1.1\r\nname : blank before", 400},
           Row{"GET / HTTP/1.1\r\na: b\r\n folded", 400},
           Row{"GET / HTTP/1.1\r\nauthorization: a\r\nAuthorization: b", 400},
           Row{"GET / HTTP/1.1\r\nContent-Length: 5", 413},
           Row{"GET / HTTP/1.1\r\ntransfer-encoding: chunked", 413},
       }) {
    INFO(head);
    CHECK(ParseHttpRequest(head, &request) == status);
  }
}

/// Lets in who says `Bearer yes`; /large is more than a socket takes at once, /never is not answered.
struct Handler final : HttpHandler {
  const std::shared_ptr<const std::string> large = std::make_shared<const std::string>(std::size_t{32} << 20, 'x');
  std::atomic<int> asked{0};

  void OnStart(std::function<void()>) override {}
  bool Allowed(const HttpRequest& request) const override { return request.authorization == "Bearer yes"; }
  std::optional<HttpAnswer> Answer(const HttpRequest& request, std::uint64_t*) override {
    ++asked;
    if (request.path == "/never") return std::nullopt;
    return HttpAnswer{.body = request.path == "/large" ? large : std::make_shared<const std::string>("hello")};
  }
};

struct Served {
  Handler handler;
  const unsigned port = FreePort();
  std::unique_ptr<HttpServer> server;

  explicit Served(const HttpServer::Limits& limits = {}) {
    auto started = HttpServer::Start(port, handler, limits);
    REQUIRE(started.ok());
    server = std::move(started).value();
  }
  Fd Connect() const {
    auto fd = ConnectTo(htonl(INADDR_LOOPBACK), port);
    REQUIRE(fd);
    return std::move(*fd);
  }
};

std::string Request(const std::string& path, const char* connection = "close", const char* secret = "yes") {
  return "GET " + path + " HTTP/1.1\r\nAuthorization: Bearer " + secret + "\r\nConnection: " + connection + "\r\n\r\n";
}

void SendText(const Fd& fd, const std::string& text) {
  static_cast<void>(!send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL));
}

bool HungUpOn(const Fd& fd) {
  char byte = 0;
  const ssize_t size = recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return size == 0 || (size < 0 && errno != EAGAIN);
}

TEST_CASE("HttpServer_AnswersOverOneConnectionAgainAndAgain_UpToItsLimit") {
  Served s({.requests = 3});
  const Fd fd = s.Connect();
  SendText(fd, Request("/a", "keep-alive") + Request("/b", "keep-alive") + Request("/c", "keep-alive") +
                   Request("/d", "keep-alive"));
  const std::string answers = ReadAll(fd);
  std::size_t hellos = 0, kept = 0;
  for (std::size_t at = 0; (at = answers.find("\r\n\r\nhello", at)) != std::string::npos; ++at) ++hellos;
  for (std::size_t at = 0; (at = answers.find("keep-alive", at)) != std::string::npos; ++at) ++kept;
  CHECK(hellos == 3);
  CHECK(kept == 2);
}

TEST_CASE("HttpServer_RequestThatComesByteByByte_HasToBeThereInTime") {
  Served s({.request_ms = 300});
  const Fd patient = s.Connect(), hurried = s.Connect();
  const auto began = Clock::now();
  const std::string request = Request("/" + std::string(2000, 'a'));
  bool over = false;
  for (std::size_t i = 0; i < request.size() && !over; ++i) {
    SendText(patient, request.substr(i, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    over = HungUpOn(patient);
  }
  CHECK(over);
  CHECK(Clock::now() - began < std::chrono::seconds(3));
  CHECK(s.handler.asked == 0);
  const Fd third = s.Connect();
  SendText(third, Request("/").substr(0, 20));
  SendText(third, Request("/").substr(20));
  CHECK(ReadAll(third).ends_with("hello"));
}

TEST_CASE("HttpServer_ConnectionsThatAskNothingMore_AreClosed") {
  Served s({.idle_ms = 200});
  const Fd fd = s.Connect();
  SendText(fd, Request("/", "keep-alive") + "GET /more");
  const auto began = Clock::now();
  CHECK(ReadAll(fd).ends_with("hello"));  // and the end of the connection
  CHECK(Clock::now() - began < std::chrono::seconds(3));
}

TEST_CASE("HttpServer_AnswerThatNobodyReads_IsGivenUp") {
  Served s({.answer_ms = 300});
  const Fd deaf = s.Connect();
  SendText(deaf, Request("/large"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  CHECK(ReadAll(deaf).size() < s.handler.large->size());
  Served patient;
  const Fd reader = patient.Connect();
  SendText(reader, Request("/large"));
  CHECK(ReadAll(reader).size() > patient.handler.large->size());
}

TEST_CASE("HttpServer_AnswerThatDoesNotCome_IsSaidNotToCome") {
  Served s({.wait_ms = 100});
  const Fd fd = s.Connect();
  SendText(fd, Request("/never"));
  CHECK(StatusOf(ReadAll(fd)) == 503);
}

TEST_CASE("HttpServer_HeadWithoutEnd_IsNotRead") {
  Served s;
  const Fd fd = s.Connect();
  for (int i = 0; i < 100; ++i) SendText(fd, std::string(1000, 'x'));
  CHECK(StatusOf(ReadAll(fd)) != 200);
  CHECK(s.handler.asked == 0);
}

TEST_CASE("HttpServer_WhoHasShownTheSecret_IsNotPushedOutByStrangers") {
  Served s;
  const Fd known = s.Connect();
  SendText(known, Request("/", "keep-alive"));
  char part[1000];
  REQUIRE(recv(known.get(), part, sizeof part, 0) > 0);
  std::vector<Fd> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(s.Connect());
    if (i % 2 == 0) SendText(strangers.back(), Request("/", "keep-alive", "no"));
  }
  SendText(known, Request("/"));
  CHECK(ReadAll(known).ends_with("hello"));
}

TEST_CASE("HttpServer_FloodOfConnections_IsTakenSlowly") {
  Served s({.accepts = 20});
  std::vector<Fd> flood;
  for (int i = 0; i < 60; ++i) flood.push_back(s.Connect());  // the kernel takes them into its queue
  const auto began = Clock::now();
  SendText(flood.back(), Request("/"));
  CHECK(ReadAll(flood.back()).ends_with("hello"));
  CHECK(Clock::now() - began > std::chrono::milliseconds(900));  // its turn is in the third second
}

TEST_CASE("HttpServer_StrangersOfAnotherUser_PushOutTheirOwnAlone") {
  if (geteuid() != 0) {
    WARN("only root can connect as another user");
    return;
  }
  Served s;
  const Fd early = s.Connect();  // silent, and the first: who goes by age alone goes
  int done[2], go_on[2];
  REQUIRE((pipe(done) == 0 && pipe(go_on) == 0));
  const pid_t child = fork();
  if (child == 0) {
    int opened = 0;
    if (setgid(23456) == 0 && setuid(23456) == 0) {
      for (int i = 0; i < 100; ++i) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        const sockaddr_in address = Address(htonl(INADDR_LOOPBACK), s.port);
        opened += connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 1 : 0;
      }
    }
    static_cast<void>(!write(done[1], &opened, sizeof opened));
    char byte = 0;
    static_cast<void>(!read(go_on[0], &byte, 1));
    _exit(0);
  }
  int opened = 0;
  REQUIRE(read(done[0], &opened, sizeof opened) == sizeof opened);
  CHECK(opened == 100);
  SendText(early, Request("/"));
  CHECK(ReadAll(early).ends_with("hello"));
  static_cast<void>(!write(go_on[1], "x", 1));
  REQUIRE(waitpid(child, nullptr, 0) == child);
  for (const int fd : {done[0], done[1], go_on[0], go_on[1]}) close(fd);
}

}  // namespace
}  // namespace gridloom::broker
