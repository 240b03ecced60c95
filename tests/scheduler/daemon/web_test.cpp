// Metrics and the live page, asked over a plain socket: by who knows the secret, by who does not, and by who speaks no
// HTTP.
#include "scheduler/daemon/web.h"

#include <ifaddrs.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>

#include "tests/scheduler/daemon/broker_fixture.h"
#include "tests/scheduler/daemon/loopback.h"

namespace gridloom::broker {
namespace {

using protocol::Fd;

constexpr const char* kSecret = "a secret of some length";

std::string Get(unsigned port, const std::string& path, const std::string& headers = "") {
  return Exchange(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n");
}

const std::string kBearer = std::string("Authorization: Bearer ") + kSecret + "\r\n";

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

TEST_CASE("Metrics_OfSlowdowns_AreThoseOfTenantsOfWhomTheyAreKnown") {
  WebFixture f;
  const auto alice = f.Join("alice"), bob = f.Join("bob"), carol = f.Join("carol");
  StateView view{.broker = f.State(), .tenants = {}, .sessions = {}};
  view.broker["simulated"] = {{"now_seconds", 0.5}};
  view.tenants.resize(3);
  view.tenants[0].name = "alice";
  view.tenants[0].time = {.alone = 1, .shared = 2};
  view.tenants[1].name = "bob";
  view.tenants[1].time = {.alone = 1, .shared = 4};
  view.tenants[2].name = "carol";
  const auto state = ToJson(view);
  CHECK(state["simulated"]["stp"] == 0.75);
  CHECK(state["simulated"]["antt"] == 3);
  CHECK(state["simulated"]["fairness"] == 0.5);
  CHECK(state["tenants"][1]["slowdown"] == 4);
  CHECK_FALSE(state["tenants"][2].contains("slowdown"));
  const std::string text = MetricsText(state);
  for (const char* line :
       {"gridloom_simulated_seconds 0.5\n", "# TYPE gridloom_stp gauge\ngridloom_stp 0.75\n", "\ngridloom_antt 3.0\n",
        "\ngridloom_fairness 0.5\n", "gridloom_tenant_slowdown{tenant=\"bob\"} 4.0\n",
        "gridloom_tenant_turnaround_seconds_total{tenant=\"alice\"} 2.0\n",
        "gridloom_tenant_alone_seconds_total{tenant=\"alice\"} 1.0\n"}) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
  CHECK(text.find("slowdown{tenant=\"carol\"}") == std::string::npos);
  // Nobody of whom it is known.
  view.tenants.resize(0);
  CHECK_FALSE(ToJson(view)["simulated"].contains("stp"));
  CHECK(MetricsText(ToJson(view)).find("gridloom_stp") == std::string::npos);
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
  for (const std::string& given : {bearer, std::string("Bearer"), std::string(), secret, bearer + secret.substr(1),
                                   bearer + secret + "x", bearer + "b" + secret.substr(1), std::string("Basic YTpi")}) {
    INFO(given);
    CHECK(StatusOf(Get(f.port(), "/state", "Authorization: " + given + "\r\n")) == 401);
  }
  // A wrong one in the address is wrong, whatever stands in the header.
  CHECK(StatusOf(Get(f.port(), "/state?token=wrong", kBearer)) == 401);
  CHECK(StatusOf(Get(f.port(), "/nothing", kBearer)) == 404);
  CHECK(StatusOf(Get(f.port(), "/nothing")) == 401);  // not even what there is not
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
    const std::string answer = ReadAll(*fd);
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

TEST_CASE("Connections_OfStrangers_KeepNeitherThePageNorTenantsWaiting") {
  WebFixture f;
  std::vector<Fd> silent;
  for (int i = 0; i < 300; ++i) {
    auto fd = ConnectTo(htonl(INADDR_LOOPBACK), f.port());
    REQUIRE(fd);
    if (i % 2 == 0) static_cast<void>(!send(fd->get(), "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL));
    silent.push_back(std::move(*fd));
  }
  const auto began = std::chrono::steady_clock::now();
  CHECK(StatusOf(Get(f.port(), "/metrics", kBearer)) == 200);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
  CHECK(RunLaunch(*f.Join("alice"), 20) == protocol::Verdict::kGranted);
  // All but a few were hung up on: that is what they cost the broker of its descriptors.
  CHECK(f.Eventually([&] {
    return std::ranges::count_if(silent, [](const Fd& fd) {
             char byte = 0;
             const ssize_t size = recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
             return size == 0 || (size < 0 && errno == ECONNRESET);
           }) >= 292;
  }));
}

TEST_CASE("State_ForManyWhoAskAtOnce_IsWholeForEach") {
  WebFixture f;
  const auto client = f.Join("alice");
  std::vector<Fd> clients;
  const std::string request = "GET /state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + kBearer + "\r\n";
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::move(*ConnectTo(htonl(INADDR_LOOPBACK), f.port())));
    REQUIRE(send(clients.back().get(), request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size()));
  }
  for (const Fd& fd : clients) {
    const std::string answer = ReadAll(fd);
    CHECK(StatusOf(answer) == 200);
    CHECK(nlohmann::json::parse(BodyOf(answer), nullptr, false)["tenants"][0]["name"] == "alice");
  }
}

TEST_CASE("Secret_WithBytesBeyondAscii_OpensThePage") {
  BrokerFixture f;
  f.config.http_port = FreePort();
  f.config.http_token = "gr\xc3\xbc\xc3\x9f \xff g\xc3\xb6tt";
  f.Start();
  auto web = Web::Start(f.broker());
  REQUIRE(web.ok());
  CHECK(StatusOf(Get(f.config.http_port, "/state", "Authorization: Bearer " + f.config.http_token + "\r\n")) == 200);
  CHECK(StatusOf(Get(f.config.http_port, "/?token=gr%C3%BC%c3%9f+%FF%20g%C3%B6tt")) == 200);
  CHECK(StatusOf(Get(f.config.http_port, "/?token=gr%C3%BC%c3%9f+%FE%20g%C3%B6tt")) == 401);
  web->reset();
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
