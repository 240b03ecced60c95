// Metrics and the live page, asked over a plain socket: by who knows the secret, by who does not, and by who speaks no HTTP.
#include "scheduler/daemon/web.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <optional>

#include "scheduler/protocol/socket.h"
#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom::broker {
namespace {

using protocol::Fd;

constexpr const char* kSecret = "a secret of some length";

sockaddr_in Address(in_addr_t host, unsigned port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A port that nobody listens on now.
unsigned FreePort() {
  const Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Address(htonl(INADDR_LOOPBACK), 0);
  REQUIRE(bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  REQUIRE(getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

std::optional<Fd> ConnectTo(in_addr_t host, unsigned port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{10, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const sockaddr_in address = Address(host, port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return std::nullopt;
  return fd;
}

/// What comes back for any bytes, up to the end of the connection.
std::string Exchange(unsigned port, const std::string& bytes) {
  auto fd = ConnectTo(htonl(INADDR_LOOPBACK), port);
  REQUIRE(fd);
  static_cast<void>(!send(fd->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  std::string answer;
  char part[4096];
  while (true) {
    const ssize_t size = recv(fd->get(), part, sizeof part, 0);
    if (size <= 0) return answer;
    answer.append(part, static_cast<std::size_t>(size));
  }
}

std::string Get(unsigned port, const std::string& path, const std::string& headers = "") {
  return Exchange(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n");
}

const std::string kBearer = std::string("Authorization: Bearer ") + kSecret + "\r\n";

int StatusOf(const std::string& answer) { return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0; }
std::string BodyOf(const std::string& answer) {
  const auto at = answer.find("\r\n\r\n");
  return at != std::string::npos ? answer.substr(at + 4) : "";
}

/// A broker with a page.
struct WebFixture : BrokerFixture {
  WebFixture() {
    config.http_port = FreePort();
    config.http_token = kSecret;
    Start();
    auto made = Web::Start(broker());
    REQUIRE(made.ok());
    web = std::move(made).value();
  }
  ~WebFixture() { web.reset(); }  // before the broker
  unsigned port() const { return config.http_port; }
  std::unique_ptr<Web> web;
};

TEST_CASE("Metrics_AfterALaunch_CountIt") {
  WebFixture f;
  const auto client = f.Join("alice");
  CHECK(RunLaunch(*client, 20) == protocol::Verdict::kGranted);
  REQUIRE(f.Eventually([&] { return f.TenantState("alice")["launches"] == 1; }));
  const std::string answer = Get(f.port(), "/metrics", kBearer);
  CHECK(StatusOf(answer) == 200);
  const std::string text = BodyOf(answer);
  CHECK(text.find("# TYPE gridloom_tenant_launches_total counter\n") != std::string::npos);
  CHECK(text.find("gridloom_tenant_launches_total{tenant=\"alice\"} 1\n") != std::string::npos);
  CHECK(text.find("gridloom_tenant_ctas_total{tenant=\"alice\"} 20\n") != std::string::npos);
  CHECK(text.find("gridloom_tenant_processes{tenant=\"alice\"} 1\n") != std::string::npos);
}

TEST_CASE("StateAndPage_WithTheSecret_AreServed") {
  WebFixture f;
  const auto client = f.Join("alice");
  const auto state = nlohmann::json::parse(BodyOf(Get(f.port(), "/state", kBearer)), nullptr, false);
  REQUIRE(state.is_object());
  CHECK(state["policy"] == "fair");
  CHECK(state["tenants"][0]["name"] == "alice");
  const std::string page = Get(f.port(), "/?token=a%20secret%20of%20some%20length");
  CHECK(StatusOf(page) == 200);
  CHECK(BodyOf(page).starts_with("<!doctype html>"));
  CHECK(page.find(kSecret) == std::string::npos);  // the page repeats no secret
  CHECK(page.find("Cache-Control: no-store") != std::string::npos);
}

TEST_CASE("Requests_WithoutTheSecret_SeeNothing") {
  WebFixture f;
  const auto client = f.Join("alice");
  const std::string secret = kSecret;
  for (const std::string path : {"/", "/state", "/metrics", "/?token=", "/state?token=wrong", "/metrics?token=a"}) {
    INFO(path);
    const std::string answer = Get(f.port(), path);
    CHECK(StatusOf(answer) == 401);
    CHECK(answer.find("alice") == std::string::npos);
  }
  const std::string bearer = "Bearer ";
  for (const std::string& given : {bearer, std::string("Bearer"), std::string(), secret, bearer + secret.substr(1), bearer + secret + "x",
                                   bearer + "b" + secret.substr(1), std::string("Basic YTpi")}) {
    INFO(given);
    CHECK(StatusOf(Get(f.port(), "/state", "Authorization: " + given + "\r\n")) == 401);
  }
  // A wrong one in the address is wrong, whatever stands in the header.
  CHECK(StatusOf(Get(f.port(), "/state?token=wrong", kBearer)) == 401);
  CHECK(StatusOf(Get(f.port(), "/nothing", kBearer)) == 404);
}

TEST_CASE("Requests_ThatAreHostile_HarmNobody") {
  WebFixture f;
  const auto client = f.Join("alice");
  const std::string zeros(1000, '\0');
  const std::string hostile[] = {
      "",
      "\r\n\r\n",
      "GET\r\n\r\n",
      zeros,
      "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n",
      "GET /state HTTP/1.1\r\n" + std::string(100'000, 'h') + ": x\r\n\r\n",
      "POST /state HTTP/1.1\r\n" + kBearer + "Connection: close\r\nContent-Length: 99999999999\r\n\r\nx",
      "POST /state HTTP/1.1\r\n" + kBearer + "Connection: close\r\nContent-Length: -1\r\n\r\n",
      "DELETE /state HTTP/1.1\r\n" + kBearer + "Connection: close\r\n\r\n",
      "GET /../../etc/passwd HTTP/1.1\r\n" + kBearer + "Connection: close\r\n\r\n",
      "GET /state?token=%00%ff%zz HTTP/1.1\r\nConnection: close\r\n\r\n",
  };
  for (const std::string& bytes : hostile) {
    auto fd = ConnectTo(htonl(INADDR_LOOPBACK), f.port());
    REQUIRE(fd);
    static_cast<void>(!send(fd->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    shutdown(fd->get(), SHUT_WR);
    std::string answer;
    char part[4096];
    for (ssize_t size = 0; (size = recv(fd->get(), part, sizeof part, 0)) > 0;) answer.append(part, static_cast<std::size_t>(size));
    INFO(bytes.substr(0, 60));
    CHECK(StatusOf(answer) != 200);
    CHECK(answer.find("alice") == std::string::npos);
  }
  CHECK(StatusOf(Get(f.port(), "/metrics", kBearer)) == 200);
  CHECK(RunLaunch(*client, 8) == protocol::Verdict::kGranted);
}

TEST_CASE("Connections_ThatSayNothing_DoNotKeepTenantsWaiting") {
  WebFixture f;
  const auto client = f.Join("alice");
  std::vector<Fd> silent;
  for (int i = 0; i < 8; ++i) {
    auto fd = ConnectTo(htonl(INADDR_LOOPBACK), f.port());
    REQUIRE(fd);
    silent.push_back(std::move(*fd));
  }
  for (int i = 0; i < 50; ++i) CHECK(RunLaunch(*client, 8) == protocol::Verdict::kGranted);
  silent.clear();
  CHECK(StatusOf(Get(f.port(), "/metrics", kBearer)) == 200);
}

TEST_CASE("Page_IsServedOnTheLoopbackAlone") {
  WebFixture f;
  REQUIRE(ConnectTo(htonl(INADDR_LOOPBACK), f.port()));
  ifaddrs* all = nullptr;
  REQUIRE(getifaddrs(&all) == 0);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const in_addr_t host = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
    if (host != htonl(INADDR_LOOPBACK)) CHECK_FALSE(ConnectTo(host, f.port()));
  }
  freeifaddrs(all);
  // 127.0.0.2 is this machine, too: who listens everywhere answers there.
  CHECK_FALSE(ConnectTo(htonl(INADDR_LOOPBACK + 1), f.port()));
}

TEST_CASE("Page_OnAPortThatIsTaken_IsAnError") {
  WebFixture f;
  CHECK_FALSE(Web::Start(f.broker()).ok());
}

TEST_CASE("Page_IsOffUnlessAsked_AndNeverWithoutASecret") {
  CHECK(DaemonConfig().http_port == 0);
  BrokerFixture f;
  f.config.http_port = FreePort();
  f.Start();
  CHECK_FALSE(Web::Start(f.broker()).ok());
  CHECK_FALSE(ConnectTo(htonl(INADDR_LOOPBACK), f.config.http_port));
}

}  // namespace
}  // namespace gridloom::broker
