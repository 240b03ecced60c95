#include "sim/timing/live/live_hosts.h"

#include <catch2/catch.hpp>

#include "sim/timing/live/live_streams.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

TEST_CASE("LiveHosts_TheEarliestClock_OfThoseThatNeitherWaitNorAreAway_IsTheHorizon") {
  const LiveOptions options;
  LiveHosts hosts(options);
  CHECK(hosts.Horizon() == kNever);
  const HostId first = hosts.Add(100), second = hosts.Add(200);
  CHECK(hosts.Horizon() == 100);
  hosts.at(first).waiting = 1;
  CHECK(hosts.Horizon() == 200);
  hosts.at(second).away = true;
  CHECK(hosts.Horizon() == kNever);
  hosts.at(first).waiting = 0;
  hosts.SetFinishing();
  CHECK(hosts.Horizon() == kNever);
}

TEST_CASE("LiveHosts_AtOneTime_TheHostWithTheLowerNumberComesFirst") {
  const LiveOptions options;
  LiveHosts hosts(options);
  const HostId first = hosts.Add(100), second = hosts.Add(100);
  CHECK(hosts.Safe(first, 100));
  CHECK_FALSE(hosts.Safe(second, 100));
  CHECK(hosts.Safe(second, 99));
  hosts.at(first).gone = true;
  CHECK(hosts.Safe(second, 500));
}

TEST_CASE("LiveHosts_EndsOfWorks_AreKnownOnceTheyAreSet") {
  std::vector<std::pair<NodeId, Cycle>> told;
  LiveOptions options;
  options.on_node_ended = [&](NodeId node, Cycle end) { told.emplace_back(node, end); };
  LiveHosts hosts(options);
  const HostId host = hosts.Add(0);
  const NodeId node = hosts.AddWork(host, false);
  CHECK(node == NodeOf(host, 1));
  hosts.at(host).running = 1;
  hosts.at(host).waits = 2;
  CHECK_FALSE(hosts.Done(node));
  CHECK_FALSE(hosts.KnownEnd(node));
  hosts.SetEnd(node, 70, 2);
  CHECK(hosts.KnownEnd(node) == Cycle{70});
  CHECK(hosts.at(host).running == 0);
  CHECK(hosts.at(host).waits == 0);
  CHECK(told == std::vector<std::pair<NodeId, Cycle>>{{node, 70}});
  // Of works of hosts that are not there nobody waits for the end.
  CHECK(hosts.End(NodeOf(9, 1)) == 0);
  CHECK_FALSE(hosts.KnownEnd(0));
}

TEST_CASE("LiveHosts_HostThatWasDropped_IsForgottenWithTheLastOfItsWorks") {
  std::vector<HostId> forgotten;
  LiveOptions options;
  options.on_forgotten = [&](HostId host) { forgotten.push_back(host); };
  LiveHosts hosts(options);
  LiveStreams streams;
  const HostId host = hosts.Add(300);
  static_cast<void>(streams.NumberOf(host, 1));
  hosts.at(host).running = 1;
  hosts.Forget(host, streams);
  hosts.at(host).dropped = true;
  hosts.Forget(host, streams);
  CHECK(hosts.Find(host) != nullptr);
  hosts.at(host).running = 0;
  hosts.Forget(host, streams);
  CHECK(hosts.Find(host) == nullptr);
  CHECK(streams.size() == 0);
  CHECK(forgotten == std::vector<HostId>{host});
  CHECK(hosts.end() == 300);
}

TEST_CASE("CostsOf_AnAnswer_TakesAWindowAtLeast") {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.clock.sm_mhz = 1000;
  device.timing.host = {.call_ns = 100, .copy_call_ns = 0, .sync_ns = 0};
  Parameters parameters = Derive(device).value();
  CHECK(CostsOf(parameters).call == 100);
  CHECK(CostsOf(parameters).copy_call == 100);
  CHECK(CostsOf(parameters).answer == parameters.window);
  parameters.device.timing.host = {.call_ns = 100, .copy_call_ns = 250, .sync_ns = 5000};
  CHECK(CostsOf(parameters).copy_call == 250);
  CHECK(CostsOf(parameters).answer == 5000);
}

}  // namespace
}  // namespace gridloom::timing
