#include "scheduler/daemon/broker.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
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

constexpr std::uint64_t kNsPerMs = 1'000'000, kNsPerS = 1'000'000'000;
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
    : config_(std::move(config)),
      device_(std::move(device)),
      log_(std::move(log)),
      simulation_(simulation),
      spin_(config_.spin_us * std::uint64_t{1000}) {}

Broker::~Broker() {
  if (simulation_ != nullptr) simulation_->OnViolation({});
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
  if (!config_.state.empty()) {
    GL_TRY(opened, StateFolder::Open(config_.state, std::move(disk)));
    folder = std::make_unique<StateFolder>(std::move(opened));
    GL_TRY(read, ReadAccounts(*folder));
    accounts = std::move(read);
    GL_TRY(limits, ReadLimits(*folder));
    changes = std::move(limits);
  }
  tenants_ = std::make_unique<Tenants>(config_, accounts, std::move(changes));
  GL_TRY(writer, StateWriter::Start(std::move(folder), std::move(accounts), config_.audit, log_));
  writer_ = std::move(writer);
  return {};
}

/// No more than there are descriptors for.
std::uint32_t Broker::MostSessions() {
  const std::uint32_t each = simulation_ != nullptr ? 7 : 4;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / each > config_.most_sessions + kOtherDescriptors) {
    return config_.most_sessions;
  }
  const rlim_t rest = limit.rlim_cur > kOtherDescriptors ? limit.rlim_cur - kOtherDescriptors : 0;
  const std::uint32_t most = std::max<std::uint32_t>(static_cast<std::uint32_t>(rest / each), 1);
  if (most >= config_.most_sessions) return config_.most_sessions;
  const std::string told = "at most " + std::to_string(most) + " sessions: a process may have no more than " +
                           std::to_string(limit.rlim_cur) + " descriptors";
  Post([this, told] { log_(told); });
  return most;
}

Status Broker::Open(std::shared_ptr<Disk> disk) {
  // First, as a broker that is there already has the state folder, too.
  GL_TRY(listener, Listener::Open(config_.socket, config_.socket_mode));
  listener_ = std::move(listener);
  GL_TRY_STATUS(OpenState(std::move(disk)));
  started_ = last_housekeeping_ = now();
  policy_ = config_.policy;
  GL_TRY(policy, RealPolicy(policy_));
  const sched::Scheduler::Options options{.sms = device_.sms,
                                          .empty_sm = device_.empty_sm,
                                          .quantum = config_.quantum_us * 1000,
                                          .patience = config_.stall_ms * kNsPerMs,
                                          .resident_kernels = device_.resident_kernels};
  scheduler_ = std::make_unique<sched::Scheduler>(options, static_cast<sched::Engine&>(*this), std::move(policy));
  for (const Tenant& tenant : tenants_->all()) Schedule(tenant);
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return Error{"no descriptors are left"};
  places_.emplace(MostSessions(), config_.most_sessions_per_user, geteuid());
  GL_TRY_STATUS(Watch(epoll_.get(), listener_->fd(), EPOLLIN, Tag(kListener)));
  GL_TRY_STATUS(Watch(epoll_.get(), wake_.get(), EPOLLIN, Tag(kWake)));
  if (simulation_ != nullptr) {
    simulation_->OnViolation([this](std::uint64_t id, const std::string& why) {
      Post([this, id, why] {
        const auto session = sessions_.find(id);
        if (session != sessions_.end()) Drop(*session->second, "violation", why, protocol::GoodbyeReason::kViolation);
      });
    });
  }
  writer_->Note("start",
                {{"pid", getpid()}, {"socket", config_.socket}, {"device", device_.id}, {"policy", config_.policy}});
  return {};
}

/// What grants launches. Where time is simulated the choice acts there, and may need what there is in simulated time
/// alone; when launches really begin decides nothing then.
Result<std::unique_ptr<policy::Policy>> Broker::RealPolicy(const std::string& name) const {
  auto policy = policy::MakePolicy(name, device_.policy_inputs);
  if (policy.ok() || simulation_ == nullptr || !policy::FindPolicy(name).ok()) return policy;
  const std::string instead = DaemonConfig().policy;
  log_("policy " + name + " acts in simulated time; the kernels really run under " + instead);
  return policy::MakePolicy(instead, device_.policy_inputs);
}

std::uint64_t Broker::now() { return protocol::NowNs(); }

// ---- the loop

