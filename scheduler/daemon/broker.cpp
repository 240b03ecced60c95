#include "scheduler/daemon/broker.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <thread>
#include <utility>

#include "scheduler/daemon/events.h"
#include "scheduler/protocol/wait.h"

namespace gridloom::broker {

using protocol::Fd;

namespace {

using protocol::kNsPerMs, protocol::kNsPerS;
/// While the loop is busy, how often it looks at the sockets.
constexpr std::uint64_t kPollEveryNs = 50'000;
/// How long it works on what they say before it looks at the rings again: programs that come and go do not keep others'
/// launches waiting.
constexpr std::uint64_t kPollForNs = 500'000;
/// Descriptors that are not sessions': files, connections of the page.
constexpr std::uint32_t kOtherDescriptors = 128;

/// epoll_wait with nanoseconds, where the kernel has it (Linux 5.11): how long a policy waits is less than a
/// millisecond.
int WaitForEvents(int epoll, std::span<epoll_event> events, std::optional<std::uint64_t> timeout_ns) {
  const int most = static_cast<int>(events.size());
  if (!timeout_ns) return epoll_wait(epoll, events.data(), most, -1);
  if (*timeout_ns == 0) return epoll_wait(epoll, events.data(), most, 0);
  const timespec timeout{static_cast<time_t>(*timeout_ns / kNsPerS), static_cast<long>(*timeout_ns % kNsPerS)};
  const int count = epoll_pwait2(epoll, events.data(), most, &timeout, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  return epoll_wait(epoll, events.data(), most,
                    static_cast<int>(std::min<std::uint64_t>(*timeout_ns / kNsPerMs + 1, 60'000)));
}

}  // namespace

Broker::Broker(DaemonConfig config, DeviceFacts device, std::function<void(const std::string&)> log,
               sched::Simulation* simulation)
    : core_(std::move(config), std::move(device), std::move(log), simulation),
      tenant_desk_(core_),
      sessions_(core_, tenant_desk_, operators_),
      operators_(core_, tenant_desk_, sessions_),
      spin_(core_.config.spin_us * std::uint64_t{1000}) {}

Broker::~Broker() {
  if (core_.simulation != nullptr) core_.simulation->OnViolation({});
}

Result<std::unique_ptr<Broker>> Broker::Create(DaemonConfig config, DeviceFacts device,
                                               std::function<void(const std::string&)> log,
                                               sched::Simulation* simulation, std::shared_ptr<Disk> disk) {
  device.policy_inputs.fair_wait = config.fair_wait_us * std::uint64_t{1000};
  device.policy_inputs.processors = std::thread::hardware_concurrency();
  std::unique_ptr<Broker> broker(new Broker(std::move(config), std::move(device), std::move(log), simulation));
  GL_TRY_STATUS(broker->Open(std::move(disk)));
  return broker;
}

Status Broker::OpenState(std::shared_ptr<Disk> disk) {
  std::unique_ptr<StateFolder> folder;
  Accounts accounts;
  LimitChanges changes;
  if (!core_.config.state.empty()) {
    GL_TRY(opened, StateFolder::Open(core_.config.state, std::move(disk)));
    folder = std::make_unique<StateFolder>(std::move(opened));
    GL_TRY(read, ReadAccounts(*folder));
    accounts = std::move(read);
    GL_TRY(limits, ReadLimits(*folder));
    changes = std::move(limits);
  }
  core_.tenants = std::make_unique<Tenants>(core_.config, accounts, std::move(changes));
  GL_TRY(writer, StateWriter::Start(std::move(folder), std::move(accounts), core_.config.audit, core_.log));
  core_.writer = std::move(writer);
  return {};
}

/// No more than there are descriptors for.
std::uint32_t Broker::MostSessions() {
  const std::uint32_t each = core_.simulation != nullptr ? 7 : 4;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / each > core_.config.most_sessions + kOtherDescriptors) {
    return core_.config.most_sessions;
  }
  const rlim_t rest = limit.rlim_cur > kOtherDescriptors ? limit.rlim_cur - kOtherDescriptors : 0;
  const std::uint32_t most = std::max<std::uint32_t>(static_cast<std::uint32_t>(rest / each), 1);
  if (most >= core_.config.most_sessions) return core_.config.most_sessions;
  const std::string told = "at most " + std::to_string(most) + " sessions: a process may have no more than " +
                           std::to_string(limit.rlim_cur) + " descriptors";
  core_.mailbox.Post([this, told] { core_.log(told); });
  return most;
}

Status Broker::Open(std::shared_ptr<Disk> disk) {
  // First, as a broker that is there already has the state folder, too.
  GL_TRY_STATUS(sessions_.Open());
  GL_TRY_STATUS(OpenState(std::move(disk)));
  core_.started = last_housekeeping_ = protocol::NowNs();
  core_.policy = core_.config.policy;
  GL_TRY(policy, core_.RealPolicy(core_.policy));
  const sched::Scheduler::Options options{.sms = core_.device.sms,
                                          .empty_sm = core_.device.empty_sm,
                                          .quantum = core_.config.quantum_us * 1000,
                                          .patience = core_.config.stall_ms * kNsPerMs,
                                          .resident_kernels = core_.device.resident_kernels};
  core_.scheduler = std::make_unique<sched::Scheduler>(options, static_cast<sched::Engine&>(*this), std::move(policy));
  for (const Tenant& tenant : core_.tenants->all()) tenant_desk_.Schedule(tenant);
  core_.epoll = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!core_.epoll) return Error{"no descriptors are left"};
  GL_TRY_STATUS(core_.mailbox.Open());
  core_.places.emplace(MostSessions(), core_.config.most_sessions_per_user, geteuid());
  GL_TRY_STATUS(sessions_.Attend());
  GL_TRY_STATUS(Watch(core_.epoll.get(), core_.mailbox.fd(), EPOLLIN, Tag(kWake)));
  if (core_.simulation != nullptr) {
    core_.simulation->OnViolation([this](std::uint64_t id, const std::string& why) {
      core_.mailbox.Post([this, id, why] {
        const auto session = core_.sessions.find(id);
        if (session != core_.sessions.end())
          sessions_.Drop(*session->second, "violation", why, protocol::GoodbyeReason::kViolation);
      });
    });
  }
  core_.writer->Note("start", {{"pid", getpid()},
                               {"socket", core_.config.socket},
                               {"device", core_.device.id},
                               {"policy", core_.config.policy}});
  return {};
}

std::uint64_t Broker::now() { return protocol::NowNs(); }

Status Broker::Run() {
  std::uint64_t looked = protocol::NowNs();
  while (!core_.stop) {
    const bool worked = TakeRecords();
    if (worked && spinning_) spin_.Came();
    if (worked) spinning_ = false;
    if (next_pump_ && protocol::NowNs() >= *next_pump_) core_.dirty = true;
    if (core_.dirty) Pump();
    const std::uint64_t at = protocol::NowNs();
    if (worked) {
      last_activity_ = at;
      core_.counters.turns.Add(at - looked);
    }
    looked = at;
    Plan(worked, at);
    sessions_.Reap();
    if (worked) {
      if (at - last_poll_ >= kPollEveryNs) Poll(0);
    } else if (at - last_activity_ < spin_.budget_ns()) {
      Spin();
      if (at - last_poll_ >= kPollEveryNs) Poll(0);
    } else {
      if (spinning_) spin_.Slept();
      spinning_ = false;
      if (Sleep()) looked = last_poll_;
      else last_activity_ = protocol::NowNs();
    }
    sessions_.Reap();
  }
  for (auto& [id, session] : core_.sessions) {
    if (session->admitted()) {
      sessions_.Drop(*session, "disconnect", "the broker ends", protocol::GoodbyeReason::kShutdown);
    }
  }
  tenant_desk_.SaveAccounts();
  core_.writer->Note("stop", {{"pid", getpid()}});
  core_.writer->Finish();
  sessions_.Close();
  return {};
}

void Broker::Stop() {
  core_.stop = true;
  core_.mailbox.Wake();
}

void Broker::WaitForDisk() { core_.writer->Drain(); }

/// Records of all sessions, a few of each; true when there were any.
bool Broker::TakeRecords() {
  bool any = false;
  for (Session* const session : core_.admitted) {
    if (session->doomed || !session->has_records()) continue;
    const auto taken = sessions_.TakeOf(*session);
    any = true;
    core_.dirty = core_.accounts_dirty = true;
    if (taken.ok()) core_.counters.records += *taken, sessions_.DropIfOver(*session);
    else sessions_.Drop(*session, "violation", taken.error().message, protocol::GoodbyeReason::kViolation);
  }
  return any;
}

void Broker::Pump() {
  core_.dirty = false;
  pump_began_ = protocol::NowNs();
  next_pump_ = core_.scheduler->Pump();
  const std::uint64_t took = protocol::NowNs() - pump_began_;
  ++core_.counters.pumps;
  core_.counters.decisions_ns += took;
  core_.counters.longest_pump_ns = std::max(core_.counters.longest_pump_ns, took);
}

/// Looks at the rings for a moment.
void Broker::Spin() {
  spinning_ = true;
  for (int i = 0; i < 8; ++i) {
    if (std::ranges::any_of(core_.admitted, [](const Session* session) { return session->has_records(); })) return;
    protocol::Relax();
  }
}

/// One step of planning a turn while nothing happens, and one a millisecond otherwise.
void Broker::Plan(bool busy, std::uint64_t at) {
  if (!core_.device.plan || (busy && at - last_plan_ < kNsPerMs)) return;
  last_plan_ = at;
  if (!core_.device.plan()) return;
  core_.dirty = true;
  last_activity_ = protocol::NowNs();
}

void Broker::Grant(sched::LaunchId launch, std::uint64_t end) {
  if (const auto owner = core_.owners.find(launch); owner != core_.owners.end())
    owner->second.first->Grant(owner->second.second, end, pump_began_);
}

/// Nanoseconds until something has to be done although nothing happens; nothing: never.
std::optional<std::uint64_t> Broker::SleepTime() const {
  std::optional<std::uint64_t> next = next_pump_;
  const auto consider = [&](std::uint64_t at) {
    if (!next || at < *next) next = at;
  };
  if (sessions_.listen_again()) consider(*sessions_.listen_again());
  const bool limited = core_.config.slice_timeout_s != 0 || core_.config.grant_timeout() != 0;
  const bool slices =
      limited && (core_.scheduler->launches() != 0 || (core_.simulation != nullptr && !core_.admitted.empty()));
  if (core_.places->silent() != 0 || slices || (core_.accounts_dirty && !core_.config.state.empty()))
    consider(last_housekeeping_ + kNsPerS);
  if (!next) return std::nullopt;
  const std::uint64_t at = protocol::NowNs();
  return *next <= at ? 0 : *next - at;
}

/// Sleeps until something happens. False when there was something to do before it could.
bool Broker::Sleep() {
  for (Session* const session : core_.admitted)
    session->segment().layout().broker_sleeps.store(1, std::memory_order_seq_cst);
  // A record pushed before its writer saw the flag is seen here; one pushed after it comes with the doorbell.
  const bool missed =
      std::ranges::any_of(core_.admitted, [](const Session* session) { return session->has_records(); });
  Poll(missed ? std::optional<std::uint64_t>(0) : SleepTime());
  if (!missed) ++core_.counters.wakeups;
  for (Session* const session : core_.admitted)
    session->segment().layout().broker_sleeps.store(0, std::memory_order_seq_cst);
  return !missed;
}

void Broker::Poll(std::optional<std::uint64_t> timeout_ns) {
  epoll_event events[64];
  const int count = WaitForEvents(core_.epoll.get(), events, timeout_ns);
  last_poll_ = protocol::NowNs();
  for (int i = 0; i < count; ++i) {
    // What is left comes again, behind what it has not shown yet; of doorbells nothing has to be done.
    if (i != 0 && protocol::NowNs() - last_poll_ > kPollForNs) break;
    const std::uint64_t tag = events[i].data.u64;
    if (tag == Tag(kListener)) {
      sessions_.Accept();
      continue;
    }
    if (tag == Tag(kWake)) {
      core_.mailbox.RunPosted();
      continue;
    }
    // A doorbell is watched edge by edge and never read: the tenant holds it, too, and could make a read block.
    if ((tag & 7) == kDoorbell) continue;
    const auto session = core_.sessions.find(tag >> 3);
    if (session == core_.sessions.end() || session->second->doomed) continue;
    // A process may end while a child of it still has the socket.
    if ((tag & 7) == kProcess) sessions_.Drop(*session->second, "disconnect", "its process has ended");
    else if (session->second->answer.pending && (events[i].events & EPOLLHUP) != 0)
      sessions_.Drop(*session->second, "disconnect", "");
    else sessions_.OnSocket(*session->second);
  }
  if (sessions_.listen_again() && protocol::NowNs() >= *sessions_.listen_again()) sessions_.Listen(true);
  if (last_poll_ - last_housekeeping_ >= kNsPerS) Housekeep();
}

void Broker::Housekeep() {
  last_housekeeping_ = protocol::NowNs();
  for (auto& [id, session] : core_.sessions) {
    if (session->doomed) continue;
    if (!session->admitted()) {
      const bool answered = session->answer.pending;
      const std::uint64_t limit =
          core_.places->scarce() && !answered ? kNsPerS : core_.config.hello_timeout_s * kNsPerS;
      const std::uint64_t since = answered ? session->answer.since : session->since;
      if (last_housekeeping_ - since > limit)
        sessions_.Drop(*session, "refused", answered ? "it did not read its answer" : "it said nothing in time");
      continue;
    }
    if (core_.simulation != nullptr && core_.config.slice_timeout_s != 0) {
      core_.simulation->Watch(session->id, session->announced() != 0, core_.config.slice_timeout_s);
    }
    const std::string overdue = session->Overdue(last_housekeeping_, {.slice = core_.config.slice_timeout_s * kNsPerS,
                                                                      .grant = core_.config.grant_timeout() * kNsPerS});
    if (!overdue.empty()) sessions_.Drop(*session, "timeout", overdue, protocol::GoodbyeReason::kViolation);
  }
  if (core_.accounts_dirty) tenant_desk_.SaveAccounts();
}

}  // namespace gridloom::broker
