// Random sequences of what tenants and operators may do, against the real scheduler and the real broker, with the model
// beside them. $GRIDLOOM_MODEL_SEQUENCES: how many of each; $GRIDLOOM_MODEL_SEED: the first one's seed.
#include "tests/scheduler/daemon/state_model.h"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "scheduler/policy/builtin.h"
#include "scheduler/protocol/segment.h"
#include "tests/scheduler/daemon/broker_fixture.h"
#include "tests/scheduler/policy/no_pairs.h"

namespace gridloom::broker {
namespace {

constexpr std::uint32_t kTenants = 3;
constexpr policy::SmView kSm{.free_ctas = 2, .free_warps = 64, .free_registers = 65536, .free_shared_bytes = 65536};

/// What sequences are tried on.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void Join(std::uint32_t session, std::uint32_t tenant) = 0;
  virtual void Leave(std::uint32_t session) = 0;
  virtual void Announce(LaunchKey key, const ModelLaunch& launch) = 0;
  virtual void Progress(LaunchKey key, std::uint64_t done) = 0;
  virtual void End(LaunchKey key, std::uint64_t done, bool faulted) = 0;
  virtual void SetLimits(std::uint32_t tenant, const sched::TenantLimits& limits) = 0;
  virtual void SetPolicy(std::string_view name) = 0;
  virtual void Pass(std::uint64_t) {}
  /// Says that more has run than was granted. True: the session is over with that.
  virtual bool Lie(LaunchKey key, std::uint64_t done) = 0;
  virtual void Kill(std::uint32_t tenant, std::span<const std::uint32_t> sessions) = 0;
  /// What the session may use then; nothing where memory is not this subject's.
  virtual std::optional<std::uint64_t> Memory(std::uint32_t, std::uint64_t) { return std::nullopt; }

  virtual void Settle() = 0;  ///< all that was done has had its effect
  virtual std::uint64_t granted(LaunchKey key) const = 0;
  virtual SeenTenant Seen(std::uint32_t tenant) const = 0;
  virtual bool timed() const = 0;
  virtual std::size_t launches_left() = 0;
  /// CTAs that an idle device grants at once.
  virtual std::uint64_t Room() = 0;
  virtual ModelDevice device() const = 0;
  virtual std::vector<std::string_view> policies() const = 0;
};

/// The scheduler alone, with a clock of the test's.
class SchedulerSubject final : public Subject, private sched::Engine {
 public:
  explicit SchedulerSubject(bool slices)
      : device_{.burst = 2000, .slices = slices},
        scheduler_({.sms = device_.sms,
                    .empty_sm = kSm,
                    .quantum = slices ? 500u : 0u,
                    .burst = 2000,
                    .resident_kernels = device_.resident_kernels},
                   *this, policy::MakePolicy("leftover").value()) {}

