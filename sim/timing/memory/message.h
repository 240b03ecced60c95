// What travels over the crossbar. SMs and memory partitions share nothing else while a window of cycles is simulated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/divisor.h"
#include "sim/timing/state_walk.h"

namespace gridloom::timing {

enum class RequestKind : std::uint8_t {
  kRead,       ///< answered with the sectors
  kWrite,      ///< answered when accepted
  kAtomic,     ///< answered with the sectors
  kReduce,     ///< an atomic without a result: answered when done
  kWriteBack,  ///< a dirty line of L1: not answered
  kFlush,      ///< of a part (device_input.h): the line is written back if it is dirty, and dropped: not answered
  kSweep,   ///< of a part: the same for all lines of the slice that the part names when it arrives; it has no line, but
            ///< a tag
  kCopied,  ///< of a copy or fill that has ended: lines from this one on, as many as `launch` says, are in L2
};

/// SM to memory partition; one line of 128 bytes. Four words, since so many wait at their slices.
class Request {
 public:
  static constexpr unsigned kLineBits = 40;
  static constexpr std::uint16_t kNobody = 0xffff;  ///< in place of an SM: a part's request, which is not answered
  struct Fields {
    Cycle arrival = 0;       ///< at the L2 slice; SM cycles
    std::uint64_t line = 0;  ///< of the slice, below 2^kLineBits
    std::uint32_t launch = 0;
    std::uint16_t sm = 0;
    std::uint16_t id = 0;  ///< comes back with the answer
    std::uint16_t partition = 0;
    RequestKind kind = RequestKind::kRead;
    std::uint8_t slice = 0;    ///< of the partition, below 64
    std::uint8_t sectors = 0;  ///< mask
    std::uint8_t partial = 0;  ///< mask of the sectors that a write does not cover
    std::uint8_t lanes = 0;    ///< atomics: most lanes on one address, at most 32
    bool is_float = false;     ///< atomics: of floating point
    std::uint32_t words = 0;   ///< mask of the words of the line that a write covers; of sectors in `partial`
  };
  Request() = default;
  explicit Request(const Fields& fields)
      : order_(fields.arrival << 16 | fields.sm),
        access_(fields.line << kLineAt | std::uint64_t{fields.slice} << kSliceAt |
                std::uint64_t{fields.is_float} << kFloatAt |
                std::uint64_t{fields.lanes == 0 ? 0u : fields.lanes - 1u} << kLanesAt |
                std::uint64_t{fields.partial} << kPartialAt | std::uint64_t{fields.sectors} << kSectorsAt |
                static_cast<std::uint64_t>(fields.kind)),
        names_(std::uint64_t{fields.launch} << 32 | std::uint64_t{fields.id} << 16 | fields.partition),
        words_(fields.words) {}

  std::uint64_t order() const { return order_; }  ///< arrival << 16 | SM
  Cycle arrival() const { return order_ >> 16; }
  std::uint16_t sm() const { return static_cast<std::uint16_t>(order_); }
  std::uint64_t line() const { return access_ >> kLineAt; }
  std::uint8_t slice() const { return Bits(kSliceAt, 6); }
  /// Of an atomic.
  std::uint8_t lanes() const { return static_cast<std::uint8_t>(Bits(kLanesAt, 5) + 1); }
  bool is_float() const { return Bits(kFloatAt, 1) != 0; }
  std::uint8_t partial() const { return Bits(kPartialAt, 4); }
  std::uint32_t words() const { return words_; }
  std::uint8_t sectors() const { return Bits(kSectorsAt, 4); }
  RequestKind kind() const { return static_cast<RequestKind>(Bits(0, kSectorsAt)); }
  std::uint32_t launch() const { return static_cast<std::uint32_t>(names_ >> 32); }
  std::uint16_t id() const { return static_cast<std::uint16_t>(names_ >> 16); }
  std::uint16_t partition() const { return static_cast<std::uint16_t>(names_); }

