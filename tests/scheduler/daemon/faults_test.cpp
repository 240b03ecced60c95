// What a broker makes of tenants that die, hang or lie, and tenants of a broker that goes: each fault is made here.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <future>
#include <mutex>

#include "scheduler/protocol/segment.h"
#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom::broker {
namespace {

using protocol::RawRecord;
using protocol::RecordKind;
using protocol::Verdict;

/// A tenant that writes into its ring whatever it likes.
struct Liar {
  protocol::Fd socket, doorbell;
  std::optional<protocol::Segment> segment;

  explicit Liar(const BrokerFixture& f) {
    auto connected = protocol::Connect(f.config.socket, 10'000);
    REQUIRE(connected.ok());
    socket = std::move(connected).value();
    REQUIRE(protocol::Send(socket.get(), Format(protocol::Hello{"liar", "", "liar"}), true));
    auto received = protocol::Receive(socket.get(), true);
    REQUIRE(received.ok());
    REQUIRE(received->fds.size() == 2);
    auto attached = protocol::Segment::Attach(received->fds[0].Release());
    REQUIRE(attached.ok());
    segment.emplace(std::move(attached).value());
    doorbell = std::move(received->fds[1]);
  }

  void Ring() const {
    const std::uint64_t one = 1;
    REQUIRE(write(doorbell.get(), &one, sizeof one) == sizeof one);
  }
  /// As it is, sequence included, in the next place of the ring.
  void Push(const RawRecord& record) const {
    protocol::SegmentLayout& layout = segment->layout();
    const std::uint64_t at = layout.pushed;
    std::memcpy(&layout.ring[at % protocol::kRingRecords], &record, sizeof record);
    layout.pushed = at + 1;
    Ring();
  }
  static RawRecord Launch(std::uint64_t sequence, std::uint32_t slot, std::uint64_t number) {
    RawRecord record;
    record.sequence = sequence;
    record.kind = static_cast<std::uint32_t>(RecordKind::kLaunch);
    record.slot = slot;
    record.launch = number;
    record.value = 100;
    record.threads_per_cta = 32;
    record.flags = protocol::kDivisible;
    return record;
  }
  static RawRecord Of(RecordKind kind, std::uint64_t sequence, std::uint64_t number, std::uint64_t value) {
    RawRecord record;
    record.sequence = sequence;
    record.kind = static_cast<std::uint32_t>(kind);
    record.launch = number;
    record.value = value;
    return record;
  }
  /// The broker says goodbye, then hangs up.
  bool Dropped() const {
    for (int i = 0; i < 3; ++i) {
      const auto received = protocol::Receive(socket.get(), true);
      if (!received.ok() || received->state == protocol::Received::State::kClosed) return true;
      if (received->state == protocol::Received::State::kNothing) return false;
    }
    return false;
  }
};

TEST_CASE("Liars_AreDroppedAlone") {
  BrokerFixture f;
  f.Start();
  const auto honest = f.Join("honest");
  const auto lie = [&](const char* what, auto tell) {
    INFO(what);
    const Liar liar(f);
    tell(liar);
    CHECK(liar.Dropped());
    CHECK(RunLaunch(*honest, 20) == Verdict::kGranted);
  };
  lie("a replayed record", [](const Liar& l) {
    l.Push(Liar::Launch(0, 0, 1));
    l.Push(Liar::Launch(0, 1, 2));
  });
  lie("a launch that is announced twice", [](const Liar& l) {
    l.Push(Liar::Launch(0, 0, 1));
    l.Push(Liar::Launch(1, 1, 1));
  });
  lie("a slot that is taken", [](const Liar& l) {
    l.Push(Liar::Launch(0, 0, 1));
    l.Push(Liar::Launch(1, 0, 2));
  });
  lie("more run than granted", [](const Liar& l) {
    l.Push(Liar::Launch(0, 0, 1));
    l.Push(Liar::Of(RecordKind::kProgress, 1, 1, 100));
  });
  lie("progress of no launch", [](const Liar& l) { l.Push(Liar::Of(RecordKind::kProgress, 0, 1, 1)); });
  lie("the end of no launch", [](const Liar& l) { l.Push(Liar::Of(RecordKind::kEnd, 0, 7, 1)); });
  lie("a record of no kind", [](const Liar& l) { l.Push(Liar::Of(static_cast<RecordKind>(77), 0, 1, 1)); });
  lie("a count of records beyond the ring", [](const Liar& l) {
    l.segment->layout().pushed = 1u << 30;
    l.Ring();
  });
  lie("a count of records that goes back", [](const Liar& l) {
    l.Push(Liar::Launch(0, 0, 1));
    while (l.segment->layout().taken != 1) std::this_thread::yield();
    l.segment->layout().pushed = 0;
    l.Ring();
  });
  lie("a message that is none", [](const Liar& l) {
    const std::byte junk[100]{};
    REQUIRE(protocol::Send(l.socket.get(), junk, true));
  });
  lie("a second hello",
      [](const Liar& l) { REQUIRE(protocol::Send(l.socket.get(), Format(protocol::Hello{}), true)); });
  lie("a message that is too long", [](const Liar& l) {
    const std::vector<std::byte> much(60'000);
    REQUIRE(protocol::Send(l.socket.get(), much, true));
  });
  lie("descriptors", [](const Liar& l) {
    REQUIRE(protocol::Send(l.socket.get(), Format(protocol::Hello{}), true, {0, 1}));
  });
  CHECK(f.State()["dropped_total"] == 13);
  CHECK(f.AuditText().find("\"event\":\"violation\"") != std::string::npos);
}

TEST_CASE("Scribbles_OverTheWholeSegment_HurtNobodyElse") {
  BrokerFixture f;
  f.Start();
  const auto honest = f.Join("honest");
  {
    const Liar liar(f);
    std::memset(static_cast<void*>(&liar.segment->layout()), 0xff, sizeof(protocol::SegmentLayout));
    liar.Ring();
    CHECK(liar.Dropped());
  }
  CHECK(RunLaunch(*honest, 20) == Verdict::kGranted);
}

TEST_CASE("Silence_InsteadOfAHello_IsNotWaitedForLong") {
  BrokerFixture f;
  f.config.hello_timeout_s = 1;
  f.Start();
  const auto mute = protocol::Connect(f.config.socket, 10'000);
  REQUIRE(mute.ok());
  const auto received = protocol::Receive(mute->get(), true);
  CHECK((!received.ok() || received->state == protocol::Received::State::kClosed));
}

TEST_CASE("Silence_OnManyConnections_LeavesPlacesForOthers") {
  BrokerFixture f;
  f.config.hello_timeout_s = 60;
  f.config.most_sessions = 16;
  f.Start();
  std::vector<protocol::Fd> mute;
  for (int i = 0; i < 40; ++i) {
    auto socket = protocol::Connect(f.config.socket, 10'000);
    if (socket.ok()) mute.push_back(std::move(socket).value());
  }
  // All of them were looked at when the last one has its answer: it is refused.
  const auto received = protocol::Receive(mute.back().get(), true);
  CHECK((received.ok() && received->state == protocol::Received::State::kMessage));
  CHECK(f.State()["refused_total"] == 36);
  // Those that hold the four places of who says nothing do not keep them for a minute.
  protocol::Client::Options options;
  options.socket = f.config.socket;
  options.reconnect = false;
  CHECK(f.Eventually([&] { return protocol::Client::Connect(options).ok(); }));
}

TEST_CASE("Slice_ThatTakesTooLong_CostsItsPlace") {
  BrokerFixture f;
  f.config.slice_timeout_s = 1;
  f.Start();
  const Liar hog(f);
  hog.Push(Liar::Launch(0, 0, 1));
  const auto honest = f.Join("honest");
  CHECK(RunLaunch(*honest, 20) == Verdict::kGranted);  // waits for the hog's place
  CHECK(hog.Dropped());
  CHECK(f.AuditText().find("\"event\":\"timeout\"") != std::string::npos);
}

/// A launch of which a liar reports something again and again, under a policy, beside an honest one that wants the
/// whole device.
struct SlowLaunch {
  BrokerFixture broker;
  std::unique_ptr<Liar> liar;
  std::unique_ptr<protocol::Client> honest;
  std::future<protocol::Verdict> honest_launch;
  std::uint64_t records = 0, done = 0;

  explicit SlowLaunch(const char* policy) {
    Limits low, high;
    low.scheduling.cap = 0.1;
    high.scheduling.weight = 100;
    broker.config.policy = policy;
    broker.config.slice_timeout_s = 1;
    broker.config.grant_timeout_s = 2;
    broker.config.tenants = {{.name = "liar", .uid = {}, .token = {}, .limits = low},
                             {.name = "honest", .uid = {}, .token = {}, .limits = high}};
    broker.Start();
    liar = std::make_unique<Liar>(broker);
    RawRecord launch = Liar::Launch(records++, 0, 1);
    launch.value = 1'000'000'000;
    launch.flags = 0;  // it cannot be divided: all of it is one grant
    liar->Push(launch);
    while (liar->segment->layout().mailboxes[0].granted == 0) std::this_thread::yield();
    honest = broker.Join("honest");
    honest_launch = std::async(std::launch::async, [this] { return RunLaunch(*honest, 20); });
  }
  void Report(std::uint64_t more) { liar->Push(Liar::Of(RecordKind::kProgress, records++, 1, done += more)); }
};

/// Seconds until all honest launches have run, with `more` CTAs reported of each liar's launch five times a second.
double SecondsUntilTheHonestOnesRan(std::vector<std::unique_ptr<SlowLaunch>>& all, std::uint64_t more) {
  const auto began = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  const auto ran = [](const auto& one) {
    return one->honest_launch.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  while (!std::ranges::all_of(all, ran) && passed() < 20) {
    for (const auto& one : all) {
      if (!ran(one)) one->Report(more);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return passed();
}

TEST_CASE("Reports_OfNothing_AreNoSignOfLife") {
  std::vector<std::unique_ptr<SlowLaunch>> all;
  all.push_back(std::make_unique<SlowLaunch>("fair"));
  CHECK(SecondsUntilTheHonestOnesRan(all, 0) < 4);  // a slice's second, and one until the broker looks
  CHECK(all[0]->honest_launch.get() == Verdict::kGranted);
  CHECK(all[0]->broker.AuditText().find("a slice took longer than 1 s") != std::string::npos);
}

TEST_CASE("Reports_OfOneCtaNowAndThen_DoNotKeepTheDeviceUnderAnyPolicy") {
  std::vector<std::unique_ptr<SlowLaunch>> all;
  for (const char* policy : {"fair", "leftover", "priority", "serial"})
    all.push_back(std::make_unique<SlowLaunch>(policy));
  CHECK(SecondsUntilTheHonestOnesRan(all, 1) < 6);
  for (const auto& one : all) {
    INFO(one->broker.config.policy);
    CHECK(one->honest_launch.get() == Verdict::kGranted);
    CHECK(one->broker.AuditText().find("a grant had not run after 2 s") != std::string::npos);
  }
}

TEST_CASE("Grants_ThatRunToTheirEnds_MayBeAsManyAsALaunchNeeds") {
  BrokerFixture f;
  f.config.slice_timeout_s = f.config.grant_timeout_s.emplace(1);
  f.Start();
  const auto client = f.Join("slow");
  protocol::Client::Ticket ticket;
  REQUIRE(client->Announce(LaunchOf(80), &ticket) == Verdict::kGranted);
  std::uint64_t granted = 0;
  for (std::uint64_t done = 0; done < 80; done = granted) {  // ten slices of a third of a second each
    REQUIRE(client->Wait(ticket, done, &granted) == Verdict::kGranted);
    std::this_thread::sleep_for(std::chrono::milliseconds(350));
    client->Progress(ticket, granted);
  }
  client->End(ticket, 80, false);
  CHECK(f.Eventually([&] { return f.TenantState("slow")["launches"] == 1; }));
  CHECK(f.State()["dropped_total"] == 0);
}

TEST_CASE("SigkillOfATenant_AtAnyPoint_FreesItsShareAtOnce") {
  BrokerFixture f;
  f.config.slice_timeout_s = 0;
  f.Start();
  const auto honest = f.Join("honest");
  for (int point = 0; point < 6; ++point) {
    INFO("point " << point);
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      // Only calls that a forked child of a threaded program may make, and no Catch.
      auto socket = protocol::Connect(f.config.socket, 10'000);
      if (point >= 1) protocol::Send(socket->get(), Format(protocol::Hello{"victim", "", ""}), true);
      if (point >= 2) {
        auto received = protocol::Receive(socket->get(), true);
        auto segment = protocol::Segment::Attach(received->fds[0].Release());
        protocol::SegmentLayout& layout = segment->layout();
        const std::uint64_t one = 1;
        if (point == 3) layout.ring[0] = Liar::Launch(0, 0, 1);  // a record half-way: written, not counted
        if (point >= 4) {
          layout.ring[0] = Liar::Launch(0, 0, 1);
          layout.pushed = 1;
          static_cast<void>(!write(received->fds[1].get(), &one, sizeof one));
          while (layout.mailboxes[0].granted == 0) usleep(100);
        }
        if (point >= 5) {
          layout.ring[1] = Liar::Of(RecordKind::kProgress, 1, 1, layout.mailboxes[0].granted);
          layout.pushed = 2;
          static_cast<void>(!write(received->fds[1].get(), &one, sizeof one));
          while (layout.mailboxes[0].granted <= 8) usleep(100);
        }
        static_cast<void>(!write(ready[1], &one, 1));
        pause();
      }
      static_cast<void>(!write(ready[1], "x", 1));
      pause();
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    close(ready[0]);
    close(ready[1]);
    CHECK(RunLaunch(*honest, 20) == Verdict::kGranted);
    CHECK(f.Eventually([&] { return f.State()["sessions"].size() == 1; }));
  }
}

TEST_CASE("Kill_ByAnOperator_EndsTheSessionForGood") {
  BrokerFixture f;
  f.Start();
  const auto victim = f.Join("victim", true), other = f.Join("other");
  protocol::Client::Ticket ticket;
  REQUIRE(victim->Announce(LaunchOf(100), &ticket) == Verdict::kGranted);
  std::uint64_t granted = 0;
  REQUIRE(victim->Wait(ticket, 0, &granted) == Verdict::kGranted);
  const auto operator_socket = protocol::Connect(f.config.socket, 5000);
  REQUIRE(operator_socket.ok());
  REQUIRE(protocol::Send(operator_socket->get(),
                         Format(protocol::Request{.verb = protocol::Verb::kKill, .target = "victim"}), true));
  CHECK(victim->Wait(ticket, granted, &granted) == Verdict::kEnded);
  CHECK(victim->end_reason() == "an operator ended this session");
  CHECK(victim->Announce(LaunchOf(1), &ticket) == Verdict::kEnded);
  CHECK(RunLaunch(*other, 20) == Verdict::kGranted);
}

TEST_CASE("BrokerThatGoesAndComes_IsSaidToBeWhatItIs") {
  BrokerFixture f;
  std::mutex mutex;
  std::vector<std::string> lines;
  protocol::Client::Options options;
  options.socket = f.config.socket;
  options.log = [&](bool, const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  const auto said = [&](std::size_t count) {
    return f.Eventually([&] {
      const std::lock_guard lock(mutex);
      return lines.size() >= count;
    });
  };
  const auto client = protocol::Client::Connect(options, true);
  REQUIRE(client.ok());
  f.Start();
  REQUIRE(said(2));
  f.Stop();
  REQUIRE(said(3));
  f.Start();
  REQUIRE(said(4));
  CHECK(RunLaunch(**client, 8) == Verdict::kGranted);  // it does what it says
  const std::string broker = "the broker on " + f.config.socket;
  CHECK(lines[0].find("; the program goes on without it, and joins it when it can") != std::string::npos);
  CHECK(lines[1] == broker + " is there, and schedules this program's launches from now on");
  CHECK(lines[2] == broker + " is gone; the program goes on without it, and joins it again when it is back");
  CHECK(lines[3] == broker + " is back, and schedules this program's launches from now on");
}

TEST_CASE("BrokerThatGoes_OfAProgramThatEndsWithIt_IsSaidToBeGone_AndNoMore") {
  BrokerFixture f;
  f.Start();
  std::string said;
  protocol::Client::Options options;
  options.socket = f.config.socket;
  options.reconnect = false;
  options.log = [&](bool, const std::string& line) { said += line; };
  {
    const auto client = protocol::Client::Connect(options);
    REQUIRE(client.ok());
    f.Stop();
    CHECK(f.Eventually([&] { return !(*client)->connected(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(said == "the broker on " + f.config.socket + " is gone");
}

TEST_CASE("BrokerThatGoes_IsNoticedWhileWaiting_AndARestartReadmits") {
  BrokerFixture f;
  f.Start();
  const auto hog = f.Join("hog"), client = f.Join("client", true);
  protocol::Client::Ticket hogs, ticket;
  std::uint64_t granted = 0;
  REQUIRE(hog->Announce(LaunchOf(8), &hogs) == Verdict::kGranted);
  REQUIRE(hog->Wait(hogs, 0, &granted) == Verdict::kGranted);
  REQUIRE(client->Announce(LaunchOf(8, false), &ticket) == Verdict::kGranted);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    f.Stop();
  });
  CHECK(client->Wait(ticket, 0, &granted) == Verdict::kLost);
  stopper.join();
  CHECK(hog->Announce(LaunchOf(8), &hogs) == Verdict::kLost);
  f.Start();
  REQUIRE(f.Eventually([&] { return client->connected(); }));
  CHECK(RunLaunch(*client, 20) == Verdict::kGranted);
  client->End(ticket, 0, false);  // of the old connection: nothing the new broker hears of
  CHECK(RunLaunch(*client, 20) == Verdict::kGranted);
}

}  // namespace
}  // namespace gridloom::broker