  void Join(std::uint32_t, std::uint32_t) override {}
  void Leave(std::uint32_t session) override {
    for (auto at = ids_.lower_bound({session, 0}); at != ids_.end() && at->first.first == session;
         at = ids_.erase(at)) {
      if (!scheduler_.End(at->second, false).ok()) throw Breach("a launch cannot be ended");
    }
  }
  void Announce(LaunchKey key, const ModelLaunch& launch) override {
    ids_[key] = scheduler_.Submit({.tenant = launch.tenant,
                                   .owner = key.first,
                                   .stream = launch.stream,
                                   .kernel = launch.ctas % 5,
                                   .ctas = launch.ctas,
                                   .needs = {.warps = launch.warps},
                                   .divisible = launch.divisible,
                                   .name = "k"});
  }
  void Progress(LaunchKey key, std::uint64_t done) override {
    if (!scheduler_.Progress(ids_.at(key), done).ok()) throw Breach("progress is refused");
  }
  void End(LaunchKey key, std::uint64_t done, bool faulted) override {
    if (done != 0) Progress(key, done);
    if (!scheduler_.End(ids_.at(key), faulted).ok()) throw Breach("an end is refused");
    ids_.erase(key);
  }
  void SetLimits(std::uint32_t tenant, const sched::TenantLimits& limits) override {
    scheduler_.SetTenant(tenant, limits);
  }
  void SetPolicy(std::string_view name) override {
    scheduler_.SetPolicy(policy::MakePolicy(name, policy::NoPairs()).value());
  }
  void Pass(std::uint64_t time) override { time_ += time; }
  bool Lie(LaunchKey key, std::uint64_t done) override {
    if (scheduler_.Progress(ids_.at(key), done).ok()) throw Breach("more has run than was granted, and nobody minds");
    return false;
  }
  void Kill(std::uint32_t, std::span<const std::uint32_t> sessions) override {
    for (const std::uint32_t session : sessions) Leave(session);
  }
  void Settle() override { scheduler_.Pump(); }
  std::uint64_t granted(LaunchKey key) const override {
    const auto at = granted_.find(ids_.at(key));
    return at != granted_.end() ? at->second : 0;
  }
  SeenTenant Seen(std::uint32_t tenant) const override {
    const sched::TenantUsage& usage = scheduler_.usage(tenant);
    return {.in_flight = scheduler_.in_flight(tenant),
            .waiting = scheduler_.waiting(tenant),
            .launches = usage.launches,
            .faults = usage.faults,
            .slices = usage.slices,
            .ctas = usage.ctas,
            .device_time = usage.device_time};
  }
  bool timed() const override { return true; }
  std::size_t launches_left() override { return scheduler_.launches(); }
  std::uint64_t Room() override {
    SetPolicy("leftover");
    scheduler_.SetTenant(9, {});
    granted_.clear();
    for (std::uint64_t kernel = 0; kernel < device_.ctas_per_sm;
         ++kernel) {  // one of each multiprocessor for a kernel that is not known
      scheduler_.Submit({.tenant = 9,
                         .owner = 9,
                         .kernel = 1000 + kernel,
                         .ctas = device_.sms,
                         .needs = {.warps = 1},
                         .divisible = true,
                         .name = "k"});
    }
    scheduler_.Pump();
    std::uint64_t room = 0;
    for (const auto& [id, end] : granted_) room += end;
    return room;
  }
  ModelDevice device() const override { return device_; }
  std::vector<std::string_view> policies() const override { return policy::PolicyNames(); }

 private:
  std::uint64_t now() override { return time_; }
  void Grant(sched::LaunchId launch, std::uint64_t end) override { granted_[launch] = end; }

  const ModelDevice device_;
  std::uint64_t time_ = 0;
  std::map<sched::LaunchId, std::uint64_t> granted_;
  std::map<LaunchKey, sched::LaunchId> ids_;
  sched::Scheduler scheduler_;
};

/// The broker on its own thread, and sessions that write into their rings by hand.
class BrokerSubject final : public Subject {
 public:
  BrokerSubject() {
    fixture_.config.fair_wait_us = 0;
    fixture_.config.state.clear();
    fixture_.config.defaults.memory_bytes = kMemory;
    for (std::uint32_t tenant = 1; tenant <= kTenants; ++tenant) {
      fixture_.config.tenants.push_back(
          {.name = NameOf(tenant), .uid = {}, .token = {}, .limits = fixture_.config.defaults});
    }
    fixture_.Start();
  }
  static constexpr std::uint64_t kMemory = 1000;

