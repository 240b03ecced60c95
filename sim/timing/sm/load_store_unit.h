// The memory side of an SM: the queue of memory instructions, shared memory, the coalescer, L1 and the read-only
// caches, and the port to the crossbar. In order: some lines of an instruction, or one pass over the banks, a cycle.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/timing/counters.h"
#include "sim/timing/memory/address_map.h"
#include "sim/timing/memory/address_space.h"
#include "sim/timing/memory/cache.h"
#include "sim/timing/memory/coalescer.h"
#include "sim/timing/memory/message.h"
#include "sim/timing/memory/mshr.h"
#include "sim/timing/memory/tlb.h"
#include "sim/timing/parameters.h"
#include "sim/timing/ports.h"
#include "sim/timing/sm/memory_instruction.h"

namespace gridloom::timing {

/// Part of a memory instruction is done: a load (or atomic with a result) whole, a store one packet.
struct Completion {
  const DecodedOp* op = nullptr;  ///< of a load: its destinations are ready at `ready`; null for a store packet
  Cycle ready = 0;
  std::uint16_t warp = 0;
};

class LoadStoreUnit {
 public:
  /// `plain`: searches without short cuts, the reference. The references must outlive the unit.
  LoadStoreUnit(const Parameters& parameters, const AddressMap& map, const Ports& ports, std::uint32_t sm, bool plain,
                SmCounters& counters);

  bool full() const { return count_ == queue_.size(); }
  bool idle() const { return count_ == 0; }

  /// Queues an instruction; only when not full(). Returns the store packets that will complete one by one; a load
  /// completes once.
  std::uint32_t Accept(const MemoryInstruction& instruction);

  /// Does what can be done in this cycle. Requests go to `out`, one list for each group of partitions.
  void Tick(Cycle now, Outbox<Request>& out);
  /// An answer will come: the host may fetch what it concerns. PrefetchEntry long before, PrefetchSet shortly.
  void PrefetchEntry(const Response& response) const {
    if (HasEntry(response.kind)) mshrs_.Prefetch(response.id);
  }
  void PrefetchSet(const Response& response) const;
  /// L1 and the read-only cache lose all lines; dirty ones go to L2.
  void DropL1(Cycle now, Outbox<Request>& out);
  /// Takes an answer of L2.
  void Fill(Cycle now, const Response& response, Outbox<Request>& out);

  /// Earliest cycle at which Tick may do something, unless an answer comes before.
  Cycle next() const { return count_ == 0 ? kNever : std::max(busy_until_, blocked_until_); }

  /// All but what its entries for messages are about: that is walked through with the messages.
  void Walk(StateWalk& walk);
  void WalkEntry(std::uint16_t id, StateWalk& walk);

  /// What was completed since the last clear().
  std::vector<Completion>& completions() { return completions_; }

 private:
  enum class CacheId : std::uint8_t { kL1, kConstant, kTexture, kNone };
  static constexpr std::size_t kCaches = 3;
  struct Entry {
    MemoryInstruction instruction;
    trace::Space space = trace::Space::kNone;
    CacheId cache = CacheId::kNone;
    bool is_store = false;          ///< nothing comes back but acknowledgements
    std::uint32_t load = 0;         ///< of loads_
    std::uint32_t passes = 0;       ///< shared memory
    std::uint32_t data_cycles = 0;  ///< other memory: what its data take
    std::uint32_t next_line = 0;
    LineList lines;
  };
  struct Load {
    const DecodedOp* op = nullptr;
    Cycle ready = 0;
    std::uint32_t pending = 0;  ///< lines outstanding, and one while it is in the queue
    std::uint32_t next_free = 0;
    std::uint16_t warp = 0;
  };

  CacheId CacheOf(const DecodedOp& op, trace::Space space) const;
  std::uint32_t Passes(const MemoryInstruction& instruction) const;
  std::uint32_t DataCycles(const Entry& entry) const;
  void TickShared(Cycle now, Entry& entry);
  bool AccessLines(Cycle now, Entry& entry, Outbox<Request>& out);
  void FinishLines(Cycle now, const Entry& entry);
  bool PortIsBusy(Cycle now) const;
  /// Each returns whether the line is done; else blocked_until_ says when to try again.
  bool AccessLine(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out);
  Cycle OpenForLine(Cycle now, const MemoryInstruction& instruction, std::uint64_t line) const;
  bool LoadCached(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out);
  void TellHit(Cycle now, const Entry& entry, const LineAccess& line, const CacheLine& held) const;
  void TellFill(Cycle now, CacheId cache, const CacheLine& filled, std::uint8_t sectors) const;
  bool LoadUncached(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out);
  bool Store(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out);
  bool StoreLocal(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out);
  static std::uint64_t KeyOf(CacheId cache, std::uint64_t line);
  void SleepIfMissing(const Entry& entry);
  bool Block(Cycle until);
  /// What a request says besides its line and kind.
  struct Names {
    std::uint32_t launch = 0;
    std::uint16_t id = 0;
    std::uint8_t partial = 0, lanes = 0;
    bool is_float = false;
    std::uint32_t words = 0;
  };
  void Send(Cycle now, std::uint64_t line, RequestKind kind, std::uint8_t sectors, Names names, Outbox<Request>& out);
  void WriteBack(Cycle now, const Cache::Victim& victim, Outbox<Request>& out);
  Cycle TranslationDelay(Cycle now, std::uint64_t line);
  void CountHit(CacheId cache, bool hit);
  void Pop();
  std::uint32_t NewLoad(const MemoryInstruction& instruction);
  void Release(std::uint32_t load, Cycle ready);
  void WalkInstruction(const Entry& entry, StateWalk& walk);
  void WalkLoad(std::uint32_t load, StateWalk& walk);
  void Drop(CacheLine& line, std::uint8_t sectors);

  const Parameters& parameters_;
  const AddressMap& map_;
  const Ports& ports_;
  const std::uint32_t sm_;
  const bool plain_;
  SmCounters& counters_;

  std::vector<Entry> queue_;  // a ring
  std::uint32_t head_ = 0, count_ = 0;
  Cycle busy_until_ = 0, blocked_until_ = 0;
  Cycle data_until_ = 0;         // the data of the instruction whose lines are looked up
  std::uint32_t looked_up_ = 0;  // lines in this cycle
  // The line that waits was in neither cache nor MSHRs, and only its own request can change that.
  bool known_absent_ = false;

  Cache caches_[kCaches];
  std::uint64_t cache_changes_ = 0;  // of what is in them
  Cycle hit_latency_[kCaches];
  MshrTable mshrs_;
  Tlb tlb_;
  std::uint32_t stores_ = 0;  // packets outstanding
  Port port_;
  std::vector<Load> loads_;
  std::uint32_t free_load_;
  std::vector<Completion> completions_;
};

}  // namespace gridloom::timing
