// How far LLVM's register allocator looks for regions to split live ranges in. In large warp forms, with many vectors
// alive across hundreds of blocks, that search takes half of the compile time; small kernels with hot loops lose up to
// a third of their speed without it. LLVM has one value for the whole process, so kernels compiled at the same time by
// several threads must want the same one.
#pragma once

#include <cstdint>

namespace gridloom::exec {

enum class RegionBudget : std::uint8_t { kUsual, kSmall };

/// While one lives, the allocator works with its budget; waits for those who want the other one. Not to be nested. When
/// none lives, LLVM's option is as other users of the library in the process know it.
class WithRegionBudget {
 public:
  explicit WithRegionBudget(RegionBudget budget);
  ~WithRegionBudget();
  WithRegionBudget(const WithRegionBudget&) = delete;
  WithRegionBudget& operator=(const WithRegionBudget&) = delete;
};

}  // namespace gridloom::exec