  void Join(std::uint32_t session, std::uint32_t tenant) override {
    Connection connection;
    connection.socket = std::move(protocol::Connect(fixture_.config.socket, 10'000)).value();
    if (!protocol::Send(connection.socket.get(), Format(protocol::Hello{NameOf(tenant), "", "model"}), true))
      throw Breach("no hello is taken");
    auto received = protocol::Receive(connection.socket.get(), true);
    if (!received.ok() || received->fds.size() != 2) throw Breach("a session is not admitted");
    connection.segment.emplace(std::move(protocol::Segment::Attach(received->fds[0].Release())).value());
    connection.doorbell = std::move(received->fds[1]);
    for (std::uint32_t slot = kSlots; slot-- > 0;) connection.free_slots.push_back(slot);
    connections_.emplace(session, std::move(connection));
  }
  void Leave(std::uint32_t session) override {
    const std::uint64_t number = fixture_.State()["sessions"].size();
    End(session, true);
    Await([&] { return fixture_.State()["sessions"].size() < number; }, "a session that has hung up is still there");
    ended_.back().granted = GrantsOf(ended_.back().segment);
  }
  void Announce(LaunchKey key, const ModelLaunch& launch) override {
    Connection& connection = connections_.at(key.first);
    const std::uint32_t slot = connection.free_slots.back();
    connection.free_slots.pop_back();
    slots_[key] = slot;
    protocol::RawRecord record = Of(protocol::RecordKind::kLaunch, key, launch.ctas);
    record.stream = launch.stream;
    record.threads_per_cta = launch.warps * 32;
    record.flags = launch.divisible ? protocol::kDivisible : 0;
    Push(key.first, record);
  }
  void Progress(LaunchKey key, std::uint64_t done) override {
    Push(key.first, Of(protocol::RecordKind::kProgress, key, done));
  }
  void End(LaunchKey key, std::uint64_t done, bool faulted) override {
    protocol::RawRecord record = Of(protocol::RecordKind::kEnd, key, done);
    record.flags = faulted ? protocol::kFaulted : 0;
    Push(key.first, record);
    connections_.at(key.first).free_slots.push_back(slots_.at(key));
    slots_.erase(key);
  }
  void SetLimits(std::uint32_t tenant, const sched::TenantLimits& limits) override {
    using enum protocol::RequestField;
    Ask({.verb = protocol::Verb::kLimits,
         .target = NameOf(tenant),
         .fields = kFieldWeight | kFieldPriority | kFieldInFlight | kFieldCap,
         .weight = limits.weight,
         .cap = limits.cap,
         .priority = limits.priority,
         .in_flight = limits.in_flight});
  }
  void SetPolicy(std::string_view name) override {
    Ask({.verb = protocol::Verb::kPolicy, .target = std::string(name)});
  }
  bool Lie(LaunchKey key, std::uint64_t done) override {
    const std::uint64_t number = fixture_.State()["sessions"].size();
    Progress(key, done);
    Await([&] { return fixture_.State()["sessions"].size() < number; }, "a session that lies is still there");
    End(key.first, false);
    return true;
  }
  void Kill(std::uint32_t tenant, std::span<const std::uint32_t> sessions) override {
    const std::uint64_t number = fixture_.State()["sessions"].size();
    Ask({.verb = protocol::Verb::kKill, .target = NameOf(tenant)});
    for (const std::uint32_t session : sessions) End(session, false);
    // Until they have hung up what runs of them is there.
    Await([&] { return fixture_.State()["sessions"].size() + sessions.size() == number; },
          "a session that was killed is still there");
  }
  std::optional<std::uint64_t> Memory(std::uint32_t session, std::uint64_t bytes) override {
    protocol::RawRecord record;
    record.kind = static_cast<std::uint32_t>(protocol::RecordKind::kMemory);
    record.value = bytes;
    protocol::SegmentLayout& layout = connections_.at(session).segment->layout();
    const std::uint64_t answers = layout.memory_answers;
    Push(session, record);
    Await([&] { return layout.memory_answers != answers; }, "a question about memory is not answered");
    return layout.memory_bytes.load();
  }

  void Settle() override {
    for (const auto& [session, connection] : connections_) {
      protocol::SegmentLayout& layout = connection.segment->layout();
      Await([&] { return layout.taken == connection.pushed; }, "records are not taken");
    }
    state_ = fixture_.State();  // after the turn that took them
    for (const Ended& ended : ended_) {
      if (GrantsOf(ended.segment) != ended.granted) throw Breach("something is granted to a session that has ended");
    }
  }
  std::uint64_t granted(LaunchKey key) const override {
    const protocol::Mailbox& mailbox = connections_.at(key.first).segment->layout().mailboxes[slots_.at(key)];
    if (mailbox.launch != key.second) throw Breach("a mailbox is another launch's");
    return mailbox.granted;
  }
  SeenTenant Seen(std::uint32_t tenant) const override {
    for (const auto& seen : state_["tenants"]) {
      if (seen["name"] != NameOf(tenant)) continue;
      return {.in_flight = seen["in_flight"],
              .waiting = seen["waiting"],
              .launches = seen["launches"],
              .faults = seen["faults"],
              .slices = seen["slices"],
              .ctas = seen["ctas"],
              .memory = seen["memory_bytes"],
              .device_time = seen["device_seconds"]};
    }
    throw Breach("a tenant is not shown");
  }
  bool timed() const override { return false; }
  std::size_t launches_left() override {
    std::size_t left = 0;
    for (const auto& session : fixture_.State()["sessions"]) left += session["in_flight"].get<std::size_t>();
    return left;
  }
  std::uint64_t Room() override {
    SetPolicy("leftover");
    Join(0, 1);
    SetLimits(1, {});
    Announce({0, 1}, {.tenant = 1, .ctas = 100});
    Settle();
    const std::uint64_t room = granted({0, 1});
    Leave(0);
    return room;
  }
  ModelDevice device() const override { return {.resident_kernels = 32}; }
  std::vector<std::string_view> policies() const override { return {"fair", "leftover", "priority", "serial"}; }

 private:
  static constexpr std::uint32_t kSlots = 16;
  using Grants = std::array<std::uint64_t, kSlots>;
  struct Connection {
    protocol::Fd socket, doorbell;
    std::optional<protocol::Segment> segment;
    std::vector<std::uint32_t> free_slots;
    std::uint64_t pushed = 0;
  };
  struct Ended {
    protocol::Segment segment;
    Grants granted;
  };
  static Grants GrantsOf(const protocol::Segment& segment) {
    Grants grants{};
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) grants[slot] = segment.layout().mailboxes[slot].granted;
    return grants;
  }

  static std::string NameOf(std::uint32_t tenant) { return "tenant-" + std::to_string(tenant); }
  template <typename Condition>
  static void Await(const Condition& condition, const char* what) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return;
      std::this_thread::yield();
    }
    if (!BrokerFixture::Eventually(condition)) throw Breach(what);
  }
  void Ask(const protocol::Request& request) const {
    if (!fixture_.Ask(request)) throw Breach("an operator's request was not done");
  }
  protocol::RawRecord Of(protocol::RecordKind kind, LaunchKey key, std::uint64_t value) const {
    protocol::RawRecord record;
    record.kind = static_cast<std::uint32_t>(kind);
    record.slot = slots_.at(key);
    record.launch = key.second;
    record.value = value;
    return record;
  }
  void Push(std::uint32_t session, protocol::RawRecord record) {
    Connection& connection = connections_.at(session);
    protocol::SegmentLayout& layout = connection.segment->layout();
    record.sequence = connection.pushed;
    std::memcpy(&layout.ring[connection.pushed % protocol::kRingRecords], &record, sizeof record);
    layout.pushed = ++connection.pushed;
    const std::uint64_t one = 1;
    if (layout.broker_sleeps != 0) static_cast<void>(!write(connection.doorbell.get(), &one, sizeof one));
  }
  /// The session is over: what its mailboxes say now is what they will say. `hang_up`: it ends here, and is over soon.
  void End(std::uint32_t session, bool hang_up) {
    Connection& connection = connections_.at(session);
    if (hang_up) {
      Await([&] { return connection.segment->layout().taken == connection.pushed; }, "records are not taken");
      connection.socket = {};
    }
    ended_.push_back({std::move(*connection.segment), {}});
    ended_.back().granted = GrantsOf(ended_.back().segment);
    connections_.erase(session);
    std::erase_if(slots_, [&](const auto& entry) { return entry.first.first == session; });
  }

