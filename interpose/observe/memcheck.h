// GRIDLOOM_MEMCHECK=1: what the runtime found in kernels, and wrong pointers given to the driver interface, written as
// text to the log when they are found, counted at the end of the program, and as JSON where that is wanted
// (docs/memcheck.md). Who starts the program through `gridloom run` is told of each at once, by lines of JSON in a
// file: programs may end without their exit handlers, and start others.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "interpose/objects/operation.h"
#include "interpose/observe/memory_order.h"
#include "sim/exec/engine.h"
#include "sim/exec/memcheck.h"
#include "sim/exec/memcheck_filter.h"

namespace gridloom::session {

class Context;
class Device;
class Process;
struct GraphPlan;
struct Settings;

class MemcheckLog {
 public:
  /// Reads the settings. `process`: the one whose objects may leak.
  explicit MemcheckLog(Process& process);
  bool on() const { return on_; }
  /// What of the device's memory has been written; null unless that is wanted.
  exec::GlobalShadow* written() const { return written_.get(); }
  /// Findings that the engine keeps: more than are told where some are not wanted.
  std::uint32_t engine_limit() const { return filter_.empty() ? limit_ : kMostFiltered; }

  /// A grid has ended that was the first with this finding.
  void Add(const exec::MemcheckReport& report);
  /// A call of the driver interface got a pointer or range that is none.
  void BadCall(const char* call, const std::string& what, HostStackPtr stack = nullptr);
  /// cuMemFree and the like: says what the pointer is instead.
  void BadFree(const char* call, Context& context, std::uint64_t pointer);
  /// A copy or fill is refused: there is no memory for all of it.
  void BadRange(Context& context, std::uint64_t pointer, std::uint64_t bytes, bool write);
  /// A copy or fill will be made: it may go beyond a variable or a pinned block all the same.
  void CheckRange(Context& context, std::uint64_t pointer, std::uint64_t bytes, bool write);
  /// A grid has ended by an error; counted unless findings have told of it.
  void GridFailed(const exec::Engine& engine, const exec::LaunchFault& fault);
  /// A call has failed. Counted where that is asked for.
  void CallFailed(const char* call, const char* status);
  bool reports_calls() const { return reports_calls_; }
  /// What the program has allocated in the context and not freed; called before the context frees it.
  void NoteLeaks(Context& context);

  /// The calling thread's stack where stacks are wanted, else null.
  HostStackPtr StackHere() const { return host_stacks_ ? HostStack::Here() : nullptr; }
  /// The program has allocated what begins at `address`, or frees it.
  void NoteAllocation(const exec::DeviceMemory& memory, std::uint64_t address);
  void NoteFree(const exec::DeviceMemory& memory, std::uint64_t address);
  // ---- memory of cudaMallocAsync and of graphs (memory_order.h) ----
  /// The operation is put into the stream, and not into a graph. Null where nobody asks for its origin.
  WorkOriginPtr Submitted(const Stream& stream, const Operation& operation);
  /// `before`: of the launch of the executable graph before this one, behind which it comes; null: none.
  WorkOriginPtr Launched(const Stream& stream, const GraphPlan& plan, const WorkOrigin* before);
  /// cudaMallocAsync.
  void NoteStreamAllocation(const Stream& stream, const exec::DeviceMemory& memory, std::uint64_t address);
  // The host has waited, or has seen that nothing is left to wait for.
  void HostWaited(const Stream& stream);
  void HostWaited(const Event& event);
  void HostWaitedForAll(const Context& context);
  /// The work tells the host what it comes after, and all that it has done itself: a function of the program's that
  /// runs in a stream, a value that a stream writes, a flag that a kernel sets.
  void TellsHost(const WorkOrigin& origin);
  /// The work looks at what the host writes.
  void LooksAtHost(const WorkOrigin& origin);
  /// What is wrong with a kernel's use of the allocation, as the end of a sentence; empty: nothing.
  std::string KernelUses(const WorkOrigin& origin, const exec::Allocation& allocation, const std::string& kernel);
  /// A copy, a fill, a write of values or a free is about to run.
  void CheckUses(Context& context, const Operation& operation, const WorkOrigin& origin);

  /// A copy, a fill or a write of values has run: what has been written, and whether the host gets what nobody has.
  void NoteWritten(Context& context, const Operation& operation, const WorkOrigin* origin);

