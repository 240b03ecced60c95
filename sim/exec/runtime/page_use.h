// Whether large pages suit an allocation. They save page faults where memory is used as it lies; where a program
// touches a few bytes here and there, as with a stack for each thread, the system clears all that lies between.
#pragma once

#include <cstdint>
#include <vector>

namespace gridloom::exec {

inline constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

/// The pages of one allocation, which has large pages at first where the system has them. The allocation and its pages
/// must stay while somebody looks.
class PageUse {
 public:
  /// Whether an allocation is worth a look: smaller ones are not, and looks at larger ones take too long.
  static bool Matters(std::uint64_t bytes) { return bytes >= 8 * kHugePage && bytes <= (std::uint64_t{16} << 30); }

  /// `base`: a multiple of kHugePage.
  PageUse(std::uint64_t base, std::uint64_t bytes) : base_(base), blocks_(bytes / kHugePage) {}

  /// Looks at what has been touched, and changes the size of the pages to come. True when no further look is needed.
  /// Bytes may be written meanwhile.
  bool Look();

 private:
  std::vector<std::uint16_t> CountTouched() const;
  bool LookAtLarge();
  bool LookAtSmall();

  std::uint64_t base_ = 0, blocks_ = 0;
  unsigned looks_ = 0;
  /// Pages of each block that were there when pages became small; empty: they are large.
  std::vector<std::uint16_t> before_;
};

}  // namespace gridloom::exec