  BrokerFixture fixture_;
  std::map<std::uint32_t, Connection> connections_;
  std::map<LaunchKey, std::uint32_t> slots_;
  std::vector<Ended> ended_;
  nlohmann::ordered_json state_;
};

/// One sequence: a step at random, then a look at everything.
class Sequence {
 public:
  Sequence(Subject& subject, std::uint64_t seed) : subject_(subject), model_(subject.device()), random_(seed) {}

  void Run(int steps) {
    for (std::uint32_t tenant = 1; tenant <= kTenants; ++tenant) Limit(tenant, {.in_flight = 3});
    for (int i = 0; i < steps; ++i) {
      Step();
      See();
    }
    Note("all leave");
    while (!model_.sessions().empty()) Leave(model_.sessions().begin()->first);
    See();
    if (subject_.launches_left() != 0) throw Breach("launches are left of sessions that have gone");
    const ModelDevice device = subject_.device();
    if (const std::uint64_t room = subject_.Room(); room != std::uint64_t{device.sms} * device.ctas_per_sm) {
      throw Breach("an idle device has room for " + std::to_string(room) + " CTAs");
    }
  }
  const std::string& steps() const { return steps_; }

 private:
  std::uint64_t Below(std::uint64_t most) { return random_() % most; }
  void Note(const std::string& step) { steps_ += "\n  " + step; }

