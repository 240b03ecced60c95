#include "scheduler/protocol/client.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "rewriter/support/own_thread.h"
#include "scheduler/protocol/wait.h"

namespace gridloom::protocol {
namespace {

constexpr unsigned kHandshakeMs = 10'000;

}  // namespace

Result<std::unique_ptr<Client>> Client::Connect(Options options, bool later) {
  std::unique_ptr<Client> client(new Client(std::move(options)));
  auto connection = client->Open();
  if (connection.ok()) {
    client->current_ = *connection;
    client->connected_ = true;
  } else if (!later) {
    return connection.error();
  } else {
    client->Say(true, connection.error().message + "; the program goes on without it, and joins it when it can");
  }
  // Signals are the program's: none is delivered to our thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  client->thread_ = std::thread([raw = client.get()] {
    BecomeOwnThread();
    raw->ThreadMain();
  });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return client;
}

Client::~Client() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (current_ != nullptr) shutdown(current_->socket.get(), SHUT_RDWR);
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Client::Say(bool warning, const std::string& text) const {
  if (options_.log) options_.log(warning, text);
}

Result<Client::ConnectionPtr> Client::Open() {
  GL_TRY(socket, protocol::Connect(options_.socket, kHandshakeMs));
  if (!Send(socket.get(), Format(Hello{options_.tenant, options_.token, options_.program}), true)) {
    return Error{"the broker on " + options_.socket + " does not take what we say"};
  }
  GL_TRY(received, Receive(socket.get(), true));
  if (received.state != Received::State::kMessage)
    return Error{"the broker on " + options_.socket + " does not answer"};
  GL_TRY(message, ParseMessage(received.bytes));
  if (const auto* text = std::get_if<Text>(&message))
    return Error{"the broker on " + options_.socket + " refuses: " + text->text};
  const auto* const welcome = std::get_if<Welcome>(&message);
  if (welcome == nullptr || received.fds.size() != (welcome->timing ? 3 : 2))
    return Error{"the broker on " + options_.socket + " answers something else"};
  GL_TRY(segment, Segment::Attach(received.fds[0].Release()));
  // From here on the socket is only slept on.
  const timeval forever{0, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
  // Who comes back is not simulated any more: its clock and its streams' order went with the broker that it lost.
  Fd timing = welcome->timing && connections_ == 0 ? std::move(received.fds[2]) : Fd();
  return std::make_shared<Connection>(++connections_, std::move(socket), std::move(segment), std::move(received.fds[1]),
                                      std::move(timing), *welcome);
}

Client::ConnectionPtr Client::Current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

Welcome Client::welcome() const {
  const ConnectionPtr connection = Current();
  return connection != nullptr ? connection->welcome : Welcome{};
}

Fd Client::TakeTiming() {
  const ConnectionPtr connection = Current();
  return connection != nullptr ? std::move(connection->timing) : Fd();
}

std::string Client::end_reason() const {
  const std::lock_guard lock(mutex_);
  return end_reason_;
}

/// Everyone who waits looks again.
void Client::Lose(Connection& connection) {
  connection.lost.store(true, std::memory_order_seq_cst);
  SegmentLayout& layout = connection.segment.layout();
  for (Mailbox& mailbox : layout.mailboxes) {
    mailbox.bell.fetch_add(1, std::memory_order_seq_cst);
    if (mailbox.sleepers.load(std::memory_order_seq_cst) != 0) FutexWakeAll(mailbox.bell);
  }
  layout.memory_bell.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(layout.memory_bell);
  const std::lock_guard lock(connection.mutex);
  connection.slot_freed.notify_all();
}

/// Sleeps on the socket. True when the session is over for good.
bool Client::Serve(Connection& connection) {
  while (true) {
    const auto received = Receive(connection.socket.get(), true);
    if (!received.ok() || received->state == Received::State::kClosed) return false;
    if (received->state == Received::State::kNothing) continue;
    const auto message = ParseMessage(received->bytes);
    if (!message.ok()) return false;
    const auto* const text = std::get_if<Text>(&*message);
    if (text == nullptr || text->type != MessageType::kGoodbye) continue;
    if (text->code == static_cast<std::uint32_t>(GoodbyeReason::kShutdown)) return false;
    const std::lock_guard lock(mutex_);
    end_reason_ = text->text;
    return true;
  }
}

void Client::ThreadMain() {
  std::uint64_t wait_ms = 100;
  while (!stop_) {
    if (const ConnectionPtr connection = Current(); connection != nullptr) {
      const bool over = Serve(*connection);
      if (over) ended_.store(true, std::memory_order_release);
      connected_.store(false, std::memory_order_release);
      Lose(*connection);
      if (over && !stop_) {
        if (options_.ended) options_.ended(end_reason());
        return;
      }
      if (!stop_) {
        Say(true,
            "the broker on " + options_.socket + " is gone" +
                (options_.reconnect ? "; the program goes on without it, and joins it again when it is back" : ""));
      }
      const std::lock_guard lock(mutex_);
      current_ = nullptr;
      wait_ms = 100;
    }
    if (!options_.reconnect) return;
    {
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return stop_.load(); });
      if (stop_) return;
    }
    wait_ms = std::min<std::uint64_t>(wait_ms * 2, 2000);
    auto connection = Open();
    if (!connection.ok()) continue;
    {
      const std::lock_guard lock(mutex_);
      current_ = *connection;
    }
    if (memory_ != 0) Ask(**connection, memory_);
    connected_.store(true, std::memory_order_release);
    const bool was_there = (*connection)->number > 1;
    Say(true, "the broker on " + options_.socket + (was_there ? " is back" : " is there") +
                  ", and schedules this program's launches from now on" +
                  (was_there && (*connection)->welcome.timing ? "; their time is simulated no more" : ""));
  }
}

