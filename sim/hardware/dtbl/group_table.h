// The aggregated group table (J. Wang, N. Rubin, A. Sidelnik, S. Yalamanchili, "Dynamic thread block launch", ISCA
// 2015, section 4.2): what the SM scheduler has at hand of thread-block groups that wait or run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gridloom::hardware {

class GroupTable {
 public:
  explicit GroupTable(std::uint32_t entries) : taken_(entries) {}

  /// The one entry that a hardware thread's launch may have, ind = hw_tid & (AGT_size - 1), or the rest where the size
  /// is no power of two; nothing when it is taken: the group's information stays in global memory.
  std::optional<std::uint32_t> Take(std::uint64_t hardware_thread);
  /// All blocks of the group have ended.
  void Free(std::uint32_t entry);

  std::uint32_t taken() const { return count_; }
  std::uint32_t most_taken() const { return most_; }

 private:
  std::vector<bool> taken_;
  std::uint32_t count_ = 0, most_ = 0;
};

}  // namespace gridloom::hardware
