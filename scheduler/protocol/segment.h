// The memory that a session of a tenant shares with the broker: a ring of records up, a mailbox per launch down. The
// broker makes it (a memfd sealed against shrinking and growing, so that no access of the broker's can fault), the
// tenant maps it. The broker never reads back what it wrote, and takes every number of the tenant's as hostile:
// positions are checked against the ring's size, records are copied out before they are looked at.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "rewriter/support/result.h"
#include "scheduler/protocol/record.h"

namespace gridloom::protocol {

inline constexpr std::uint32_t kRingRecords = 1024;  // a power of two
static_assert((kRingRecords & (kRingRecords - 1)) == 0 && kRingRecords >= 2 * kSlots);

/// What the broker says about one launch: a mailbox has one launch at a time.
struct alignas(64) Mailbox {
  std::atomic<std::uint64_t> launch;    ///< whose turn `granted` is about; written after it was set to 0
  std::atomic<std::uint64_t> granted;   ///< the CTAs before this one may run; never falls while `launch` stays
  std::atomic<std::uint32_t> bell;      ///< rises with every change; the tenant sleeps on it
  std::atomic<std::uint32_t> sleepers;  ///< the tenant's: someone sleeps on the bell
};

struct SegmentLayout {
  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint16_t header_bytes = 0;
  std::uint64_t bytes = 0;

  alignas(64) std::atomic<std::uint64_t> pushed;  ///< the tenant's: records it has written

  alignas(64) std::atomic<std::uint64_t> taken;         ///< the broker's: records it has copied out
  std::atomic<std::uint32_t> broker_sleeps;             ///< the broker's: ring the doorbell after a record
  alignas(64) std::atomic<std::uint64_t> memory_bytes;  ///< the broker's: device memory the session may use now
  std::atomic<std::uint64_t> memory_answers;            ///< the broker's: kMemory records it has answered
  std::atomic<std::uint64_t> tenant_limit;              ///< the broker's: device memory of all sessions of the tenant
  std::atomic<std::uint64_t> tenant_used;               ///< the broker's: what they have of it
  std::atomic<std::uint32_t> memory_bell;               ///< rises with every answer

  Mailbox mailboxes[kSlots];
  alignas(64) RawRecord ring[kRingRecords];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::uint32_t kSegmentMagic = 0x53424c47;  // "GLBS"

/// A mapping of a segment, and its memfd. Movable.
class Segment {
 public:
  /// The broker's side: a new sealed memfd.
  static Result<Segment> Create();
  /// The tenant's side. Takes the descriptor over; checks seals, size and version.
  static Result<Segment> Attach(int fd);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  SegmentLayout& layout() const { return *layout_; }
  int fd() const { return fd_; }

 private:
  Segment(SegmentLayout* layout, int fd) : layout_(layout), fd_(fd) {}
  SegmentLayout* layout_ = nullptr;
  int fd_ = -1;
};

/// The tenant's end of the ring. One thread at a time.
class RingWriter {
 public:
  explicit RingWriter(SegmentLayout& layout) : layout_(layout) {}
  /// False when the ring is full. Sets the record's sequence.
  bool Push(RawRecord record);
  /// True when the broker sleeps and has to be woken after a Push.
  bool must_ring() const { return layout_.broker_sleeps.load(std::memory_order_seq_cst) != 0; }

 private:
  SegmentLayout& layout_;
  std::uint64_t pushed_ = 0;
};

/// The broker's end of the ring. Keeps its own count, so that nothing a tenant writes moves it.
class RingReader {
 public:
  explicit RingReader(SegmentLayout& layout) : layout_(layout) {}
  std::uint64_t taken() const { return taken_; }
  bool empty() const { return layout_.pushed.load(std::memory_order_seq_cst) == taken_; }
  /// Copies the next record out; nothing when there is none. An error when the tenant's count is impossible.
  Result<std::optional<RawRecord>> Take();

 private:
  SegmentLayout& layout_;
  std::uint64_t taken_ = 0;
};

}  // namespace gridloom::protocol