/// Holding the connection's mutex.
bool Client::Push(Connection& connection, RawRecord record) {
  record.copied_bytes = copied_.exchange(0, std::memory_order_relaxed);
  while (!connection.writer.Push(record)) {
    // The broker takes records at once, or it is gone; ours are few (kSlots launches with one slice each).
    if (connection.lost.load(std::memory_order_acquire)) return false;
    std::this_thread::yield();
  }
  if (connection.writer.must_ring()) {
    const std::uint64_t one = 1;
    static_cast<void>(!write(connection.doorbell.get(), &one, sizeof one));
  }
  return true;
}

void Client::AbandonAfterFork() {
  // The parent's lock may be held by a thread that is not here. The connection lives as long as `this`, which is never
  // freed.
  if (const Connection* const connection = current_.get()) close(connection->socket.get());
}

Verdict Client::Announce(const LaunchRecord& launch, Ticket* ticket) {
  *ticket = {};
  if (ended()) return Verdict::kEnded;
  const ConnectionPtr connection = Current();
  if (connection == nullptr) return Verdict::kLost;
  std::unique_lock lock(connection->mutex);
  connection->slot_freed.wait(lock, [&] { return !connection->free_slots.empty() || connection->lost; });
  if (connection->lost) return ended() ? Verdict::kEnded : Verdict::kLost;
  ticket->slot = connection->free_slots.back();
  ticket->launch = ++connection->launches;
  ticket->connection = connection->number;
  connection->free_slots.pop_back();
  RawRecord record;
  record.kind = static_cast<std::uint32_t>(RecordKind::kLaunch);
  record.slot = ticket->slot;
  record.launch = ticket->launch;
  record.value = launch.ctas;
  record.kernel = launch.kernel;
  record.stream = launch.stream;
  record.threads_per_cta = launch.threads_per_cta;
  record.registers_per_thread = launch.registers_per_thread;
  record.shared_bytes = launch.shared_bytes;
  record.priority = launch.priority;
  record.flags = launch.divisible ? kDivisible : 0;
  SetField(record.name, launch.name);
  return Push(*connection, record) ? Verdict::kGranted : Verdict::kLost;
}

