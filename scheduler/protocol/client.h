// A tenant's side of the broker: one connection per process. Any thread may announce a launch and wait for its grants;
// one thread of ours sleeps on the socket and notices when the broker goes, ends the session, or can be reached again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/protocol/message.h"
#include "scheduler/protocol/segment.h"
#include "scheduler/protocol/socket.h"
#include "scheduler/protocol/wait.h"

namespace gridloom::protocol {

/// How the broker answers a tenant that waits.
enum class Verdict : std::uint8_t {
  kGranted,  ///< more CTAs may run
  kLost,     ///< the broker is gone: nobody schedules this launch any more
  kEnded,    ///< the broker ended the session: nothing of this process may run any more
};

class Client {
 public:
  struct Options {
    std::string socket;
    std::string tenant, token, program;
    bool reconnect = true;                                      ///< look for the broker again after it was lost
    std::function<void(bool warning, const std::string&)> log;  ///< may be empty
    /// Told why the broker has ended the session, once, on a thread of the client's, which has nothing else to do then.
    /// May be empty.
    std::function<void(const std::string& why)> ended{};
  };

  /// A first connection; an error that says what to do. With `later` a broker that cannot be reached now is looked for
  /// again.
  static Result<std::unique_ptr<Client>> Connect(Options options, bool later = false);
  ~Client();

  /// One launch as the broker knows it.
  struct Ticket {
    std::uint32_t slot = 0;
    std::uint64_t launch = 0;      ///< 0: the broker does not know it
    std::uint64_t connection = 0;  ///< which one it was announced on
  };

  /// Tells the broker of a launch that may run now. Waits while kSlots launches are announced. kGranted: the ticket
  /// holds.
  Verdict Announce(const LaunchRecord& launch, Ticket* ticket);
  /// Returns when CTAs beyond `done` may run; `*granted` is how far.
  Verdict Wait(const Ticket& ticket, std::uint64_t done, std::uint64_t* granted);
  void Progress(const Ticket& ticket, std::uint64_t done);
  void End(const Ticket& ticket, std::uint64_t done, bool faulted);

  /// Device memory: makes sure that the process may use `bytes` in all. False: the tenant's limit does not allow it.
  bool Reserve(std::uint64_t bytes);
  /// What the tenant may use, and what all its processes use; false when the broker is gone.
  bool MemoryInfo(std::uint64_t* limit, std::uint64_t* used) const;
  void AddCopied(std::uint64_t bytes) { copied_.fetch_add(bytes, std::memory_order_relaxed); }

  /// In a forked child: closes what is the parent's, and touches nothing else.
  void AbandonAfterFork();

  bool connected() const { return connected_.load(std::memory_order_acquire); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// Why the session ended.
  std::string end_reason() const;
  Welcome welcome() const;
  /// The channel to the timing model that the first connection came with, once; empty when the broker does not simulate
  /// time.
  Fd TakeTiming();

 private:
  /// What belongs to one connection; replaced when the broker comes back. Threads that use it hold a reference.
  struct Connection {
    Connection(std::uint64_t number, Fd socket, Segment segment, Fd doorbell, Fd timing, Welcome welcome)
        : number(number),
          socket(std::move(socket)),
          segment(std::move(segment)),
          doorbell(std::move(doorbell)),
          timing(std::move(timing)),
          welcome(std::move(welcome)),
          spin(this->welcome.spin_us * std::uint64_t{1000}),
          writer(this->segment.layout()) {
      free_slots.reserve(kSlots);
      for (std::uint32_t slot = kSlots; slot-- > 0;) free_slots.push_back(slot);
    }
    const std::uint64_t number;
    const Fd socket;
    const Segment segment;
    const Fd doorbell;
    Fd timing;  ///< until somebody takes it
    const Welcome welcome;
    AdaptiveSpin spin;
    std::atomic<bool> lost{false};

    std::mutex mutex;  ///< guards what follows
    RingWriter writer;
    std::vector<std::uint32_t> free_slots;
    std::condition_variable slot_freed;
    std::uint64_t launches = 0;
    std::atomic<std::uint64_t> memory_asked{0};  ///< kMemory records sent
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  explicit Client(Options options) : options_(std::move(options)) {}
  Result<ConnectionPtr> Open();
  void ThreadMain();
  bool Serve(Connection& connection);
  void Lose(Connection& connection);
  bool Push(Connection& connection, RawRecord record);
  ConnectionPtr Current() const;
  template <typename Ready>
  bool WaitForWord(Connection& connection, std::atomic<std::uint32_t>& bell, std::atomic<std::uint32_t>* sleepers,
                   const Ready& ready);
  void Ask(Connection& connection, std::uint64_t bytes);
  void Say(bool warning, const std::string& text) const;

  const Options options_;
  std::atomic<bool> connected_{false}, ended_{false}, stop_{false};
  std::atomic<std::uint64_t> copied_{0};
  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable stopped_;
  ConnectionPtr current_;
  std::string end_reason_;
  std::atomic<std::uint64_t> memory_{
      0};  ///< bytes that the process was allowed last: what a broker that comes back has to know
  std::uint64_t connections_ = 0;
  std::mutex memory_mutex_;  ///< one question at a time
  std::thread thread_;
};

}  // namespace gridloom::protocol
