// What travels over the crossbar. SMs and memory partitions share nothing else while a window of cycles is simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/divisor.h"

namespace gridloom::timing {

enum class RequestKind : std::uint8_t {
  kRead,       ///< answered with the sectors
  kWrite,      ///< answered when accepted
  kAtomic,     ///< answered with the sectors
  kReduce,     ///< an atomic without a result: answered when done
  kWriteBack,  ///< a dirty line of L1: not answered
};

/// SM to memory partition; one line of 128 bytes.
struct Request {
  Cycle arrival = 0;       ///< at the L2 slice, SM cycles; the partition converts it to its own clock
  std::uint64_t line = 0;  ///< address / 128
  std::uint32_t launch = 0;
  std::uint16_t sm = 0;
  std::uint16_t id = 0;  ///< comes back with the answer
  std::uint16_t partition = 0;
  RequestKind kind = RequestKind::kRead;
  std::uint8_t slice = 0;    ///< of the partition
  std::uint8_t sectors = 0;  ///< mask
  std::uint8_t partial = 0;  ///< mask of the sectors that a write does not cover
  std::uint8_t lanes = 0;    ///< atomics: most lanes on one address
};
static_assert(sizeof(Request) == 32);

/// A request at its L2 slice; smaller, since so many wait.
struct QueuedRequest {
  QueuedRequest() = default;
  QueuedRequest(const Request& request, Cycle at)
      : at_and_sm(at << 16 | request.sm),
        line(request.line),
        sectors(request.sectors),
        partial(request.partial),
        lanes(request.lanes),
        kind_number(static_cast<std::uint8_t>(request.kind)),
        launch(request.launch),
        id(request.id) {}

  std::uint64_t order() const { return at_and_sm; }
  std::uint16_t sm() const { return static_cast<std::uint16_t>(at_and_sm); }
  RequestKind kind() const { return static_cast<RequestKind>(kind_number); }

  std::uint64_t at_and_sm = 0;  ///< L2 cycle of the arrival << 16 | SM
  std::uint64_t line : 46 = 0;  ///< of the slice
  std::uint64_t sectors : 4 = 0;
  std::uint64_t partial : 4 = 0;
  std::uint64_t lanes : 6 = 0;
  std::uint64_t kind_number : 4 = 0;
  std::uint32_t launch = 0;
  std::uint16_t id = 0;
};
static_assert(sizeof(QueuedRequest) == 24);

/// Memory partition to SM.
struct Response {
  Cycle arrival = 0;  ///< at the SM's port, SM cycles
  std::uint16_t sm = 0;
  std::uint16_t id = 0;
  std::uint16_t source = 0;  ///< L2 slice of the device
  RequestKind kind = RequestKind::kRead;
  std::uint8_t sectors = 0;

  std::uint64_t order() const { return arrival << 16 | source; }
};
static_assert(sizeof(Response) == 16);

/// What a component sends, by the host thread that runs the receivers: receiver r is of group r % groups. Receivers take what was sealed,
/// while the component may already send what comes after it.
template <typename Message>
class Outbox {
 public:
  explicit Outbox(std::uint32_t groups) : count_(groups), open_(groups), sealed_(groups) {}
  /// A message to be filled in where it lies: one that is put together elsewhere and copied keeps the host's processor waiting, which
  /// cannot read many small stores as one.
  Message& New(std::uint32_t receiver) { return open_[count_.Remainder(receiver)].emplace_back(); }
  /// When neither the component nor its receivers run; what was sealed before must have been taken.
  void Seal() { open_.swap(sealed_); }
  std::vector<Message>& sealed(std::size_t group) { return sealed_[group]; }

 private:
  Divisor count_;
  std::vector<std::vector<Message>> open_, sealed_;
};

}  // namespace gridloom::timing