/// Spins a little, then sleeps on the bell until `ready`; false when the connection was lost first.
template <typename Ready>
bool Client::WaitForWord(Connection& connection, std::atomic<std::uint32_t>& bell, std::atomic<std::uint32_t>* sleepers,
                         const Ready& ready) {
  const std::uint64_t until = NowNs() + connection.spin.budget_ns();
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) {
        connection.spin.Came();
        return true;
      }
      Relax();
    }
    if (connection.lost.load(std::memory_order_acquire)) return false;
  } while (NowNs() < until);
  connection.spin.Slept();
  while (true) {
    const std::uint32_t seen = bell.load(std::memory_order_seq_cst);
    if (sleepers != nullptr) sleepers->store(1, std::memory_order_seq_cst);
    const bool is_ready = ready();
    if (!is_ready && !connection.lost.load(std::memory_order_seq_cst)) {
      FutexWait(bell, seen);
      continue;
    }
    if (sleepers != nullptr) sleepers->store(0, std::memory_order_relaxed);
    return is_ready;
  }
}

Verdict Client::Wait(const Ticket& ticket, std::uint64_t done, std::uint64_t* granted) {
  const ConnectionPtr connection = Current();
  if (connection == nullptr || connection->number != ticket.connection)
    return ended() ? Verdict::kEnded : Verdict::kLost;
  Mailbox& mailbox = connection->segment.layout().mailboxes[ticket.slot];
  const auto ready = [&] {
    if (mailbox.launch.load(std::memory_order_acquire) != ticket.launch) return false;
    *granted = mailbox.granted.load(std::memory_order_acquire);
    return *granted > done;
  };
  if (WaitForWord(*connection, mailbox.bell, &mailbox.sleepers, ready))
    return ended() ? Verdict::kEnded : Verdict::kGranted;
  return ended() ? Verdict::kEnded : Verdict::kLost;
}

void Client::Progress(const Ticket& ticket, std::uint64_t done) {
  const ConnectionPtr connection = Current();
  if (connection == nullptr || connection->number != ticket.connection) return;
  RawRecord record;
  record.kind = static_cast<std::uint32_t>(RecordKind::kProgress);
  record.slot = ticket.slot;
  record.launch = ticket.launch;
  record.value = done;
  const std::lock_guard lock(connection->mutex);
  Push(*connection, record);
}

void Client::End(const Ticket& ticket, std::uint64_t done, bool faulted) {
  const ConnectionPtr connection = Current();
  if (connection == nullptr || connection->number != ticket.connection || ticket.launch == 0) return;
  RawRecord record;
  record.kind = static_cast<std::uint32_t>(RecordKind::kEnd);
  record.slot = ticket.slot;
  record.launch = ticket.launch;
  record.value = done;
  record.flags = faulted ? kFaulted : 0;
  const std::lock_guard lock(connection->mutex);
  Push(*connection, record);
  connection->free_slots.push_back(ticket.slot);
  connection->slot_freed.notify_one();
}

/// Sends the question for `bytes` of memory.
void Client::Ask(Connection& connection, std::uint64_t bytes) {
  const std::lock_guard lock(connection.mutex);
  RawRecord record;
  record.kind = static_cast<std::uint32_t>(RecordKind::kMemory);
  record.value = bytes;
  if (Push(connection, record)) ++connection.memory_asked;
}

bool Client::Reserve(std::uint64_t bytes) {
  const std::lock_guard one(memory_mutex_);
  const ConnectionPtr connection = Current();
  if (connection == nullptr) return !ended();  // nobody limits us
  if (bytes > kMostBytes) return false;
  SegmentLayout& layout = connection->segment.layout();
  Ask(*connection, bytes);
  const auto answered = [&] {
    return layout.memory_answers.load(std::memory_order_acquire) >=
           connection->memory_asked.load(std::memory_order_relaxed);
  };
  if (!WaitForWord(*connection, layout.memory_bell, nullptr, answered)) return !ended();
  const std::uint64_t allowed = layout.memory_bytes.load(std::memory_order_acquire);
  memory_ = allowed;
  return allowed >= bytes;
}

bool Client::MemoryInfo(std::uint64_t* limit, std::uint64_t* used) const {
  const ConnectionPtr connection = Current();
  if (connection == nullptr) return false;
  const SegmentLayout& layout = connection->segment.layout();
  *limit = layout.tenant_limit.load(std::memory_order_acquire);
  *used = layout.tenant_used.load(std::memory_order_acquire);
  return true;
}

}  // namespace gridloom::protocol
