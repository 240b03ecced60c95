// GRIDLOOM_REORDER: launches that follow each other in a stream wait for each other, and then their CTAs run mixed, in
// an order drawn by lot out of those that the scoreboard of the CRCS paper allows (sim/exec/reorder/reorder.h). The
// program must not see a difference: it is the test of range passes and scoreboard on whole programs. What cannot be
// mixed runs as it is; at exit a few lines say what came of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interpose/objects/operation.h"
#include "rewriter/support/result.h"
#include "sim/exec/reorder/reorder.h"
#include "sim/exec/reorder/setting.h"

namespace gridloom::session {

class Process;

struct LaunchBatch final : StreamBatch {
  static constexpr std::size_t kMost = 16;
  void Run(Context& context) override;

  std::uint64_t number = 0;  ///< in the process: each draws other lots
  std::vector<KernelOp> launches;
};

class Reordering {
 public:
  /// The process's; null unless it was asked for.
  static Reordering* Of(const Process& process);
  /// An error that says what is wrong with the setting.
  static Status CheckSetting();

  enum class Place : std::uint8_t {
    kAlone,    ///< the launch is a task of its own
    kInBatch,  ///< it may wait for others
    kLast,     ///< likewise, but nobody may wait for it: the program may look for what it writes without asking
  };
  /// Where a launch goes; when alone, says why at exit. Thread-safe.
  Place PlaceOf(Context& context, const KernelOp& op);
  /// Puts a launch where PlaceOf says that it waits for others. Thread-safe.
  void Enter(Stream& stream, KernelOp launch, Place place);
  /// Runs a batch on the calling thread. Thread-safe.
  void Run(Context& context, const LaunchBatch& batch);
  std::string Text() const;

 private:
  static std::unique_ptr<Reordering> Make();
  explicit Reordering(const exec::ReorderSetting& setting) : setting_(setting) {}

  /// What is known of a kernel.
  struct Facts {
    std::string why_whole;
    exec::RangedKernel ranged;
    bool in_turn = false, profiler_reads = false;
    bool names_managed = false;  ///< a managed variable, which the host may poll
  };
  struct Program;
  std::shared_ptr<const Facts> Find(exec::DeviceMemory& memory, const std::shared_ptr<exec::Program>& program,
                                    const exec::KernelInfo& info);
  void NoteWhole(const KernelOp& op, const std::string& why);
  void AddCounts(const exec::Reorderer::Counts& counts);

  const exec::ReorderSetting setting_;
  std::atomic<std::uint64_t> batches_{0};
  mutable std::mutex mutex_;
  std::map<std::shared_ptr<const exec::Program>, std::shared_ptr<Program>> programs_;
  exec::Reorderer::Counts counts_;
  std::map<std::string, std::uint64_t> mixed_;                          ///< launches, by kernel
  std::map<std::pair<std::string, std::string>, std::uint64_t> whole_;  ///< likewise, with the reason
};

}  // namespace gridloom::session