  /// Findings of this thread are of a grid that was launched there, while one lives.
  class LaunchScope {
   public:
    explicit LaunchScope(HostStackPtr stack);
    ~LaunchScope();
    LaunchScope(const LaunchScope&) = delete;
    LaunchScope& operator=(const LaunchScope&) = delete;

   private:
    const HostStackPtr stack_;
  };

  /// The program ends: summary, JSON, and another exit code when something was found. Does not return then. Kernels
  /// that run get two seconds to end; of those that do not, what they have found by then counts.
  void Finish();

 private:
  struct Call {
    std::string call, what;
    std::uint64_t times = 1;
    HostStackPtr stack;  ///< of the first one; null unless wanted
  };
  struct Fault {
    std::string kernel, kind, text;
  };

  /// Memory that was never freed.
  struct Leak {
    std::uint64_t bytes = 0;
    std::string what;                           ///< tells it from others, too
    std::uint64_t address = 0, allocation = 0;  ///< of an allocation
  };
  /// Objects of one sort that were never destroyed.
  struct ObjectLeak {
    std::string sort;
    std::uint64_t count = 0;
  };

  static constexpr std::uint32_t kMostFiltered = 1'000'000;

  /// The host's stacks at the calls that allocated and freed memory, and that launched a grid.
  struct Stacks {
    HostStackPtr allocated, freed, launched;
  };
  Stacks StacksOf(std::uint64_t allocation) const;
  Stacks StacksOf(const exec::MemcheckReport& report) const;
  static std::string Text(const Stacks& stacks);
  static void AddTo(nlohmann::json& json, const Stacks& stacks);
  nlohmann::json Json(const exec::MemcheckReport& report) const;
  void KeepWanted(exec::Engine::Findings& findings) const;
  void ReadFilter(const Settings& settings);
  bool Wants(const exec::MemcheckReport& report) const {
    return filter_.Wants(exec::NameOf(report.kind), report.kernel, report.library);
  }
  void NoteAllLeaks();
  void AddLeak(Leak leak);
  void NoteAllocations(Device& device, const Context* context);
  void NoteArrays(const Context* context);
  void NoteObjects(const char* sort, std::uint64_t count);
  void NoteObjectsOf(Context& context);
  void TellLeaks() const;
  void NoteCopied(const exec::DeviceMemory& memory, const CopyOp& copy, const WorkOrigin* origin);
  void CheckUse(Context& context, const WorkOrigin& origin, const void* place, bool write);
  void CheckFree(Context& context, const WorkOrigin& origin, std::uint64_t address);
  std::string LeakCounts() const;
  std::string Summary(std::uint64_t errors, std::uint64_t accesses, std::uint64_t not_kept) const;
  nlohmann::json AllAsJson(const std::vector<exec::MemcheckReport>& reports, std::uint64_t not_kept) const;
  void WriteJson(const nlohmann::json& json) const;
  nlohmann::json Json(const Leak& leak) const;
  static nlohmann::json Json(const Call& call);
  static nlohmann::json Json(const Fault& fault);
  /// Says it to whoever started the program, who reads it when the program has ended, in whatever way.
  void Journal(const char* key, const nlohmann::json& value) const;

  Process& process_;
  std::atomic<bool> finished_{false};  ///< the summary is about to come
  bool on_ = false, leak_check_ = false, reports_calls_ = false, host_stacks_ = false;
  std::uint32_t limit_ = 100;
  exec::MemcheckFilter filter_;
  MemoryOrder order_;
  std::unique_ptr<exec::GlobalShadow> written_;
  int exit_code_ = 1;
  std::string json_path_;
  int journal_ = -1;
  mutable std::mutex journal_mutex_;
  /// The journal has the program's name, which comes before all else; guarded by journal_mutex_.
  mutable bool introduced_ = false;
  int owner_ = 0;  ///< process id: a forked child reports nothing of its parent's
  std::mutex mutex_;
  std::vector<Call> calls_;
  std::vector<Fault> faults_;
  std::vector<Leak> leaks_;
  std::vector<ObjectLeak> object_leaks_;
  mutable std::mutex stacks_mutex_;
  std::map<std::uint64_t, Stacks> stacks_;                     ///< by allocation
  std::map<std::string, HostStackPtr, std::less<>> launched_;  ///< by finding (KeyOf)
  std::uint32_t told_ = 0;                                     ///< findings of kernels
};

}  // namespace gridloom::session