Status Broker::Run() {
  std::uint64_t looked = now();
  while (!stop_) {
    const bool worked = TakeRecords();
    if (worked && spinning_) spin_.Came();
    if (worked) spinning_ = false;
    if (next_pump_ && now() >= *next_pump_) dirty_ = true;
    if (dirty_) Pump();
    const std::uint64_t at = now();
    if (worked) {
      last_activity_ = at;
      counters_.turns.Add(at - looked);
    }
    looked = at;
    Plan(worked, at);
    Reap();
    if (worked) {
      if (at - last_poll_ >= kPollEveryNs) Poll(0);
    } else if (at - last_activity_ < spin_.budget_ns()) {
      Spin();
      if (at - last_poll_ >= kPollEveryNs) Poll(0);
    } else {
      if (spinning_) spin_.Slept();
      spinning_ = false;
      if (Sleep()) looked = last_poll_;
      else last_activity_ = now();
    }
    Reap();
  }
  for (auto& [id, session] : sessions_) {
    if (session->admitted()) {
      Drop(*session, "disconnect", "the broker ends", protocol::GoodbyeReason::kShutdown);
    }
  }
  SaveAccounts();
  writer_->Note("stop", {{"pid", getpid()}});
  writer_->Finish();
  listener_.reset();
  return {};
}

void Broker::Stop() {
  stop_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
}

void Broker::Post(std::function<void()> function) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(function));
  }
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
}

void Broker::WaitForDisk() { writer_->Drain(); }

void Broker::RunPosted() {
  std::uint64_t count = 0;
  static_cast<void>(!read(wake_.get(), &count, sizeof count));
  std::vector<std::function<void()>> posted;
  {
    const std::lock_guard lock(posted_mutex_);
    posted.swap(posted_);
  }
  for (const auto& function : posted) function();
}

/// Records of all sessions, a few of each; true when there were any.
bool Broker::TakeRecords() {
  bool any = false;
  for (Session* const session : admitted_) {
    if (session->doomed || !session->has_records()) continue;
    const auto taken = TakeOf(*session);
    any = true;
    dirty_ = accounts_dirty_ = true;
    if (taken.ok()) counters_.records += *taken, DropIfOver(*session);
    else Drop(*session, "violation", taken.error().message, protocol::GoodbyeReason::kViolation);
  }
  return any;
}

void Broker::Pump() {
  dirty_ = false;
  pump_began_ = now();
  next_pump_ = scheduler_->Pump();
  const std::uint64_t took = now() - pump_began_;
  ++counters_.pumps;
  counters_.decisions_ns += took;
  counters_.longest_pump_ns = std::max(counters_.longest_pump_ns, took);
}

/// Looks at the rings for a moment.
void Broker::Spin() {
  spinning_ = true;
  for (int i = 0; i < 8; ++i) {
    if (std::ranges::any_of(admitted_, [](const Session* session) { return session->has_records(); })) return;
    protocol::Relax();
  }
}

/// One step of planning a turn while nothing happens, and one a millisecond otherwise.
void Broker::Plan(bool busy, std::uint64_t at) {
  if (!device_.plan || (busy && at - last_plan_ < kNsPerMs)) return;
  last_plan_ = at;
  if (!device_.plan()) return;
  dirty_ = true;
  last_activity_ = now();
}

void Broker::Grant(sched::LaunchId launch, std::uint64_t end) {
  if (const auto owner = owners_.find(launch); owner != owners_.end())
    owner->second.first->Grant(owner->second.second, end, pump_began_);
}

/// Nanoseconds until something has to be done although nothing happens; nothing: never.
std::optional<std::uint64_t> Broker::SleepTime() const {
  std::optional<std::uint64_t> next = next_pump_;
  const auto consider = [&](std::uint64_t at) {
    if (!next || at < *next) next = at;
  };
  if (listen_again_) consider(*listen_again_);
  const bool limited = config_.slice_timeout_s != 0 || config_.grant_timeout() != 0;
  const bool slices = limited && (scheduler_->launches() != 0 || (simulation_ != nullptr && !admitted_.empty()));
  if (places_->silent() != 0 || slices || (accounts_dirty_ && !config_.state.empty()))
    consider(last_housekeeping_ + kNsPerS);
  if (!next) return std::nullopt;
  const std::uint64_t at = protocol::NowNs();
  return *next <= at ? 0 : *next - at;
}

