// What joins page tables, scoreboard and host path with the device.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/hardware/crcs/dependences.h"
#include "sim/hardware/crcs/events.h"
#include "sim/hardware/crcs/host_path.h"
#include "sim/hardware/crcs/ownership.h"
#include "sim/hardware/crcs/reference_counts.h"
#include "sim/hardware/crcs/scoreboard.h"
#include "sim/hardware/crcs/settings.h"
#include "sim/hardware/crcs/shares.h"
#include "sim/timing/device_input.h"
#include "sim/timing/part.h"

namespace gridloom::hardware::crcs {

enum Counter : std::size_t {
  kSetOperations,
  kSetPages,
  kReleaseOperations,
  kReleasePages,
  kTableRequests,
  kPassed,
  kTrackedKernels,
  kUntrackedKernels,
  kMostReferences,
  kMostKernels,
  kL1Drops,
  kUnreleased,
  kUses,
  kEndedUses,
  kPagesIn,
  kPagesOut,
  kDatMisses,
  kCounters
};

class CrcsPart final : public timing::Part,
                       timing::WorkEvents,
                       timing::StartRule,
                       timing::CopyPath,
                       timing::CtaEvents,
                       timing::CtaLimit,
                       timing::CtaPlacer,
                       timing::TimedSource,
                       OwnerEvents,
                       HostPathUser {
 public:
  explicit CrcsPart(const Settings& settings);
  void Attach(timing::Ports& ports, timing::DeviceInput& input) override;
  std::size_t counters() const override { return kCounters; }
  void Count(std::span<std::uint64_t> values) const override;

 private:
  /// A work that was given and has not ended.
  struct Work {
    timing::WorkKind kind = timing::WorkKind::kMarker;
    timing::Tracking tracking = timing::Tracking::kNone;
    bool tracked = false;    ///< the table follows what it does, once it is in it
    bool taken = false;      ///< by the host path, which has been given it
    bool too_large = false;  ///< it cannot be followed: the simulation ends
    std::uint32_t space = 0;
    timing::WorkId partner = timing::kNoWork;
  };
  /// A kernel of which CTAs run, or will.
  struct Running {
    bool alone = true;                            ///< it shares no SM with another kernel
    Turn turn;                                    ///< of a tracked one: from then on its counts are in the table
    std::uint64_t started = 0, all = 0;           ///< CTAs
    timing::Cycle released = 0;                   ///< the last of its releases so far has reached the table
    std::map<std::uint32_t, std::uint32_t> ctas;  ///< by SM
    bool starves() const { return alone && started < all && ctas.empty(); }
  };
  /// What a profiler has said so far.
  struct Profile {
    ReferenceCounts counts;
    Readiness readiness;      ///< where it is wanted
    timing::Cycle until = 0;  ///< it is all there then
  };
  struct Release {
    timing::WorkId kernel = 0;
    timing::Cycle at = 0;  ///< its last operation has reached the table
    std::vector<std::pair<std::vector<PageRange>, std::uint8_t>> ranges;
  };
  struct OnSm {
    timing::WorkId kernel = timing::kNoWork;  ///< that ran there last, of those that share no SM
    std::uint32_t ctas = 0;                   ///< of it
    timing::Cycle asked = timing::kNever;     ///< gates are asked again then
  };

  // WorkEvents
  void OnWorkGiven(const timing::WorkView& work) override;
  void OnWorkEnd(timing::Cycle now, timing::WorkId work) override;
  // StartRule
  timing::Cycle MayStart(timing::Cycle now, const timing::WorkView& work, const timing::WorkView& before) override;
  // CopyPath
  bool Takes(timing::Cycle now, const timing::WorkView& copy) override;
  // CtaEvents
  void OnKernelReady(timing::Cycle now, const timing::KernelReady& ready) override;
  void OnCtaStart(timing::Cycle at, const timing::CtaPlace& place) override;
  void OnCtaEvent(const timing::CtaSignal& signal) override;
  void OnCtaEnd(const timing::CtaEnd& end) override;
  void OnKernelEnd(timing::Cycle now, std::uint32_t launch) override;
  // CtaLimit
  bool MayHold(timing::Cycle now, std::uint32_t launch, std::uint32_t sm, std::uint32_t resident) override;
  // CtaPlacer
  std::optional<timing::Placement> Place(const timing::PlacementQuery& query) override;
  // TimedSource
  timing::Cycle next() const override { return agenda_.next(); }
  void Run(timing::Cycle end) override;
  // OwnerEvents
  void OnKernelOwns(timing::Cycle at, timing::WorkId kernel, std::uint64_t page, const PageEntry& entry) override;
  void OnCopyOwns(timing::Cycle at, timing::WorkId copy, std::uint64_t page) override {
    host_.OnCopyOwns(at, copy, page);
  }
  void OnReady(timing::Cycle visible) override;
  // HostPathUser
  void OnWorkDone(timing::Cycle at, timing::WorkId work) override { input_->EndCopy(work, at); }
  void OnTransferred(timing::Cycle at, timing::WorkId work, std::uint64_t address, std::uint64_t bytes,
                     bool writes) override;

  bool CanFollow(std::uint64_t pages);
  static bool GoesByHostPath(const Work& work, const timing::WorkView& view);
  std::uint64_t KernelsAlone() const;
  bool IsFirstInNeed(std::uint32_t launch, const Running& running) const;
  void NoteNeed(std::uint32_t launch, const Running& running);
  void Ask(std::uint32_t sm, timing::Cycle at);
  void AskWhereAwaited(timing::WorkId kernel, std::uint64_t page, timing::Cycle at);
  void OnSet(const timing::CtaSignal& signal);
  void OnRelease(const timing::CtaSignal& signal);
  timing::Cycle Operate(timing::Cycle at, timing::WorkId kernel, const std::vector<PageRange>& pages);
  void Enter(const Event& event);
  void Released(const Event& event);
  void EndKernel(const Event& event);
  ReferenceCounts::OnPages Passing(timing::Cycle at, timing::WorkId kernel);

  const Settings settings_;
  const timing::Ports* ports_ = nullptr;
  timing::DeviceInput* input_ = nullptr;
  Agenda agenda_;
  Shares shares_;
  Ownership ownership_;
  HostPath host_;
  Scoreboard scoreboard_;
  // What the device tells of is ahead of, or behind, what the part does at times of its own (TimedSource), depending on
  // the length of windows. So neither reads what the other one changes, but for what is known long before. This is the
  // device's:
  Dependences order_;
  std::unordered_map<timing::WorkId, Work> works_;
  std::unordered_map<timing::WorkId, Profile> profiles_;  ///< by profiler, until the kernel begins
  std::unordered_map<timing::WorkId, Running> running_;
  /// By address space: kernels that have CTAs left and are on no SM.
  std::map<std::uint32_t, std::set<Turn>> starving_;
  timing::Cycle asked_ = 0;  ///< when it was last asked for a place
  std::vector<OnSm> sms_;
  std::size_t empty_ = 0;                                                  ///< of them
  std::map<std::pair<timing::WorkId, std::uint64_t>, Release> releasing_;  ///< by kernel and CTA, until that ends
  std::uint64_t releases_ = 0;
  timing::Cycle rechecked_ = timing::kNever;  ///< the policy is asked again then
  timing::Cycle unit_free_ = 0;               ///< the memory management unit has done what it was asked to
  // Given to what happens later:
  std::unordered_map<timing::WorkId, ReferenceCounts> counts_;  ///< of kernels
  std::unordered_map<std::uint64_t, Release> released_;         ///< on their way to the table, by number
  std::array<std::uint64_t, kCounters> counts_of_{};
};

}  // namespace gridloom::hardware::crcs
