// What operators ask of a broker of many tenants, and operators that do not read what they are told.
#include <catch2/catch.hpp>

#include "scheduler/cli/ask.h"
#include "scheduler/cli/listing.h"
#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom::broker {
namespace {

using protocol::Verdict;

/// A broker whose configuration names so many tenants.
struct ManyTenants : BrokerFixture {
  explicit ManyTenants(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      config.tenants.push_back(
          {.name = "a-tenant-with-a-name-of-usual-length-" + std::to_string(i), .uid = {}, .token = {}, .limits = {}});
    }
    Start();
  }
  const std::string& name(std::size_t i) const { return config.tenants[i].name; }
};

TEST_CASE("Listing_OfSimulatedTime_HasSlowdowns_AndDashesWhereTheyAreNotKnown") {
  BrokerFixture f;
  f.Start();
  const auto alice = f.Join("alice"), bob = f.Join("bob");
  auto state = f.State();
  CHECK(Listing(state).find("SLOWDOWN") == std::string::npos);  // nothing is simulated
  state["simulated"] = {{"now_seconds", 0.5}, {"problem", nullptr}};
  CHECK(Listing(state).find("STP -, ANTT -, fairness -\n") != std::string::npos);
  state["simulated"].update({{"stp", 0.75}, {"antt", 1.5}, {"fairness", 1}});
  state["tenants"][0]["slowdown"] = 1.375;
  for (const std::string& text : {Listing(state), Picture(state, state, 0, 0)}) {
    CHECK(text.find("STP 0.750, ANTT 1.500, fairness 1.000\n") != std::string::npos);
    CHECK(text.find("  1.38") != std::string::npos);
    CHECK(text.find("  0.000         -") != std::string::npos);
  }
}

TEST_CASE("Ps_OfManyTenants_ComesWhole") {
  for (const unsigned count : {1000u, 4096u}) {
    INFO(count);
    ManyTenants f(count);
    const auto state = Ask(f.config.socket, protocol::Request{});
    if (!state.ok()) FAIL(state.error().message);
    REQUIRE((*state)["tenants"].size() == count);
    CHECK((*state)["tenants"][count - 1]["name"] == f.name(count - 1));
  }
}

TEST_CASE("Ps_OfAnOperatorThatReadsSlowly_ComesWhole_AndKeepsNobodyWaiting") {
  ManyTenants f(4096);
  const auto client = f.Join(f.name(0));
  const auto slow = protocol::Connect(f.config.socket, 5000);
  REQUIRE(slow.ok());
  for (int i = 0; i < 3; ++i)
    REQUIRE(protocol::Send(slow->get(), Format(protocol::Request{}), true));  // the second waits for the first
  for (int answers = 0; answers < 3; ++answers) {
    std::string text;
    for (bool more = true; more;) {
      const auto received = protocol::Receive(slow->get(), true);
      REQUIRE(received.ok());
      const auto message = protocol::ParseMessage(received->bytes);
      REQUIRE(message.ok());
      const auto& part = std::get<protocol::Text>(*message);
      text += part.text;
      more = part.more;
      if (text.size() % 5 == 0) CHECK(RunLaunch(*client, 20) == Verdict::kGranted);
    }
    const auto state = nlohmann::json::parse(text, nullptr, false);
    REQUIRE(state.is_object());
    CHECK(state["tenants"].size() == 4096);
  }
}

/// What ps says of the tenant's session; null when it has none.
nlohmann::ordered_json SessionOf(BrokerFixture& f, const std::string& tenant) {
  const auto state = f.State();
  for (const auto& session : state["sessions"]) {
    if (session["tenant"] == tenant) return session;
  }
  return nullptr;
}

TEST_CASE("Kill_WhatRunsIsThereAndPays_UntilItHasEnded") {
  BrokerFixture f;
  f.Start();
  const auto client = f.Join("victim");
  protocol::Client::Ticket runs, waits, late;
  auto launch = LaunchOf(4, false);
  launch.stream = 1;
  REQUIRE(client->Announce(launch, &runs) == Verdict::kGranted);
  std::uint64_t granted = 0;
  REQUIRE(client->Wait(runs, 0, &granted) == Verdict::kGranted);
  REQUIRE(client->Announce(launch, &waits) == Verdict::kGranted);
  const protocol::Request kill{.verb = protocol::Verb::kKill, .target = "victim"};
  for (int times = 0; times < 2; ++times) CHECK(f.Ask(kill));  // the second one finds it, too
  CHECK(client->Wait(waits, 0, &granted) == Verdict::kEnded);
  CHECK(f.Eventually([&] { return client->ended(); }));
  CHECK(client->Announce(launch, &late) == Verdict::kEnded);
  const auto session = SessionOf(f, "victim");
  REQUIRE(session.is_object());
  CHECK(session["ending"] == true);
  CHECK(session["kernel"] == "kernel");
  CHECK(Listing(f.State()).find("kernel (ends)") != std::string::npos);
  const double had = f.TenantState("victim")["device_seconds"];
  CHECK(f.TenantState("victim")["device_seconds"] > had);  // nothing has happened meanwhile
  const auto another = f.Join("another");
  CHECK(RunLaunch(*another, 1) == Verdict::kGranted);
  const auto state = f.State();
  const double busy = state["device_busy_seconds"];
  double of_tenants = 0, of_sessions = 0;
  for (const auto& tenant : state["tenants"]) of_tenants += tenant["device_seconds"].get<double>();
  for (const auto& one : state["sessions"]) of_sessions += one["device_seconds"].get<double>();
  CHECK(busy > 0);
  CHECK(of_tenants == Approx(busy));
  CHECK(of_sessions == Approx(busy));
  client->End(waits, 0, true);
  CHECK(SessionOf(f, "victim").is_object());
  client->End(runs, 4, true);
  CHECK(f.Eventually([&] { return SessionOf(f, "victim").is_null(); }));
  CHECK(f.TenantState("victim")["in_flight"] == 0);
  CHECK_FALSE(f.Ask(kill));
}

TEST_CASE("Kill_OfASessionOfWhichNothingRuns_EndsItAtOnce") {
  BrokerFixture f;
  f.Start();
  const auto client = f.Join("victim");
  CHECK(f.Ask({.verb = protocol::Verb::kKill, .target = "victim"}));
  CHECK(f.Eventually([&] { return SessionOf(f, "victim").is_null() && client->ended(); }));
}

TEST_CASE("Operator_ThatDoesNotRead_LosesItsConnectionInTime") {
  ManyTenants f(4096);
  f.Stop();
  f.config.hello_timeout_s = 1;
  f.Start();
  const auto deaf = protocol::Connect(f.config.socket, 5000);
  REQUIRE(deaf.ok());
  REQUIRE(protocol::Send(deaf->get(), Format(protocol::Request{}), true));
  CHECK(f.Eventually([&] { return f.AuditText().find("it did not read its answer") != std::string::npos; }));
  const auto client = f.Join(f.name(0));
  CHECK(RunLaunch(*client, 20) == Verdict::kGranted);
  // It hung up, and left while something waits: nothing turns in circles and nobody else notices.
  {
    const auto gone = protocol::Connect(f.config.socket, 5000);
    REQUIRE(gone.ok());
    REQUIRE(protocol::Send(gone->get(), Format(protocol::Request{}), true));
  }
  CHECK(RunLaunch(*client, 20) == Verdict::kGranted);
  CHECK(Ask(f.config.socket, protocol::Request{}).ok());
}

}  // namespace
}  // namespace gridloom::broker
