// The patterns of lanes that a launch's records name and only the run tells (RecordSite in
// sim/exec/contract/records.h), by host thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/exec/contract/records.h"

namespace gridloom::exec {

class RecordPatterns {
 public:
  /// Forgets all; what compiled code finds matches no access. `instructions`: of the code, which has sites for so many
  /// at most.
  void Reset(std::size_t instructions);
  RecordSite* sites() { return sites_.data(); }

  /// Looks whether the lanes of the mask, whose addresses a slot of form kFound has at `slot`, lie like a pattern,
  /// which it makes if need be; then the site has that pattern and the slot names it. Returns the end of the slot.
  std::uint64_t* Learn(RecordSite& site, std::uint32_t mask, std::uint64_t* slot);

 private:
  using Pattern = std::array<std::int64_t, kWarpSize>;
  static constexpr std::size_t kMostPatterns = 64;
  static constexpr std::uint64_t kTries = 128, kPriceOfNew = 16;  // a site gives up when each access is new

  const Pattern* Find(std::uint32_t mask, const std::uint64_t* lanes) const;

  std::vector<RecordSite> sites_;
  std::vector<std::unique_ptr<const Pattern>> patterns_;  ///< the first one matches nothing
};

}  // namespace gridloom::exec
