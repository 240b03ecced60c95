// How far the works have come that a work comes behind: those before it in its stream and those that it waits for, the
// works before these, and so on.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/ports.h"

namespace gridloom::hardware::crcs {

/// What a work may have to wait for, of itself and of all before it. A work that has ended has reached all of them.
enum class Stage : std::uint8_t {
  kKnown,     ///< what they use of memory is in the table
  kFilling,   ///< they have ended, but for copies to the device that have begun
  kProfiled,  ///< they have ended, but for profilers
};
inline constexpr std::size_t kStages = 3;

class Dependences {
 public:
  /// The work comes behind the last one of its stream and those of `after`. Works are given in their order and end in
  /// it.
  void Give(const timing::WorkView& work);
  /// From that cycle on the stage is reached as far as the work itself is concerned.
  void Reach(timing::WorkId work, Stage stage, timing::Cycle since);
  void End(timing::WorkId work);
  /// Since when the work and all before it have reached the stage; kNever: not yet.
  timing::Cycle Since(timing::WorkId work, Stage stage) const;

 private:
  /// A work that has not ended.
  struct Node {
    std::uint32_t stream = 0;
    std::vector<timing::WorkId> behind;  ///< works that come directly behind it, one for each reason
    struct Progress {
      timing::Cycle own = timing::kNever;  ///< since when, as far as the work itself is concerned
      timing::Cycle before = 0;            ///< the same of works directly before it that have reached the stage
      std::uint32_t missing = 0;           ///< works directly before it that have not
      bool reached() const { return own != timing::kNever && missing == 0; }
    };
    std::array<Progress, kStages> progress;
  };
  static timing::Cycle SinceOf(const Node::Progress& progress);
  void Pass(timing::WorkId work, std::size_t stage);

  std::unordered_map<timing::WorkId, Node> nodes_;
  std::unordered_map<std::uint32_t, timing::WorkId> last_;  ///< of each stream that has works
};

}  // namespace gridloom::hardware::crcs
