// Where proposed hardware plugs into the model. All hooks are optional; without them nothing is asked and nothing is paid.
//
// SMs and memory partitions are simulated by several host threads, each component by one thread at a time, and each component up to
// a window ahead of the others. So a hook with state has one part per SM or partition (the `sm` or `partition` in its arguments says
// which) and exchanges it at OnWindow only, where one thread runs; or it reads tables that only OnWindow changes.
#pragma once

#include <cstdint>

#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// The CTA scheduler's port; called by one thread.
class CtaHook {
 public:
  virtual ~CtaHook() = default;
  /// Whether this CTA may start on this SM now; false tries the next SM, and again at the next decision or window.
  virtual bool MayStart(Cycle now, std::uint32_t launch, std::uint64_t cta, std::uint32_t sm) = 0;
  virtual void OnStart(Cycle at, std::uint32_t launch, std::uint64_t cta, std::uint32_t sm) = 0;
  virtual void OnEnd(Cycle at, std::uint32_t launch, std::uint64_t cta, std::uint32_t sm) = 0;
};

/// A line that an SM's load/store unit is about to access in global, local, constant or texture memory.
struct MemoryIssue {
  std::uint32_t sm = 0;
  std::uint32_t warp = 0;
  std::uint32_t launch = 0;
  std::uint64_t line = 0;  ///< address / 128
  bool writes = false;
};

class MemoryIssueHook {
 public:
  virtual ~MemoryIssueHook() = default;
  /// First cycle at which the access may go on; `now` for at once. Asked again at that cycle, for the same access.
  virtual Cycle MayAccess(Cycle now, const MemoryIssue& access) = 0;
};

struct L2Access {
  std::uint32_t partition = 0, slice = 0;
  std::uint32_t launch = 0;
  std::uint32_t sm = 0;
  std::uint64_t line = 0;
  bool hit = false;  ///< the line has its place in L2, whether or not its sectors have come
};

class L2Hook {
 public:
  virtual ~L2Hook() = default;
  /// Ways of the set that a line may take when it is brought in, as a mask; asked at each access. 0 means all.
  virtual std::uint64_t OnAccess(Cycle now, const L2Access& access) = 0;
};

struct DramRequest {
  std::uint32_t partition = 0;
  std::uint32_t bank = 0;
  std::uint32_t row = 0;
  std::uint32_t bursts = 0;
  bool writes = false;
};

class DramHook {
 public:
  virtual ~DramHook() = default;
  virtual void OnEnqueue(Cycle dram_cycle, const DramRequest& request) = 0;
};

class WindowHook {
 public:
  virtual ~WindowHook() = default;
  /// Before the cycles [begin, end) are simulated; nothing else runs. Also the place to act on the host's side (copies, releases).
  virtual void OnWindow(Cycle begin, Cycle end) = 0;
};

class Engine;

/// A CTA in its place.
struct CtaPlace {
  std::uint32_t launch = 0;
  std::uint32_t sm = 0, slot = 0;
  std::uint64_t cta = 0;
};

/// Looks on: nothing that it does reaches the model. Called by one thread, between windows.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Told when it is decided, up to launch.cta_cycles before `at`.
  virtual void OnCtaStart(Cycle at, const CtaPlace& place) = 0;
  virtual void OnCtaEnd(Cycle at, const CtaPlace& place) = 0;
  /// After OnCtaEnd of its last CTA.
  virtual void OnKernelEnd(Cycle at, std::uint32_t launch) = 0;
  /// All cycles before engine.now() have been simulated; nothing happens before `begin`.
  virtual void OnWindow(const Engine& engine, Cycle begin) = 0;
};

struct Hooks {
  CtaHook* cta = nullptr;
  MemoryIssueHook* memory_issue = nullptr;
  L2Hook* l2 = nullptr;
  DramHook* dram = nullptr;
  WindowHook* window = nullptr;
  Observer* observer = nullptr;
};

}  // namespace gridloom::timing
