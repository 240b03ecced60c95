#include "scheduler/daemon/broker.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "scheduler/protocol/wait.h"

namespace gridloom::broker {

using protocol::Fd;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000, kNsPerS = 1'000'000'000;
/// Records taken of one session before the next one's turn.
constexpr std::uint32_t kRecordsPerTurn = 64;
/// While the loop is busy, how often it looks at the sockets.
constexpr std::uint64_t kPollEveryNs = 50'000;

/// What an epoll event is about: the number of a session and which of its descriptors.
enum Source : std::uint64_t { kListener, kWake, kSocket, kDoorbell, kProcess };
constexpr std::uint64_t Tag(Source source, std::uint64_t session = 0) { return session << 3 | source; }

Status Watch(int epoll, int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return Error{std::string("cannot watch a descriptor: ") + std::strerror(errno)};
  return {};
}

/// epoll_wait with nanoseconds, where the kernel has it (Linux 5.11): how long a policy waits is less than a millisecond.
int WaitForEvents(int epoll, std::span<epoll_event> events, std::optional<std::uint64_t> timeout_ns) {
  const int most = static_cast<int>(events.size());
  if (!timeout_ns) return epoll_wait(epoll, events.data(), most, -1);
  if (*timeout_ns == 0) return epoll_wait(epoll, events.data(), most, 0);
  const timespec timeout{static_cast<time_t>(*timeout_ns / kNsPerS), static_cast<long>(*timeout_ns % kNsPerS)};
  const int count = epoll_pwait2(epoll, events.data(), most, &timeout, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  return epoll_wait(epoll, events.data(), most, static_cast<int>(std::min<std::uint64_t>(*timeout_ns / kNsPerMs + 1, 60'000)));
}

}  // namespace

Broker::Broker(DaemonConfig config, DeviceFacts device, std::function<void(const std::string&)> log, sched::Simulation* simulation)
    : config_(std::move(config)),
      device_(std::move(device)),
      log_(std::move(log)),
      simulation_(simulation),
      spin_(config_.spin_us * std::uint64_t{1000}) {}

Broker::~Broker() {
  if (simulation_ != nullptr) simulation_->OnViolation({});
}

Result<std::unique_ptr<Broker>> Broker::Create(DaemonConfig config, DeviceFacts device, std::function<void(const std::string&)> log,
                                               sched::Simulation* simulation) {
  device.policy_inputs.fair_wait = config.fair_wait_us * std::uint64_t{1000};
  std::unique_ptr<Broker> broker(new Broker(std::move(config), std::move(device), std::move(log), simulation));
  GL_TRY_STATUS(broker->Open());
  return broker;
}

Status Broker::Open() {
  namespace fs = std::filesystem;
  Accounts accounts;
  LimitChanges changes;
  if (!config_.state.empty()) {
    std::error_code error;
    fs::create_directories(config_.state, error);
    if (error) return Error{"cannot make the folder " + config_.state + ": " + error.message()};
    chmod(config_.state.c_str(), 0700);
    GL_TRY(read, ReadAccounts(config_.state + "/accounts.json"));
    accounts = std::move(read);
    GL_TRY(limits, ReadLimits(config_.state + "/limits.json"));
    changes = std::move(limits);
    GL_TRY(audit, Audit::Open(config_.state + "/audit.jsonl"));
    audit_ = std::move(audit);
  }
  started_ = last_housekeeping_ = now();
  tenants_ = std::make_unique<Tenants>(config_, accounts, std::move(changes));
  policy_ = config_.policy;
  GL_TRY(policy, RealPolicy(policy_));
  const sched::Scheduler::Options options{
      .sms = device_.sms, .empty_sm = device_.empty_sm, .quantum = config_.quantum_us * 1000, .resident_kernels = device_.resident_kernels};
  scheduler_ = std::make_unique<sched::Scheduler>(options, static_cast<sched::Engine&>(*this), std::move(policy));
  for (const Tenant& tenant : tenants_->all()) Schedule(tenant);
  GL_TRY(listener, protocol::Listen(config_.socket, config_.socket_mode));
  listener_ = std::move(listener);
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return Error{"no descriptors are left"};
  GL_TRY_STATUS(Watch(epoll_.get(), listener_.get(), EPOLLIN, Tag(kListener)));
  GL_TRY_STATUS(Watch(epoll_.get(), wake_.get(), EPOLLIN, Tag(kWake)));
  if (simulation_ != nullptr) {
    simulation_->OnViolation([this](std::uint64_t id, const std::string& why) {
      Post([this, id, why] {
        const auto session = sessions_.find(id);
        if (session != sessions_.end()) Drop(*session->second, "violation", why, protocol::GoodbyeReason::kViolation);
      });
    });
  }
  audit_.Note("start", {{"pid", getpid()}, {"socket", config_.socket}, {"device", device_.id}, {"policy", config_.policy}});
  return {};
}

/// What grants launches. Where time is simulated the choice acts there, and may need what there is in simulated time alone; when launches
/// really begin decides nothing then.
Result<std::unique_ptr<policy::Policy>> Broker::RealPolicy(const std::string& name) const {
  auto policy = policy::MakePolicy(name, device_.policy_inputs);
  if (policy.ok() || simulation_ == nullptr || !policy::FindPolicy(name).ok()) return policy;
  const std::string instead = DaemonConfig().policy;
  log_("policy " + name + " acts in simulated time; the kernels really run under " + instead);
  return policy::MakePolicy(instead, device_.policy_inputs);
}

std::uint64_t Broker::now() { return protocol::NowNs(); }

// ---- the loop ---------------------------------------------------------------------------------------------------------

Status Broker::Run() {
  while (!stop_) {
    const bool worked = TakeRecords();
    if (worked && spinning_) spin_.Came();
    if (worked) spinning_ = false;
    if (next_pump_ && now() >= *next_pump_) dirty_ = true;
    if (dirty_) Pump();
    const std::uint64_t at = now();
    if (worked) last_activity_ = at;
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
      if (!Sleep()) last_activity_ = now();
    }
    Reap();
  }
  for (auto& [id, session] : sessions_) {
    if (session->admitted()) {
      Drop(*session, "disconnect", "the broker ends", protocol::GoodbyeReason::kShutdown);
    }
  }
  SaveAccounts();
  audit_.Note("stop", {{"pid", getpid()}});
  unlink(config_.socket.c_str());
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

Result<std::uint32_t> Broker::TakeOf(Session& session) {
  return session.Take(
      kRecordsPerTurn, *scheduler_, device_.facts, [this](Session& s, std::uint64_t bytes) { Memory(s, bytes); },
      [this](sched::LaunchId id, Session& s, std::uint32_t slot) {
        owners_[id] = {&s, slot};
      });
}

/// Records of all sessions, a few of each; true when there were any.
bool Broker::TakeRecords() {
  bool any = false;
  for (Session* const session : admitted_) {
    if (session->doomed || !session->has_records()) continue;
    const auto taken = TakeOf(*session);
    any = true;
    dirty_ = accounts_dirty_ = true;
    if (taken.ok()) counters_.records += *taken;
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
  const auto [session, slot] = owners_.at(launch);
  session->Grant(slot, end, pump_began_);
}

/// Nanoseconds until something has to be done although nothing happens; nothing: never.
std::optional<std::uint64_t> Broker::SleepTime() const {
  std::optional<std::uint64_t> next = next_pump_;
  const auto consider = [&](std::uint64_t at) {
    if (!next || at < *next) next = at;
  };
  const bool limited = config_.slice_timeout_s != 0 || config_.grant_timeout() != 0;
  const bool slices = limited && (scheduler_->launches() != 0 || (simulation_ != nullptr && !admitted_.empty()));
  if (unadmitted_ != 0 || slices || (accounts_dirty_ && !config_.state.empty())) consider(last_housekeeping_ + kNsPerS);
  if (!next) return std::nullopt;
  const std::uint64_t at = protocol::NowNs();
  return *next <= at ? 0 : *next - at;
}

/// Sleeps until something happens. False when there was something to do before it could.
bool Broker::Sleep() {
  for (Session* const session : admitted_) session->segment().layout().broker_sleeps.store(1, std::memory_order_seq_cst);
  // A record pushed before its writer saw the flag is seen here; one pushed after it comes with the doorbell.
  const bool missed = std::ranges::any_of(admitted_, [](const Session* session) { return session->has_records(); });
  Poll(missed ? std::optional<std::uint64_t>(0) : SleepTime());
  if (!missed) ++counters_.wakeups;
  for (Session* const session : admitted_) session->segment().layout().broker_sleeps.store(0, std::memory_order_seq_cst);
  return !missed;
}

void Broker::Poll(std::optional<std::uint64_t> timeout_ns) {
  epoll_event events[64];
  const int count = WaitForEvents(epoll_.get(), events, timeout_ns);
  last_poll_ = now();
  for (int i = 0; i < count; ++i) {
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
    else OnSocket(*session->second);
  }
  if (last_poll_ - last_housekeeping_ >= kNsPerS) Housekeep();
}

void Broker::Housekeep() {
  last_housekeeping_ = now();
  for (auto& [id, session] : sessions_) {
    if (session->doomed) continue;
    if (!session->admitted()) {
      // Where places get scarce, who says nothing has to go sooner.
      const bool scarce = sessions_.size() * 2 > config_.most_sessions || unadmitted_ * 4 >= config_.most_sessions;
      const bool answered = session->answer.pending;
      const std::uint64_t limit = scarce && !answered ? kNsPerS : config_.hello_timeout_s * kNsPerS;
      const std::uint64_t since = answered ? session->answer.since : session->since;
      if (last_housekeeping_ - since > limit)
        Drop(*session, "refused", answered ? "it did not read its answer" : "it said nothing in time");
      continue;
    }
    if (simulation_ != nullptr && config_.slice_timeout_s != 0) {
      simulation_->Watch(session->id, session->announced() != 0, config_.slice_timeout_s);
    }
    const std::string overdue =
        session->Overdue(last_housekeeping_, {.slice = config_.slice_timeout_s * kNsPerS, .grant = config_.grant_timeout() * kNsPerS});
    if (!overdue.empty()) Drop(*session, "timeout", overdue, protocol::GoodbyeReason::kViolation);
  }
  if (accounts_dirty_) SaveAccounts();
}

// ---- sessions ---------------------------------------------------------------------------------------------------------

/// Why a further connection of that user is refused; null: it is not. Connections that have not said who they are yet may take a
/// quarter of the places per user: one who opens many and says nothing keeps nobody else out.
const char* Broker::TooMany(uid_t uid) const {
  if (sessions_.size() >= config_.most_sessions) return "there are too many sessions";
  if (unadmitted_ * 4 < config_.most_sessions) return nullptr;
  const auto silent =
      std::ranges::count_if(sessions_, [&](const auto& entry) { return !entry.second->admitted() && entry.second->peer.uid == uid; });
  return static_cast<std::size_t>(silent) * 4 < config_.most_sessions ? nullptr : "too many connections have not said who they are";
}

void Broker::Accept() {
  while (true) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const auto peer = protocol::PeerOf(socket.get());
    if (!peer.ok()) continue;
    const char* const too_many = TooMany(peer->uid);
    if (too_many != nullptr) {
      ++counters_.refused;
      protocol::Send(socket.get(), Format(protocol::Text{protocol::MessageType::kRefused, 0, false, too_many}), false);
      continue;
    }
    const std::uint64_t id = next_session_++;
    auto session = std::make_unique<Session>(id, std::move(socket), *peer, now());
    // While the connection stands the number is still that process's: opened now, it means this one for good.
    session->process = Fd(static_cast<int>(syscall(SYS_pidfd_open, peer->pid, 0)));
    if (!Watch(epoll_.get(), session->socket(), EPOLLIN | EPOLLRDHUP, Tag(kSocket, id)).ok()) continue;
    if (session->process) static_cast<void>(Watch(epoll_.get(), session->process.get(), EPOLLIN, Tag(kProcess, id)).ok());
    sessions_.emplace(id, std::move(session));
    ++unadmitted_;
  }
}

void Broker::WatchSocket(const Session& session, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = Tag(kSocket, session.id);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, session.socket(), &event);
}

void Broker::OnSocket(Session& session) {
  if (session.answer.pending) SendAnswer(session);
  for (int i = 0; i < 16 && !session.doomed && !session.answer.pending; ++i) {
    const auto received = protocol::Receive(session.socket(), false);
    if (!received.ok()) return Drop(session, "violation", received.error().message, protocol::GoodbyeReason::kViolation);
    if (received->state == protocol::Received::State::kNothing) return;
    if (received->state == protocol::Received::State::kClosed) return Drop(session, "disconnect", "");
    if (!received->fds.empty()) return Drop(session, "violation", "it sent descriptors", protocol::GoodbyeReason::kViolation);
    const auto message = protocol::ParseMessage(received->bytes);
    if (!message.ok()) return Drop(session, "violation", message.error().message, protocol::GoodbyeReason::kViolation);
    if (const auto* hello = std::get_if<protocol::Hello>(&*message); hello != nullptr && !session.admitted()) Hello(session, *hello);
    else if (const auto* request = std::get_if<protocol::Request>(&*message); request != nullptr && !session.admitted())
      Request(session, *request);
    else return Drop(session, "violation", "a message that has no place here", protocol::GoodbyeReason::kViolation);
  }
}

void Broker::Refuse(Session& session, const std::string& why) {
  ++counters_.refused;
  protocol::Send(session.socket(), Format(protocol::Text{protocol::MessageType::kRefused, 0, false, why}), false);
  Drop(session, "refused", why);
}

void Broker::Hello(Session& session, const protocol::Hello& hello) {
  session.program = hello.program;
  const auto identified = tenants_->Identify(session.peer, hello.tenant, hello.token);
  if (!identified.ok()) return Refuse(session, identified.error().message);
  Tenant& tenant = **identified;
  if (const Status status = session.Admit(tenant.id); !status.ok()) return Refuse(session, status.error().message);
  --unadmitted_;
  ++counters_.sessions;
  if (tenant.sessions++ == 0) Schedule(tenant);
  admitted_.push_back(&session);
  PublishMemory(tenant);
  if (const Status status = Watch(epoll_.get(), session.doorbell(), EPOLLIN | EPOLLET, Tag(kDoorbell, session.id)); !status.ok()) {
    return Drop(session, "disconnect", status.error().message);
  }
  Fd channel;
  if (simulation_ != nullptr) {
    auto joined = simulation_->Join({.session = session.id,
                                     .tenant = tenant.id,
                                     .tenant_name = tenant.config.name,
                                     .program = session.program,
                                     .limits = tenant.config.limits.scheduling});
    if (!joined.ok()) return Drop(session, "disconnect", joined.error().message);
    channel = std::move(joined).value();
  }
  const protocol::Welcome welcome{.session = static_cast<std::uint32_t>(session.id),
                                  .spin_us = config_.spin_us,
                                  .timing = simulation_ != nullptr,
                                  .memory_bytes = MemoryLimit(tenant),
                                  .tenant = tenant.config.name,
                                  .device = device_.id,
                                  .policy = policy_};
  const bool sent =
      channel ? protocol::Send(session.socket(), Format(welcome), false, {session.segment().fd(), session.doorbell(), channel.get()})
              : protocol::Send(session.socket(), Format(welcome), false, {session.segment().fd(), session.doorbell()});
  if (!sent) return Drop(session, "disconnect", "");
  audit_.Note("connect", {{"session", session.id},
                          {"tenant", tenant.config.name},
                          {"pid", session.peer.pid},
                          {"uid", session.peer.uid},
                          {"program", session.program}});
}

/// Makes the scheduler know the tenant's limits. Where time is simulated, caps hold in simulated time.
void Broker::Schedule(const Tenant& tenant) {
  sched::TenantLimits limits = tenant.config.limits.scheduling;
  if (simulation_ != nullptr) limits.cap = 1;
  scheduler_->SetTenant(tenant.id, limits);
}

std::uint64_t Broker::MemoryLimit(const Tenant& tenant) const {
  const std::uint64_t own = tenant.config.limits.memory_bytes;
  return own != 0 ? std::min(own, device_.memory_bytes) : device_.memory_bytes;
}

/// Tells all sessions of the tenant what it may have and has.
void Broker::PublishMemory(const Tenant& tenant) {
  for (Session* const session : admitted_) {
    if (session->tenant != tenant.id || session->doomed) continue;
    protocol::SegmentLayout& layout = session->segment().layout();
    layout.tenant_limit.store(MemoryLimit(tenant), std::memory_order_release);
    layout.tenant_used.store(tenant.memory_bytes, std::memory_order_release);
  }
}

void Broker::Memory(Session& session, std::uint64_t bytes) {
  Tenant& tenant = tenants_->at(session.tenant);
  const std::uint64_t others = tenant.memory_bytes - session.memory_bytes;
  if (bytes <= session.memory_bytes || (bytes <= MemoryLimit(tenant) && others <= MemoryLimit(tenant) - bytes)) {
    session.memory_bytes = bytes;
    tenant.memory_bytes = others + bytes;
    tenant.before.peak_memory_bytes = std::max(tenant.before.peak_memory_bytes, tenant.memory_bytes);
    PublishMemory(tenant);
  } else {
    audit_.Note("memory_refused", {{"session", session.id}, {"tenant", tenant.config.name}, {"bytes", bytes}});
  }
  protocol::SegmentLayout& layout = session.segment().layout();
  layout.memory_bytes.store(session.memory_bytes, std::memory_order_release);
  layout.memory_answers.fetch_add(1, std::memory_order_seq_cst);
  layout.memory_bell.fetch_add(1, std::memory_order_seq_cst);
  protocol::FutexWakeAll(layout.memory_bell);
}

void Broker::Drop(Session& session, std::string_view event, const std::string& why, std::optional<protocol::GoodbyeReason> goodbye) {
  if (session.doomed) return;
  session.doomed = doomed_ = true;
  if (goodbye) {
    protocol::Send(session.socket(),
                   Format(protocol::Text{protocol::MessageType::kGoodbye, static_cast<std::uint32_t>(*goodbye), false, why}), false);
  }
  if (event == "violation" || event == "timeout") ++counters_.dropped;
  Json details{{"session", session.id}, {"pid", session.peer.pid}, {"uid", session.peer.uid}};
  if (session.admitted()) {
    Tenant& tenant = tenants_->at(session.tenant);
    if (event == "disconnect") {  // what it said before it went counts, as far as the ring reaches
      for (std::uint32_t taken = 1, all = 0; taken != 0 && all < protocol::kRingRecords; all += taken) {
        const auto more = TakeOf(session);
        taken = more.ok() ? *more : 0;
      }
    }
    details["tenant"] = tenant.config.name;
    details["launches"] = session.launches;
    if (simulation_ != nullptr) simulation_->Leave(session.id);
    session.Abandon(*scheduler_);
    tenant.memory_bytes -= session.memory_bytes;
    tenant.before.copied_bytes += session.copied_bytes;
    session.copied_bytes = 0;
    --tenant.sessions;
    PublishMemory(tenant);
    dirty_ = accounts_dirty_ = true;
  } else {
    --unadmitted_;
    if (event == "disconnect") return;  // an operator who has got an answer
  }
  if (!why.empty()) details["reason"] = why;
  audit_.Note(event, std::move(details));
  if (event == "violation" || event == "timeout") log_("process " + std::to_string(session.peer.pid) + " is dropped: " + why);
}

/// Frees sessions that ended in this turn, and forgets whose launches were whose.
void Broker::Reap() {
  if (doomed_) {
    doomed_ = false;
    std::erase_if(admitted_, [](const Session* session) { return session->doomed; });
    std::erase_if(owners_, [](const auto& entry) { return entry.second.first->doomed; });
    std::erase_if(sessions_, [](const auto& entry) { return entry.second->doomed; });
  }
}

Account Broker::AccountOf(const Tenant& tenant) const {
  Account account = tenant.before;
  const sched::TenantUsage& usage = scheduler_->usage(tenant.id);
  account.launches += usage.launches;
  account.faults += usage.faults;
  account.slices += usage.slices;
  account.ctas += usage.ctas;
  account.device_seconds += usage.device_time / 1e9;
  if (simulation_ != nullptr) account.simulated_seconds += simulation_->usage(tenant.id).seconds;
  for (const Session* session : admitted_) {
    if (session->tenant == tenant.id) account.copied_bytes += session->copied_bytes;
  }
  return account;
}

void Broker::SaveAccounts() {
  accounts_dirty_ = false;
  if (config_.state.empty()) return;
  Accounts accounts = tenants_->absent();
  for (const Tenant& tenant : tenants_->all()) {
    if (scheduler_->knows(tenant.id)) accounts[tenant.config.name] = AccountOf(tenant);
  }
  const Status status = WriteAccounts(config_.state + "/accounts.json", accounts);
  if (!status.ok() && !accounts_failed_) log_(status.error().message);
  accounts_failed_ = !status.ok();
}

}  // namespace gridloom::broker