  template <typename Map>
  auto Any(const Map& map) {
    return *std::next(map.begin(), static_cast<std::ptrdiff_t>(Below(map.size())));
  }

  void Step() {
    subject_.Settle();
    const std::uint64_t choice = Below(100);
    if (model_.sessions().empty() || (choice < 6 && model_.sessions().size() < 6)) return Join();
    if (choice < 36 || model_.launches().empty()) return Announce();
    if (choice < 75) return GoOn();
    if (choice < 80) return Limit(1 + static_cast<std::uint32_t>(Below(kTenants)), AnyLimits());
    if (choice < 83) return Policy();
    if (choice < 90) return Pass();
    if (choice < 94) return Memory();
    if (choice < 96) return Leave(Any(model_.sessions()).first);
    if (choice < 98) return Lie();
    Kill();
  }
  void Join() {
    const std::uint32_t session = ++sessions_, tenant = 1 + static_cast<std::uint32_t>(Below(kTenants));
    Note("session " + std::to_string(session) + " of tenant " + std::to_string(tenant) + " joins");
    subject_.Join(session, tenant);
    model_.Join(session, tenant);
  }
  void Leave(std::uint32_t session) {
    Note("session " + std::to_string(session) + " leaves");
    subject_.Leave(session);
    model_.Leave(session);
  }
  void Announce() {
    const auto [session, tenant] = Any(model_.sessions());
    const auto open =
        std::ranges::count_if(model_.launches(), [&](const auto& entry) { return entry.first.first == session; });
    if (open >= 12) return GoOn();
    const LaunchKey key{session, ++numbers_[session]};
    const ModelLaunch launch{.tenant = tenant,
                             .stream = Below(4),
                             .ctas = 1 + Below(30),
                             .warps = static_cast<std::uint32_t>(Below(2) == 0 ? 1 : 1 + Below(32)),
                             .divisible = Below(3) != 0};
    Note("launch " + std::to_string(key.second) + " of session " + std::to_string(session) + ", stream " +
         std::to_string(launch.stream) + ", " + std::to_string(launch.ctas) + " CTAs of " +
         std::to_string(launch.warps) + " warps" + (launch.divisible ? "" : ", whole"));
    subject_.Announce(key, launch);
    model_.Announce(key, launch);
  }
  /// A launch runs on, ends, faults, or is given up.
  void GoOn() {
    const auto [key, launch] = Any(model_.launches());
    const std::string name = "launch " + std::to_string(key.second) + " of session " + std::to_string(key.first);
    const std::uint64_t done = launch.done + Below(launch.granted - launch.done + 1);
    const std::uint64_t what = Below(10);
    if (what < 4 && launch.granted != 0) {
      Note(name + " has run " + std::to_string(done));
      subject_.Progress(key, done);
      model_.Progress(key, done);
    } else if (what < 9 && launch.granted == launch.ctas) {
      Note(name + " ends");
      subject_.End(key, launch.ctas, false);
      model_.End(key, launch.ctas, false);
    } else if (what == 9) {
      const bool faulted = Below(2) == 0;
      Note(name + (faulted ? " faults after " : " is given up after ") + std::to_string(done));
      subject_.End(key, done, faulted);
      model_.End(key, done, faulted);
    }
  }
  sched::TenantLimits AnyLimits() {
    constexpr double kCaps[] = {1, 1, 0.5, 0.1};
    return {.weight = 1.0 + static_cast<double>(Below(3)),
            .cap = kCaps[Below(std::size(kCaps))],
            .priority = static_cast<std::int32_t>(Below(5)) - 2,
            .in_flight = 1 + static_cast<std::uint32_t>(Below(4))};
  }
  void Limit(std::uint32_t tenant, const sched::TenantLimits& limits) {
    Note("tenant " + std::to_string(tenant) + " may have " + std::to_string(limits.in_flight) + " in flight and " +
         std::to_string(limits.cap));
    subject_.SetLimits(tenant, limits);
    model_.Tenant(tenant, limits.in_flight, limits.cap, BrokerSubject::kMemory);
  }
  void Policy() {
    const auto names = subject_.policies();
    const std::string_view name = names[Below(names.size())];
    Note("policy " + std::string(name));
    subject_.SetPolicy(name);
  }
  void Pass() {
    const std::uint64_t time = Below(5000);
    Note(std::to_string(time) + " pass");
    subject_.Pass(time);
    model_.Pass(time);
  }
  void Memory() {
    const std::uint32_t session = Any(model_.sessions()).first;
    const std::uint64_t bytes = Below(BrokerSubject::kMemory + 200);
    const auto allowed = subject_.Memory(session, bytes);
    if (!allowed) return;
    Note("session " + std::to_string(session) + " asks for " + std::to_string(bytes) + " bytes");
    if (model_.Memory(session, bytes) != *allowed)
      throw Breach("a session may use " + std::to_string(*allowed) + " bytes");
  }
  void Lie() {
    const auto [key, launch] = Any(model_.launches());
    Note("session " + std::to_string(key.first) + " lies about launch " + std::to_string(key.second));
    // Beyond what can ever be granted: what has been may have grown since it was looked at.
    if (subject_.Lie(key, launch.ctas + 1 + Below(100))) model_.Leave(key.first);
  }
  void Kill() {
    const std::uint32_t tenant = Any(model_.sessions()).second;
    std::vector<std::uint32_t> sessions;
    for (const auto& [session, of] : model_.sessions()) {
      if (of == tenant) sessions.push_back(session);
    }
    Note("tenant " + std::to_string(tenant) + " is killed");
    subject_.Kill(tenant, sessions);
    for (const std::uint32_t session : sessions) model_.Leave(session);
  }
  void See() {
    subject_.Settle();
    for (const auto& [key, launch] : model_.launches()) model_.SeeGrant(key, subject_.granted(key));
    for (std::uint32_t tenant = 1; tenant <= kTenants; ++tenant) model_.SeeTenant(tenant, subject_.Seen(tenant));
    model_.SeeAll(subject_.timed());
  }