/// Sleeps until something happens. False when there was something to do before it could.
bool Broker::Sleep() {
  for (Session* const session : admitted_)
    session->segment().layout().broker_sleeps.store(1, std::memory_order_seq_cst);
  // A record pushed before its writer saw the flag is seen here; one pushed after it comes with the doorbell.
  const bool missed = std::ranges::any_of(admitted_, [](const Session* session) { return session->has_records(); });
  Poll(missed ? std::optional<std::uint64_t>(0) : SleepTime());
  if (!missed) ++counters_.wakeups;
  for (Session* const session : admitted_)
    session->segment().layout().broker_sleeps.store(0, std::memory_order_seq_cst);
  return !missed;
}

void Broker::Poll(std::optional<std::uint64_t> timeout_ns) {
  epoll_event events[64];
  const int count = WaitForEvents(epoll_.get(), events, timeout_ns);
  last_poll_ = now();
  for (int i = 0; i < count; ++i) {
    // What is left comes again, behind what it has not shown yet; of doorbells nothing has to be done.
    if (i != 0 && now() - last_poll_ > kPollForNs) break;
    const std::uint64_t tag = events[i].data.u64;
    if (tag == Tag(kListener)) {
      Accept();
      continue;
    }
    if (tag == Tag(kWake)) {
      RunPosted();
      continue;
    }
    // A doorbell is watched edge by edge and never read: the tenant holds it, too, and could make a read block.
    if ((tag & 7) == kDoorbell) continue;
    const auto session = sessions_.find(tag >> 3);
    if (session == sessions_.end() || session->second->doomed) continue;
    // A process may end while a child of it still has the socket.
    if ((tag & 7) == kProcess) Drop(*session->second, "disconnect", "its process has ended");
    else if (session->second->answer.pending && (events[i].events & EPOLLHUP) != 0)
      Drop(*session->second, "disconnect", "");
    else OnSocket(*session->second);
  }
  if (listen_again_ && now() >= *listen_again_) Listen(true);
  if (last_poll_ - last_housekeeping_ >= kNsPerS) Housekeep();
}

void Broker::Housekeep() {
  last_housekeeping_ = now();
  for (auto& [id, session] : sessions_) {
    if (session->doomed) continue;
    if (!session->admitted()) {
      const bool answered = session->answer.pending;
      const std::uint64_t limit = places_->scarce() && !answered ? kNsPerS : config_.hello_timeout_s * kNsPerS;
      const std::uint64_t since = answered ? session->answer.since : session->since;
      if (last_housekeeping_ - since > limit)
        Drop(*session, "refused", answered ? "it did not read its answer" : "it said nothing in time");
      continue;
    }
    if (simulation_ != nullptr && config_.slice_timeout_s != 0) {
      simulation_->Watch(session->id, session->announced() != 0, config_.slice_timeout_s);
    }
    const std::string overdue = session->Overdue(
        last_housekeeping_, {.slice = config_.slice_timeout_s * kNsPerS, .grant = config_.grant_timeout() * kNsPerS});
    if (!overdue.empty()) Drop(*session, "timeout", overdue, protocol::GoodbyeReason::kViolation);
  }
  if (accounts_dirty_) SaveAccounts();
}

Account Broker::AccountOf(const Tenant& tenant) const {
  Account account = tenant.before;
  if (scheduler_->knows(tenant.id)) {
    const sched::TenantUsage& usage = scheduler_->usage(tenant.id);
    account.launches += usage.launches;
    account.faults += usage.faults;
    account.slices += usage.slices;
    account.ctas += usage.ctas;
    account.device_seconds += usage.device_time / 1e9;
  }
  if (simulation_ != nullptr) account.simulated_seconds += simulation_->usage(tenant.id).seconds;
  return account;
}

/// Hands over the accounts that may have changed: of tenants that have sessions, or had one since the last time.
void Broker::SaveAccounts() {
  accounts_dirty_ = false;
  std::vector<std::pair<std::string, Account>> changed;
  const auto look = [&](Tenant& tenant) {
    const Account account = AccountOf(tenant);
    if (account == tenant.saved) return;
    tenant.saved = account;
    changed.emplace_back(tenant.config.name, account);
  };
  for (const std::uint32_t tenant : left_) look(tenants_->at(tenant));
  for (const Session* session : admitted_) look(tenants_->at(session->tenant));
  left_.clear();
  writer_->SaveAccounts(std::move(changed));
}

}  // namespace gridloom::broker
