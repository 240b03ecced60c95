// What tenants and operators get of a broker that is treated well.
#include "scheduler/daemon/broker.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom::broker {
namespace {

using protocol::Verdict;

TEST_CASE("Launch_LargerThanTheDevice_ComesInSlicesAndIsAccounted") {
  BrokerFixture f;
  f.Start();
  const auto client = f.Join("alice");
  CHECK(client->welcome().tenant == "alice");
  CHECK(client->welcome().device == "small");
  std::uint64_t slices = 0;
  CHECK(RunLaunch(*client, 20, &slices) == Verdict::kGranted);
  CHECK(slices == 3);  // 8 CTAs have room
  REQUIRE(f.Eventually([&] { return f.TenantState("alice")["launches"] == 1; }));
  CHECK(f.TenantState("alice")["ctas"] == 20);
}

TEST_CASE("Accounts_OfARestartedBroker_GoOn") {
  BrokerFixture f;
  f.Start();
  CHECK(RunLaunch(*f.Join("alice"), 5) == Verdict::kGranted);
  REQUIRE(f.Eventually([&] { return f.TenantState("alice")["launches"] == 1; }));
  f.Stop();
  f.Start();
  CHECK(RunLaunch(*f.Join("alice"), 6) == Verdict::kGranted);
  REQUIRE(f.Eventually([&] { return f.TenantState("alice")["launches"] == 2; }));
  CHECK(f.TenantState("alice")["ctas"] == 11);
}

TEST_CASE("Reserve_MemoryOfAllProcesses_KeepsToTheTenantsLimit") {
  BrokerFixture f;
  Limits limits;
  limits.memory_bytes = 1000;
  f.config.tenants.push_back({.name = "alice", .uid = {}, .token = {}, .limits = limits});
  f.Start();
  const auto first = f.Join("alice"), second = f.Join("alice"), other = f.Join("bob");
  CHECK(first->Reserve(600));
  CHECK_FALSE(second->Reserve(500));
  CHECK(second->Reserve(400));
  CHECK(other->Reserve(100'000));
  std::uint64_t limit = 0, used = 0;
  CHECK(second->MemoryInfo(&limit, &used));
  CHECK(limit == 1000);
  CHECK(used == 1000);
  CHECK(first->Reserve(100));  // gives 500 back
  CHECK(second->Reserve(900));
  CHECK_FALSE(other->Reserve(2 << 20));  // more than the device has
}

TEST_CASE("Memory_OfAProcessThatEnds_IsTheTenantsAgain") {
  BrokerFixture f;
  f.Start();
  auto first = f.Join("alice");
  const auto second = f.Join("alice");
  CHECK(first->Reserve(1 << 20));
  CHECK_FALSE(second->Reserve(1));
  first.reset();
  CHECK(f.Eventually([&] { return second->Reserve(1 << 20); }));
}

TEST_CASE("Policy_ChangedLive_IsInForce") {
  BrokerFixture f;
  f.Start();
  const auto client = f.Join();
  CHECK(f.State()["policy"] == "fair");
  for (const char* name : {"serial", "leftover", "priority", "fair"}) {
    REQUIRE(f.Ask({.verb = protocol::Verb::kPolicy, .target = name}));
    CHECK(f.State()["policy"] == name);
    CHECK(RunLaunch(*client, 30) == Verdict::kGranted);
  }
}

TEST_CASE("Limits_ChangedLive_SurviveARestart_UntilTheConfigurationChanges") {
  BrokerFixture f;
  Limits limits;
  limits.scheduling.weight = 2;
  f.config.tenants.push_back({.name = "alice", .uid = {}, .token = {}, .limits = limits});
  f.Start();
  static_cast<void>(f.Join("bob"));  // whom the configuration does not know
  for (const char* name : {"alice", "bob"}) {
    REQUIRE(f.Ask({.verb = protocol::Verb::kLimits,
                   .target = name,
                   .fields = protocol::kFieldWeight | protocol::kFieldCap,
                   .weight = 5,
                   .cap = 0.25}));
  }
  f.Stop();
  f.Start();
  static_cast<void>(f.Join("alice"));
  static_cast<void>(f.Join("bob"));
  CHECK(f.TenantState("alice")["limits"]["weight"] == 5);
  CHECK(f.TenantState("alice")["limits"]["cap"] == 0.25);
  CHECK(f.TenantState("bob")["limits"]["weight"] == 5);
  f.Stop();
  f.config.tenants[0].limits.scheduling.weight = 3;  // whoever edits the file means it
  f.Start();
  static_cast<void>(f.Join("alice"));
  CHECK(f.TenantState("alice")["limits"]["weight"] == 3);
  CHECK(f.TenantState("alice")["limits"]["cap"] == 1);
}

TEST_CASE("ManyThreads_OfOneProcess_AllGetTheirGrants") {
  BrokerFixture f;
  f.Start();
  const auto client = f.Join();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) good += RunLaunch(*client, 10) == Verdict::kGranted ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 800);
  CHECK(f.Eventually([&] { return f.State()["tenants"][0]["launches"] == 800; }));
}

TEST_CASE("Weights_OfTenantsThatWaitForEachLaunch_GiveThemTheirShares") {
  BrokerFixture f;
  for (const double weight : {3.0, 1.0}) {
    Limits limits;
    limits.scheduling.weight = weight;
    f.config.tenants.push_back({.name = weight == 3 ? "three" : "one", .uid = {}, .token = {}, .limits = limits});
  }
  f.config.fair_wait_us = 20'000;  // this machine may have other things to do
  f.Start();
  const auto three = f.Join("three"), one = f.Join("one");
  std::atomic<bool> stop{false};
  const auto loop = [&](protocol::Client& client) {
    while (!stop) {
      protocol::Client::Ticket ticket;
      std::uint64_t granted = 0;
      if (client.Announce(LaunchOf(8, false), &ticket) != Verdict::kGranted ||
          client.Wait(ticket, 0, &granted) != Verdict::kGranted)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // as long as the device is full
      client.End(ticket, 8, false);
    }
  };
  std::thread first([&] { loop(*three); }), second([&] { loop(*one); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  stop = true;
  first.join();
  second.join();
  const double had = f.TenantState("three")["device_seconds"], other = f.TenantState("one")["device_seconds"];
  CHECK(had / (had + other) == Approx(0.75).margin(0.05));
}

TEST_CASE("Idle_BrokerWithSessions_DoesNotWake") {
  BrokerFixture f;
  f.Start();
  const auto first = f.Join(), second = f.Join();
  CHECK(RunLaunch(*first, 10) == Verdict::kGranted);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // the accounts are written once more
  clockid_t clock{};
  // The broker's thread is the only one that could burn time: the test sleeps.
  REQUIRE(clock_getcpuclockid(0, &clock) == 0);
  timespec before{}, after{};
  clock_gettime(clock, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  clock_gettime(clock, &after);
  const double used =
      static_cast<double>(after.tv_sec - before.tv_sec) + static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9;
  CHECK(used < 0.05);
}

}  // namespace
}  // namespace gridloom::broker
