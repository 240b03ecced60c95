// Which work of streams comes before which, as the program's calls order it, whatever has run first (memcheck,
// docs/memcheck.md#streams).
//
// Works are counted. A clock has for each stream the number of its last work that comes before something: before the
// next work of a stream, or before what the host does next. The host is one, with all its threads: what one of them has
// waited for is over for all.
//
// What a work comes after is known when it is submitted, but for what flags in memory tell: a kernel that looks at
// memory which the host writes comes, from then on, after all that the host had seen. Such order is kept beside the
// clocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gridloom::session {

class Context;
class Event;
class Stream;

class StreamOrder {
 public:
  struct Clock {
    std::map<std::uint64_t, std::uint64_t> last;  ///< by stream
    std::uint64_t floor = 0;                      ///< all works up to this one come before
    bool all = false;                             ///< everything comes before: the order is not known
    void Join(const Clock& other);
    void Join(std::uint64_t stream, std::uint64_t number);
    bool Holds(std::uint64_t stream, std::uint64_t number) const;
    bool Holds(const Clock& other) const;
  };
  /// A work.
  struct Place {
    std::uint64_t stream = 0, number = 0;
    std::shared_ptr<const Clock> before;  ///< of other streams
    std::string name;                     ///< of the stream
  };

  /// The next work of the stream.
  Place Add(const Stream& stream);
  void Record(const Stream& stream, const Event& event);
  void WaitForEvent(const Stream& stream, const Event& event);
  /// What the stream does next comes behind a work of another one.
  void WaitForWork(const Stream& stream, const Place& work);
  bool IsBefore(const Place& earlier, const Place& later) const;
  /// What the host has seen so far comes before what the work does from here on, and before what comes after the work.
  void LooksAtHost(const Place& work);
  /// What the stream does next waits for a value in memory, which anybody may write.
  void WaitForValue(const Stream& stream);

  // The host has waited for it, or has seen that it is over.
  void HostSees(const Place& place);
  void HostSees(const Event& event);
  void HostSees(const Stream& stream);
  void HostSeesAll(const Context& context);

 private:
  struct State {
    const Context* context = nullptr;
    bool legacy = false, blocking = false;
    std::uint64_t made = 0;    ///< works counted when this was made: those of the stream among them the host has seen
    std::uint64_t number = 0;  ///< of its last work
    std::shared_ptr<const Clock> before = std::make_shared<const Clock>();
  };
  State& StateOf(const Stream& stream);
  static void Add(State& state, const Clock& clock);
  Clock WholeOf(std::uint64_t id, const State& state) const;
  void HostJoins(const Clock& clock);
  void Forget();
  void RaiseFloor();
  void JoinAll(Clock& clock, const Context* context, bool blocking_alone) const;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, State> streams_;
  std::vector<std::uint64_t> legacy_;  ///< of `streams_`
  std::map<const Event*, Clock> events_;
  std::size_t most_events_ = 1024;  ///< with so many, those go that the host has seen
  Clock host_;                      ///< never `all`
  /// What the host had seen when a work, by stream and number, looked at its memory last.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Clock> looks_;
  std::size_t most_looks_ = 1024;  ///< as with events
  std::uint64_t works_ = 0;
};

}  // namespace gridloom::session