  Subject& subject_;
  StateModel model_;
  std::mt19937_64 random_;
  std::uint32_t sessions_ = 0;
  std::map<std::uint32_t, std::uint64_t> numbers_;
  std::string steps_;
};

std::uint64_t Setting(const char* name, std::uint64_t usual) {
  const char* const given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
}

template <typename Make>
void Try(std::uint64_t sequences, int steps, const Make& make) {
  const std::uint64_t first = Setting("GRIDLOOM_MODEL_SEED", 1);
  for (std::uint64_t seed = first; seed < first + Setting("GRIDLOOM_MODEL_SEQUENCES", sequences); ++seed) {
    const auto subject = make(seed);
    Sequence sequence(*subject, seed);
    try {
      sequence.Run(steps);
    } catch (const std::exception& breach) {
      FAIL("seed " << seed << ": " << breach.what() << sequence.steps());
    }
  }
}

TEST_CASE("Scheduler_UnderAnySequence_DoesWhatTheModelAllows") {
  Try(6000, 60, [](std::uint64_t seed) { return std::make_unique<SchedulerSubject>(seed % 2 == 1); });
}

TEST_CASE("Broker_UnderAnySequence_DoesWhatTheModelAllows") {
  Try(80, 60, [](std::uint64_t) { return std::make_unique<BrokerSubject>(); });
}

