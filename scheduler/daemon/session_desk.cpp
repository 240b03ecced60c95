#include "scheduler/daemon/session_desk.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

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

Status SessionDesk::Open() {
  GL_TRY(listener, Listener::Open(core_.config.socket, core_.config.socket_mode));
  listener_ = std::move(listener);
  return {};
}

Status SessionDesk::Attend() { return Watch(core_.epoll.get(), listener_->fd(), EPOLLIN, Tag(kListener)); }

/// Takes connections that wait; with none left to take, or none that could be, the loop goes on.
void SessionDesk::Accept() {
  using State = Listener::Accepted::State;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Listener::Accepted accepted = listener_->Accept();
    if (accepted.state == State::kNothing) return;
    if (accepted.state == State::kExhausted) return Listen(false);
    if (accepted.state == State::kRefused || !Connect(std::move(accepted.socket))) ++core_.counters.refused;
  }
}

/// Whether those who connect are heard. Where there are no descriptors left they are not, for a moment: the loop would
/// do nothing else.
void SessionDesk::Listen(bool on) {
  epoll_event event{};
  event.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0;
  event.data.u64 = Tag(kListener);
  epoll_ctl(core_.epoll.get(), EPOLL_CTL_MOD, listener_->fd(), &event);
  listen_again_ = on ? std::nullopt : std::optional(protocol::NowNs() + kListenAgainNs);
}

/// False: who connected is refused.
bool SessionDesk::Connect(Fd socket) {
  const auto peer = protocol::PeerOf(socket.get());
  if (!peer.ok()) return false;
  if (const char* const why = core_.places->RefuseConnection(peer->uid); why != nullptr) {
    protocol::Send(socket.get(), Format(protocol::Text{protocol::MessageType::kRefused, 0, false, why}), false);
    return false;
  }
  PeerProcess process = ProcessOf(socket.get(), peer->pid);
  if (process.gone) return false;
  const std::uint64_t id = next_session_++;
  auto session = std::make_unique<Session>(id, std::move(socket), *peer, protocol::NowNs());
  session->process = std::move(process);
  if (!Watch(core_.epoll.get(), session->socket(), EPOLLIN | EPOLLRDHUP, Tag(kSocket, id)).ok()) return false;
  const int pidfd = session->process.pidfd.get();
  if (pidfd >= 0) static_cast<void>(Watch(core_.epoll.get(), pidfd, EPOLLIN, Tag(kProcess, id)).ok());
  core_.sessions.emplace(id, std::move(session));
  core_.places->Connect(peer->uid);
  return true;
}

void SessionDesk::WatchSocket(const Session& session, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = Tag(kSocket, session.id);
  epoll_ctl(core_.epoll.get(), EPOLL_CTL_MOD, session.socket(), &event);
}

void SessionDesk::OnSocket(Session& session) {
  if (session.answer.pending) operators_.SendAnswer(session);
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
      operators_.Request(session, *request);
    else return Drop(session, "violation", "a message that has no place here", protocol::GoodbyeReason::kViolation);
  }
}

void SessionDesk::Refuse(Session& session, const std::string& why) {
  ++core_.counters.refused;
  protocol::Send(session.socket(), Format(protocol::Text{protocol::MessageType::kRefused, 0, false, why}), false);
  Drop(session, "refused", why);
}

void SessionDesk::Hello(Session& session, const protocol::Hello& hello) {
  session.program = hello.program;
  const auto identified = core_.tenants->Identify(session.peer, hello.tenant, hello.token);
  if (!identified.ok()) return Refuse(session, identified.error().message);
  Tenant& tenant = **identified;
  if (!core_.scheduler->knows(tenant.id))
    tenant_desk_.Schedule(tenant);  // whatever becomes of this session: an operator may ask for the tenant
  if (const char* const why = core_.places->RefuseSession(); why != nullptr) return Refuse(session, why);
  if (const Status status = session.Admit(tenant.id); !status.ok()) return Refuse(session, status.error().message);
  core_.places->Admit(session.peer.uid);
  ++core_.counters.sessions;
  ++tenant.sessions;
  tenant.members.push_back(&session);
  core_.admitted.push_back(&session);
  tenant_desk_.PublishMemory(tenant);
  if (const Status status = Watch(core_.epoll.get(), session.doorbell(), EPOLLIN | EPOLLET, Tag(kDoorbell, session.id));
      !status.ok()) {
    return Drop(session, "disconnect", status.error().message);
  }
  Fd channel;
  if (core_.simulation != nullptr) {
    auto joined = core_.simulation->Join({.session = session.id,
                                          .tenant = tenant.id,
                                          .tenant_name = tenant.config.name,
                                          .program = session.program,
                                          .limits = tenant.config.limits.scheduling});
    if (!joined.ok()) return Drop(session, "disconnect", joined.error().message);
    channel = std::move(joined).value();
  }
  const protocol::Welcome welcome{.session = static_cast<std::uint32_t>(session.id),
                                  .spin_us = core_.config.spin_us,
                                  .timing = core_.simulation != nullptr,
                                  .memory_bytes = tenant_desk_.MemoryLimit(tenant),
                                  .tenant = tenant.config.name,
                                  .device = core_.device.source,
                                  .policy = core_.policy};
  const bool sent =
      channel ? protocol::Send(session.socket(), Format(welcome), false,
                               {session.segment().fd(), session.doorbell(), channel.get()})
              : protocol::Send(session.socket(), Format(welcome), false, {session.segment().fd(), session.doorbell()});
  if (!sent) return Drop(session, "disconnect", "");
  core_.writer->Note("connect", tenant.config.name, [&] {
    return Json{{"session", session.id},
                {"tenant", tenant.config.name},
                {"pid", session.peer.pid},
                {"uid", session.peer.uid},
                {"program", session.program}};
  });
}

