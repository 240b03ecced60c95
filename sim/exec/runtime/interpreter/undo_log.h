// What the stores of interpreted CTAs have overwritten. When machine code comes while a grid's first CTAs are still
// interpreted, their stores are undone and the grid begins again as machine code: a CTA that has begun cannot change
// over in its midst (docs/design/executor.md, "Tiers"). Only grids whose effects are such stores have a log
// (InterpretedCode::can_begin_again), and nobody may look at what they write before they have ended: kernels that wait
// for others, or use atomics or volatile accesses outside of shared memory, are not among them. Stores to memory at
// which others can look at any time break the log (UnseenMemory), and so do other grids that wait for what somebody
// writes (Onlookers).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/exec/device_memory.h"

namespace gridloom::exec {

/// Memory at which only what runs on the device can look, and copies that wait for it: neither the host at any time
/// (pinned, registered and managed memory) nor other processes (memory that is mapped: a handle of it may be exported
/// whenever the program likes). Knows the allocation that was asked for last; the launch's end forgets it. For one
/// thread.
class UnseenMemory {
 public:
  bool Contains(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes) {
    if (bytes <= bytes_ && address - base_ <= bytes_ - bytes) return true;
    return Find(memory, address, bytes);
  }

 private:
  bool Find(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes);
  std::uint64_t base_ = 0, bytes_ = 0;
};

/// Who may look at what grids of the device write while they run: grids that wait for others, in loops of volatile or
/// atomic reads. Such a grid and one that begins again exclude each other. Thread-safe.
class Onlookers {
 public:
  /// A grid that may wait begins. Returns when no stores are being undone.
  void Enter();
  void Leave() { inside_.fetch_sub(1, std::memory_order_release); }

  /// Grids that have entered so far; while there is one, Suspend fails.
  std::uint64_t entered() const { return entered_.load(std::memory_order_acquire); }
  /// False if a grid is there that may look, or was since entered() was `since`. Otherwise none enters until Resume.
  [[nodiscard]] bool Suspend(std::uint64_t since);
  void Resume() { suspended_.fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> entered_{0};
  std::atomic<std::uint32_t> inside_{0}, suspended_{0};
};

class UndoLog {
 public:
  /// What one worker has overwritten. Each worker writes to its own.
  class Part {
   public:
    bool empty() const { return bytes_.empty(); }
    UnseenMemory unseen;

   private:
    friend class UndoLog;
    static constexpr std::size_t kRemembered = 4096;
    std::vector<std::byte> bytes_;  // records: a Header, and the bytes that were there
    std::vector<std::uint64_t> remembered_;
  };

  /// Called before a store of `bytes` bytes, at most kMostRow, to an address of device memory, which may turn out not
  /// to be there: in the scope of a LaneAccess. What has been kept a short while ago is not kept again. False: it has
  /// been decided that the grid begins again, and the store must not be done.
  [[nodiscard]] bool Keep(Part& part, std::uint64_t address, std::uint32_t bytes);
  static constexpr std::uint32_t kMostRow = 1024;

  /// From now on the grid cannot begin again: something else than a store that is kept is about to be done, or there is
  /// too much of it. False: it has been decided that it does, and nothing must be done any more. Either comes first,
  /// whichever worker asks.
  [[nodiscard]] bool Break() { return Become(State::kBroken); }
  /// From now on the grid begins again. False: it cannot.
  bool Decide() { return Become(State::kDecided); }
  bool decided() const { return state_.load(std::memory_order_relaxed) == State::kDecided; }
  bool broken() const { return state_.load(std::memory_order_relaxed) == State::kBroken; }

  /// A worker that has left the grid hands over its part.
  void Take(Part& part);
  /// After all workers have left: memory is as it was when the grid began.
  void Undo();

 private:
  enum class State : std::uint8_t { kOpen, kBroken, kDecided };
  bool Become(State wanted) {
    State now = state_.load();
    if (now == State::kOpen && state_.compare_exchange_strong(now, wanted)) return true;
    return now == wanted;
  }
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;  // of all workers
  struct Header {
    std::uint64_t number;  ///< of all records; a store that overwrites another one's value has the higher number
    std::uint64_t address;
    std::uint64_t bytes;
  };
  static std::size_t SizeOf(std::uint64_t bytes) { return sizeof(Header) + (bytes + 7) / 8 * 8; }

  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::size_t> kept_bytes_{0};
  std::atomic<State> state_{State::kOpen};
  std::mutex mutex_;
  std::vector<Part> parts_;
};

}  // namespace gridloom::exec