TEST_CASE("Model_IsNotFooled") {
  const auto breach = [](auto act) {
    StateModel model({.resident_kernels = 2, .burst = 100});
    model.Tenant(1, 1, 1, 100);
    model.Tenant(2, 4, 0.5, 100);
    model.Join(1, 1);
    model.Join(2, 2);
    model.Announce({1, 1}, {.tenant = 1, .stream = 1, .ctas = 10});
    model.Announce({1, 2}, {.tenant = 1, .stream = 1, .ctas = 10, .divisible = false});
    model.Announce({2, 1}, {.tenant = 2, .stream = 0, .ctas = 10});
    model.SeeGrant({1, 1}, 4);
    act(model);
  };
  CHECK_NOTHROW(breach([](StateModel& m) { m.SeeGrant({1, 1}, 5), m.SeeAll(false); }));
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeGrant({1, 1}, 3); }), Breach);   // taken back
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeGrant({1, 1}, 11); }), Breach);  // beyond the grid
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeGrant({1, 2}, 10); }), Breach);  // before its stream's first
  CHECK_THROWS_AS(breach([](StateModel& m) { m.End({1, 1}, 4, false), m.SeeGrant({1, 2}, 5); }), Breach);  // in parts
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeGrant({1, 1}, 10), m.SeeAll(false); }), Breach);         // no room
  CHECK_THROWS_AS(breach([](StateModel& m) { m.Progress({1, 1}, 4), m.SeeAll(false); }), Breach);          // idle
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeTenant(1, {.in_flight = 2}); }), Breach);  // over in_flight
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeTenant(1, {.waiting = 1}); }), Breach);    // waits for nothing
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeTenant(1, {.in_flight = 1, .ctas = 4}); }),
                  Breach);  // not yet reported
  CHECK_THROWS_AS(breach([](StateModel& m) { m.SeeTenant(1, {.in_flight = 1, .memory = 1}); }), Breach);
  CHECK_THROWS_AS(breach([](StateModel& m) {  // over its cap
                    m.Pass(1000);
                    m.SeeGrant({2, 1}, 1);
                    m.SeeTenant(1, {.in_flight = 1, .device_time = 400});
                    m.SeeTenant(2, {.in_flight = 1, .device_time = 600});
                    m.SeeAll(true);
                  }),
                  Breach);
  CHECK_THROWS_AS(breach([](StateModel& m) { m.Pass(1000), m.SeeAll(true); }), Breach);  // nobody is charged
}

}  // namespace
}  // namespace gridloom::broker