void SessionDesk::OnMemory(Session& session, std::uint64_t bytes) {
  Tenant& tenant = core_.tenants->at(session.tenant);
  const std::uint64_t others = tenant.memory_bytes - session.memory_bytes;
  if (bytes <= session.memory_bytes ||
      (bytes <= tenant_desk_.MemoryLimit(tenant) && others <= tenant_desk_.MemoryLimit(tenant) - bytes)) {
    session.memory_bytes = bytes;
    tenant.memory_bytes = others + bytes;
    tenant.before.peak_memory_bytes = std::max(tenant.before.peak_memory_bytes, tenant.memory_bytes);
    tenant_desk_.PublishMemory(tenant);
  } else {
    core_.writer->Note("memory_refused", tenant.config.name, [&] {
      return Json{{"session", session.id}, {"tenant", tenant.config.name}, {"bytes", bytes}};
    });
  }
  protocol::SegmentLayout& layout = session.segment().layout();
  layout.memory_bytes.store(session.memory_bytes, std::memory_order_release);
  layout.memory_answers.fetch_add(1, std::memory_order_seq_cst);
  layout.memory_bell.fetch_add(1, std::memory_order_seq_cst);
  protocol::FutexWakeAll(layout.memory_bell);
}

void SessionDesk::Drop(Session& session, std::string_view event, const std::string& why,
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
  if (wrong) ++core_.counters.dropped;
  const bool admitted = session.admitted();
  core_.places->Leave(session.peer.uid, admitted);
  if (admitted) Leave(session, event);
  else if (event == "disconnect") return;  // an operator who has got an answer
  const std::string subject =
      admitted ? core_.tenants->at(session.tenant).config.name : "uid " + std::to_string(session.peer.uid);
  const bool noted = core_.writer->Note(event, subject, [&] {
    Json details{{"session", session.id}, {"pid", session.peer.pid}, {"uid", session.peer.uid}};
    if (admitted) {
      details["tenant"] = subject;
      details["launches"] = session.launches;
    }
    if (!why.empty()) details["reason"] = why;
    return details;
  });
  if (wrong && noted) core_.writer->Say("process " + std::to_string(session.peer.pid) + " is dropped: " + why);
}

void SessionDesk::Terminate(Session& session, const std::string& why) {
  if (session.doomed || session.ending) return;
  protocol::Send(session.socket(),
                 Format(protocol::Text{protocol::MessageType::kGoodbye,
                                       static_cast<std::uint32_t>(protocol::GoodbyeReason::kKilled), false, why}),
                 false);
  if (core_.simulation != nullptr) core_.simulation->Leave(session.id);
  session.Withdraw(*core_.scheduler, *this);
  core_.dirty = core_.accounts_dirty = true;
  DropIfOver(session);
}

void SessionDesk::DropIfOver(Session& session) {
  if (session.ending && !session.runs()) Drop(session, "kill", "an operator ended this session");
}

/// Takes back what the session has.
void SessionDesk::Leave(Session& session, std::string_view event) {
  Tenant& tenant = core_.tenants->at(session.tenant);
  if (event == "disconnect") {  // what it said before it went counts, as far as the ring reaches
    for (std::uint32_t taken = 1, all = 0; taken != 0 && all < protocol::kRingRecords; all += taken) {
      const auto more = TakeOf(session);
      taken = more.ok() ? *more : 0;
    }
  }
  if (core_.simulation != nullptr) core_.simulation->Leave(session.id);
  session.Abandon(*core_.scheduler, *this);
  core_.scheduler->ForgetOwner(session.id);
  tenant.memory_bytes -= session.memory_bytes;
  --tenant.sessions;
  std::erase(tenant.members, &session);
  tenant_desk_.NoteLeft(tenant.id);
  tenant_desk_.PublishMemory(tenant);
  core_.dirty = core_.accounts_dirty = true;
}

/// Frees sessions that ended in this turn.
void SessionDesk::Reap() {
  if (!doomed_) return;
  doomed_ = false;
  std::erase_if(core_.admitted, [](const Session* session) { return session->doomed; });
  std::erase_if(core_.sessions, [](const auto& entry) { return entry.second->doomed; });
  if (listen_again_) Listen(true);  // its descriptors are free
}

Result<std::uint32_t> SessionDesk::TakeOf(Session& session) {
  auto taken = session.Take(kRecordsPerTurn, *core_.scheduler, core_.device.facts, *this);
  if (session.copied_bytes != 0)
    core_.tenants->at(session.tenant).before.copied_bytes += std::exchange(session.copied_bytes, 0);
  return taken;
}

void SessionDesk::OnSubmit(sched::LaunchId launch, Session& session, std::uint32_t slot) {
  core_.owners[launch] = {&session, slot};
}

void SessionDesk::OnEnd(sched::LaunchId launch) { core_.owners.erase(launch); }

}  // namespace gridloom::broker
