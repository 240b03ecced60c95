// Which works come before which: by the order of their streams, and by what they wait for.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/timing/ports.h"

namespace gridloom::hardware::hazards {

class WorkClocks {
 public:
  /// Works are given in their order, and end in the order of their dependences.
  void Give(const timing::WorkView& work);
  void End(timing::WorkId work);

  /// Whether `later` must not see or change memory before `earlier`, which has not ended, is done with it.
  bool Precedes(timing::WorkId earlier, timing::WorkId later) const;
  /// Something that comes before the work has not ended.
  bool IsEarly(timing::WorkId work) const;
  bool idle() const { return open_.empty(); }

 private:
  /// The last work of each stream that a work comes behind, sorted by stream; of those that had not ended when it was
  /// given.
  using Clock = std::vector<std::pair<std::uint32_t, timing::WorkId>>;
  struct Open {
    Clock clock;
    std::uint32_t before = 0;            ///< works directly before it that have not ended
    std::vector<timing::WorkId> behind;  ///< works directly behind it, one for each reason
  };
  void Join(Clock& clock, const Clock& other) const;

  std::vector<std::uint32_t> stream_of_;                    ///< of all works
  std::unordered_map<timing::WorkId, Open> open_;           ///< works that have not ended
  std::unordered_map<std::uint32_t, timing::WorkId> last_;  ///< of each stream that has open works
};

}  // namespace gridloom::hardware::hazards
