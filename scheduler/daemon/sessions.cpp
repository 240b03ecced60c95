// Connections and sessions of the broker: who comes, what a session may do besides launching, and how it ends.
#include <sys/epoll.h>

#include <algorithm>

#include "scheduler/daemon/broker.h"
#include "scheduler/daemon/events.h"
#include "scheduler/protocol/wait.h"

namespace gridloom::broker {

using protocol::Fd;
using Json = nlohmann::ordered_json;

namespace {

/// Records taken of one session before the next one's turn, and connections before the loop's.
constexpr std::uint32_t kRecordsPerTurn = 64;
constexpr int kAcceptsPerTurn = 64;
constexpr std::uint64_t kListenAgainNs = 100'000'000;

}  // namespace

/// Takes connections that wait; with none left to take, or none that could be, the loop goes on.
void Broker::Accept() {
  using State = Listener::Accepted::State;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Listener::Accepted accepted = listener_->Accept();
    if (accepted.state == State::kNothing) return;
    if (accepted.state == State::kExhausted) return Listen(false);
    if (accepted.state == State::kRefused || !Connect(std::move(accepted.socket))) ++counters_.refused;
  }
}

/// Whether those who connect are heard. Where there are no descriptors left they are not, for a moment: the loop would
/// do nothing else.
void Broker::Listen(bool on) {
  epoll_event event{};
  event.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0;
  event.data.u64 = Tag(kListener);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_->fd(), &event);
  listen_again_ = on ? std::nullopt : std::optional(now() + kListenAgainNs);
}

/// False: who connected is refused.
bool Broker::Connect(Fd socket) {
  const auto peer = protocol::PeerOf(socket.get());
  if (!peer.ok()) return false;
  if (const char* const why = places_->RefuseConnection(peer->uid); why != nullptr) {
    protocol::Send(socket.get(), Format(protocol::Text{protocol::MessageType::kRefused, 0, false, why}), false);
    return false;
  }
  PeerProcess process = ProcessOf(socket.get(), peer->pid);
  if (process.gone) return false;
  const std::uint64_t id = next_session_++;
  auto session = std::make_unique<Session>(id, std::move(socket), *peer, now());
  session->process = std::move(process);
  if (!Watch(epoll_.get(), session->socket(), EPOLLIN | EPOLLRDHUP, Tag(kSocket, id)).ok()) return false;
  const int pidfd = session->process.pidfd.get();
  if (pidfd >= 0) static_cast<void>(Watch(epoll_.get(), pidfd, EPOLLIN, Tag(kProcess, id)).ok());
  sessions_.emplace(id, std::move(session));
  places_->Connect(peer->uid);
  return true;
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
    if (!received.ok())
      return Drop(session, "violation", received.error().message, protocol::GoodbyeReason::kViolation);
    if (received->state == protocol::Received::State::kNothing) return;
    if (received->state == protocol::Received::State::kClosed) return Drop(session, "disconnect", "");
    if (!received->fds.empty())
      return Drop(session, "violation", "it sent descriptors", protocol::GoodbyeReason::kViolation);
    const auto message = protocol::ParseMessage(received->bytes);
    if (!message.ok()) return Drop(session, "violation", message.error().message, protocol::GoodbyeReason::kViolation);
    if (const auto* hello = std::get_if<protocol::Hello>(&*message); hello != nullptr && !session.admitted())
      Hello(session, *hello);
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
  if (!scheduler_->knows(tenant.id))
    Schedule(tenant);  // whatever becomes of this session: an operator may ask for the tenant
  if (const char* const why = places_->RefuseSession(); why != nullptr) return Refuse(session, why);
  if (const Status status = session.Admit(tenant.id); !status.ok()) return Refuse(session, status.error().message);
  places_->Admit(session.peer.uid);
  ++counters_.sessions;
  ++tenant.sessions;
  tenant.members.push_back(&session);
  admitted_.push_back(&session);
  PublishMemory(tenant);
  if (const Status status = Watch(epoll_.get(), session.doorbell(), EPOLLIN | EPOLLET, Tag(kDoorbell, session.id));
      !status.ok()) {
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
                                  .device = device_.source,
                                  .policy = policy_};
  const bool sent =
      channel ? protocol::Send(session.socket(), Format(welcome), false,
                               {session.segment().fd(), session.doorbell(), channel.get()})
              : protocol::Send(session.socket(), Format(welcome), false, {session.segment().fd(), session.doorbell()});
  if (!sent) return Drop(session, "disconnect", "");
  writer_->Note("connect", tenant.config.name, [&] {
    return Json{{"session", session.id},
                {"tenant", tenant.config.name},
                {"pid", session.peer.pid},
                {"uid", session.peer.uid},
                {"program", session.program}};
  });
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
  for (Session* const session : tenant.members) {
    if (session->doomed) continue;
    protocol::SegmentLayout& layout = session->segment().layout();
    layout.tenant_limit.store(MemoryLimit(tenant), std::memory_order_release);
    layout.tenant_used.store(tenant.memory_bytes, std::memory_order_release);
  }
}