  /// Walks a message whose arrival is in the clock of the slice.
  void Walk(StateWalk& walk);
  /// The same with the arrival in the clock of the slice.
  Request At(Cycle arrival) const {
    Request request = *this;
    request.order_ = arrival << 16 | sm();
    return request;
  }

 private:
  static constexpr unsigned kSectorsAt = 4, kPartialAt = 8, kLanesAt = 12, kFloatAt = 17, kSliceAt = 18, kLineAt = 24;
  static_assert(kLineAt + kLineBits == 64);
  std::uint8_t Bits(unsigned at, unsigned count) const {
    return static_cast<std::uint8_t>(access_ >> at & ((1u << count) - 1));
  }

  std::uint64_t order_ = 0, access_ = 0, names_ = 0;
  std::uint32_t words_ = 0;
};
static_assert(sizeof(Request) == 32);

/// Memory partition to SM.
struct Response {
  Cycle arrival = 0;  ///< at the SM's port, SM cycles
  std::uint16_t sm = 0;
  std::uint16_t id = 0;
  std::uint16_t source = 0;  ///< L2 slice of the device
  RequestKind kind = RequestKind::kRead;
  std::uint8_t sectors = 0;

  std::uint64_t order() const { return arrival << 16 | source; }
  void Walk(StateWalk& walk);
};
static_assert(sizeof(Response) == 16);

/// An SM has an entry for it until it is answered.
inline bool HasEntry(RequestKind kind) { return kind == RequestKind::kRead || kind == RequestKind::kAtomic; }

inline void Request::Walk(StateWalk& walk) {
  Cycle at = arrival();
  walk.L2NotBefore(at);
  *this = At(at);
  walk.Word(access_);
  walk.Word(words_);
  walk.Word(std::uint64_t{launch()} << 32 | std::uint64_t{sm()} << 16 | partition());
  if (HasEntry(kind())) walk.Entry(sm(), id());
  else walk.Word(id());
}

inline void Response::Walk(StateWalk& walk) {
  walk.NotBefore(arrival);
  walk.Word(std::uint64_t{sm} << 32 | std::uint64_t{source} << 16 |
            std::uint64_t{static_cast<std::uint8_t>(kind)} << 8 | sectors);
  if (HasEntry(kind)) walk.Entry(sm, id);
  else walk.Word(id);
}

/// What a component sends, by the host thread that runs the receivers: receiver r is of group r % groups. Receivers
/// take what was sealed, while the component may already send what comes after it.
template <typename Message>
class Outbox {
 public:
  explicit Outbox(std::uint32_t groups) : count_(groups), open_(groups), sealed_(groups) {}
  /// A message to be filled in where it lies: one that is put together elsewhere of small parts and copied keeps the
  /// host's processor waiting, which cannot read many small stores as one.
  Message& New(std::uint32_t receiver) { return open_[count_.Remainder(receiver)].emplace_back(); }
  void Add(std::uint32_t receiver, const Message& message) { open_[count_.Remainder(receiver)].push_back(message); }
  /// When neither the component nor its receivers run. What was sealed before and was not taken comes first.
  void Seal() {
    for (std::size_t group = 0; group < open_.size(); ++group) {
      if (sealed_[group].empty()) {
        open_[group].swap(sealed_[group]);
      } else {
        sealed_[group].insert(sealed_[group].end(), open_[group].begin(), open_[group].end());
        open_[group].clear();
      }
    }
  }
  std::vector<Message>& sealed(std::size_t group) { return sealed_[group]; }
  /// Nothing was sent since Seal.
  bool all_sealed() const { return std::ranges::all_of(open_, &std::vector<Message>::empty); }
  template <typename Function>
  void ForEachSealed(const Function& function) {
    for (std::vector<Message>& group : sealed_) std::ranges::for_each(group, function);
  }

 private:
  Divisor count_;
  std::vector<std::vector<Message>> open_, sealed_;
};

}  // namespace gridloom::timing
