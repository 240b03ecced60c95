// The works of a device in the order of their streams: which there are, which of them may start, which have ended.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/timing/dispatch/work_state.h"
#include "sim/timing/parameters.h"

namespace gridloom::timing {

class StreamOrder {
 public:
  /// `keep_ended`: as EngineOptions::keep_ended.
  StreamOrder(const Parameters& parameters, const Ports& ports, bool keep_ended)
      : launch_(parameters.timing().launch), ports_(ports), keep_ended_(keep_ended) {}

  Result<WorkId> Append(WorkState work);
  WorkState& at(WorkId id) { return works_.at(id); }
  const WorkState& at(WorkId id) const { return works_.at(id); }
  bool Has(WorkId id) const { return works_.contains(id); }
  /// The last work of a stream, if it has not ended.
  std::optional<WorkId> LastOf(std::uint32_t stream) const;

  /// First cycle from which on nothing that comes before the work holds it back, as far as known at `now`; kNever:
  /// something has to end first.
  Cycle MayStart(WorkId id, Cycle now) const;
  /// The same for a work that is launched as kernels are: with the times that a launch takes.
  Cycle MayLaunch(WorkId id, Cycle now) const;
  /// A work that has not ended and has to before this one may start; where rules do not say otherwise.
  std::optional<WorkId> Blocker(WorkId id) const;
  /// Whether a kernel comes behind the work in its stream.
  bool Followed(WorkId id) const;
  /// Whether all that comes before the work has ended.
  bool MayEnd(WorkId id) const;
  void Finish(WorkId id, Cycle now);
  /// Lets go of works that have ended and that nobody asks for any more. What ended since the last call must have been
  /// reported.
  void Forget();

  /// Results of the works that are kept, in the order in which they were given.
  std::vector<WorkResult> results() const;
  bool done(WorkId id) const;
  bool all_done() const { return done_ == given_; }
  std::size_t kept() const { return works_.size(); }

 private:
  Cycle Allowed(WorkId id, WorkId before, Cycle now) const;
  std::size_t EndedBefore(const WorkState& work) const;

  const sim::TimingSpec::Launch& launch_;
  const Ports& ports_;
  const bool keep_ended_;
  std::unordered_map<WorkId, WorkState> works_;          // that have not ended, and those that are kept
  std::vector<WorkId> forgettable_;                      // some of which may still be asked for
  std::map<std::uint32_t, std::deque<WorkId>> streams_;  // works that have not ended; none is empty
  std::size_t given_ = 0, done_ = 0;
};

}  // namespace gridloom::timing
