// The host's side of Pagoda in the model (section 4.2 of the paper): one thread spawns tasks, each with one copy of its
// entry that also says that the parameters of the task before it have arrived; what has ended is heard of in bulk, when
// the table is full or a time has passed. All of it between windows, in simulated time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/hardware/pagoda/master_sm.h"
#include "sim/hardware/pagoda/settings.h"
#include "sim/timing/device_input.h"

namespace gridloom::hardware::pagoda {

struct HostCounts {
  std::uint64_t tasks = 0, updates = 0, flushes = 0, full = 0;
};

class HostSide {
 public:
  HostSide(const Settings& settings, timing::DeviceInput& input);

  /// A new MasterKernel runs, whose columns are on these SMs. The log is told what it writes.
  void Begin(Cycle now, const MasterShape& shape, std::vector<MasterSm*> sm_of_column, WriteLog& log);

  void Take(Cycle now, std::shared_ptr<Task> task);
  void OnCopyEnd(Cycle now, timing::WorkId copy);
  /// Other kernels want the device: nothing is spawned, and the MasterKernel is told to end when its tasks have.
  void SetYielding(Cycle now, bool yields);

  Cycle next() const;
  void Run(Cycle end);

  /// How much of the log the host has read. Forget: so many writes at its beginning are no longer there.
  std::size_t read() const { return read_; }
  void Forget(std::size_t writes) { read_ -= writes; }

  bool has_pending() const { return !pending_.empty(); }
  const HostCounts& counts() const { return counts_; }

 private:
  enum class Copy : std::uint8_t { kEntry, kUpdate, kStatus, kReadyWord, kSchedWord, kControl };
  enum class Act : std::uint8_t { kHear, kSpawn, kFlush, kUpdate, kEnd };
  struct Pending {
    std::shared_ptr<Task> task;
    Cycle at = 0;
  };
  struct OnItsWay {
    Copy kind = Copy::kEntry;
    std::uint32_t entry = 0;
    std::uint32_t ready = 0;
    std::shared_ptr<Task> task{};
  };

  std::optional<std::pair<Cycle, Act>> NextAct() const;
  Cycle NextSpawn() const;
  Cycle NextYield(Cycle at) const;
  Cycle NextOwn(Cycle at) const;
  void Spawn(Cycle now);
  void Flush(Cycle now);
  void Update(Cycle now);
  void TellToEnd(Cycle now);
  void Send(Cycle now, timing::CopyDirection direction, std::uint64_t bytes, OnItsWay what,
            std::vector<timing::WorkId> after = {});
  void Deliver(Cycle now, const OnItsWay& copy);
  void Look(Cycle now);
  void Hear(Cycle now);
  std::uint32_t ReadyAt(Cycle now, std::uint32_t entry);
  std::optional<std::uint32_t> FreeEntry();
  Cycle After(Cycle now) const { return now + input_.parameters().window; }

  const Settings& settings_;
  timing::DeviceInput& input_;
  bool running_ = false, ending_ = false;
  /// Spans in which it yields. What ends one counts a window later, as what begins it does, so more than one may lie
  /// ahead.
  struct Span {
    Cycle from, until;
  };
  std::deque<Span> yields_;
  MasterShape shape_;
  std::vector<MasterSm*> sm_of_column_;
  WriteLog* log_ = nullptr;
  std::size_t read_ = 0;                      // of the log
  std::vector<std::uint32_t> ready_;          // by entry, on the device
  std::vector<bool> arrived_;                 // by entry: the copy of the task that the host has put there
  std::vector<std::shared_ptr<Task>> taken_;  // by entry, as the host knows
  std::uint32_t search_ = 0;
  std::deque<Pending> pending_;
  std::unordered_map<timing::WorkId, OnItsWay> copies_;
  std::unordered_set<timing::WorkId> inputs_;  // of tasks that have been taken, which have not ended
  std::array<std::uint32_t, 64> streams_{};    // copies take turns: each engine does them in their order
  std::uint32_t updates_ = 0, statuses_ = 0;   // streams of copies to the host
  std::uint64_t sent_ = 0;
  std::optional<std::uint32_t> waiting_;  // entry of the task that the next one lets begin
  bool flushing_ = false, updating_ = false, blocked_ = false;
  std::vector<std::uint32_t> heard_;  // entries whose tasks a look at the device's table has found ended
  Cycle hears_ = timing::kNever;      // when the host knows that
  Cycle free_ = 0;                    // when the thread that spawns goes on
  Cycle last_heard_ = 0;              // of the table
  Cycle idle_since_ = 0;
  std::uint32_t outstanding_ = 0, in_batch_ = 0;
  HostCounts counts_;
};

}  // namespace gridloom::hardware::pagoda