void Broker::OnMemory(Session& session, std::uint64_t bytes) {
  Tenant& tenant = tenants_->at(session.tenant);
  const std::uint64_t others = tenant.memory_bytes - session.memory_bytes;
  if (bytes <= session.memory_bytes || (bytes <= MemoryLimit(tenant) && others <= MemoryLimit(tenant) - bytes)) {
    session.memory_bytes = bytes;
    tenant.memory_bytes = others + bytes;
    tenant.before.peak_memory_bytes = std::max(tenant.before.peak_memory_bytes, tenant.memory_bytes);
    PublishMemory(tenant);
  } else {
    writer_->Note("memory_refused", tenant.config.name, [&] {
      return Json{{"session", session.id}, {"tenant", tenant.config.name}, {"bytes", bytes}};
    });
  }
  protocol::SegmentLayout& layout = session.segment().layout();
  layout.memory_bytes.store(session.memory_bytes, std::memory_order_release);
  layout.memory_answers.fetch_add(1, std::memory_order_seq_cst);
  layout.memory_bell.fetch_add(1, std::memory_order_seq_cst);
  protocol::FutexWakeAll(layout.memory_bell);
}

void Broker::Drop(Session& session, std::string_view event, const std::string& why,
                  std::optional<protocol::GoodbyeReason> goodbye) {
  if (session.doomed) return;
  session.doomed = doomed_ = true;
  if (goodbye) {
    protocol::Send(
        session.socket(),
        Format(protocol::Text{protocol::MessageType::kGoodbye, static_cast<std::uint32_t>(*goodbye), false, why}),
        false);
  }
  const bool wrong = event == "violation" || event == "timeout";
  if (wrong) ++counters_.dropped;
  const bool admitted = session.admitted();
  places_->Leave(session.peer.uid, admitted);
  if (admitted) Leave(session, event);
  else if (event == "disconnect") return;  // an operator who has got an answer
  const std::string subject =
      admitted ? tenants_->at(session.tenant).config.name : "uid " + std::to_string(session.peer.uid);
  const bool noted = writer_->Note(event, subject, [&] {
    Json details{{"session", session.id}, {"pid", session.peer.pid}, {"uid", session.peer.uid}};
    if (admitted) {
      details["tenant"] = subject;
      details["launches"] = session.launches;
    }
    if (!why.empty()) details["reason"] = why;
    return details;
  });
  if (wrong && noted) writer_->Say("process " + std::to_string(session.peer.pid) + " is dropped: " + why);
}

void Broker::Terminate(Session& session, const std::string& why) {
  if (session.doomed || session.ending) return;
  protocol::Send(session.socket(),
                 Format(protocol::Text{protocol::MessageType::kGoodbye,
                                       static_cast<std::uint32_t>(protocol::GoodbyeReason::kKilled), false, why}),
                 false);
  if (simulation_ != nullptr) simulation_->Leave(session.id);
  session.Withdraw(*scheduler_, *this);
  dirty_ = accounts_dirty_ = true;
  DropIfOver(session);
}

void Broker::DropIfOver(Session& session) {
  if (session.ending && !session.runs()) Drop(session, "kill", "an operator ended this session");
}

/// Takes back what the session has.
void Broker::Leave(Session& session, std::string_view event) {
  Tenant& tenant = tenants_->at(session.tenant);
  if (event == "disconnect") {  // what it said before it went counts, as far as the ring reaches
    for (std::uint32_t taken = 1, all = 0; taken != 0 && all < protocol::kRingRecords; all += taken) {
      const auto more = TakeOf(session);
      taken = more.ok() ? *more : 0;
    }
  }
  if (simulation_ != nullptr) simulation_->Leave(session.id);
  session.Abandon(*scheduler_, *this);
  scheduler_->ForgetOwner(session.id);
  tenant.memory_bytes -= session.memory_bytes;
  --tenant.sessions;
  std::erase(tenant.members, &session);
  left_.push_back(tenant.id);
  PublishMemory(tenant);
  dirty_ = accounts_dirty_ = true;
}

/// Frees sessions that ended in this turn.
void Broker::Reap() {
  if (!doomed_) return;
  doomed_ = false;
  std::erase_if(admitted_, [](const Session* session) { return session->doomed; });
  std::erase_if(sessions_, [](const auto& entry) { return entry.second->doomed; });
  if (listen_again_) Listen(true);  // its descriptors are free
}

Result<std::uint32_t> Broker::TakeOf(Session& session) {
  auto taken = session.Take(kRecordsPerTurn, *scheduler_, device_.facts, *this);
  if (session.copied_bytes != 0)
    tenants_->at(session.tenant).before.copied_bytes += std::exchange(session.copied_bytes, 0);
  return taken;
}

void Broker::OnSubmit(sched::LaunchId launch, Session& session, std::uint32_t slot) {
  owners_[launch] = {&session, slot};
}

void Broker::OnEnd(sched::LaunchId launch) { owners_.erase(launch); }

}  // namespace gridloom::broker
