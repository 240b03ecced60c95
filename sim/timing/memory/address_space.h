// Where the memory of a process lies in a device's.
#pragma once

#include <cstdint>

namespace gridloom::timing {

/// The pages of one process. Programs that run at the same time, and traces of programs that ran one after the other,
/// have arrays at the same virtual addresses; on a device these are different memory. Space 0 lies at its virtual
/// addresses: a program alone. The pages of every other space are scattered over all of the physical address space, as
/// pages are that a driver takes from where there are free ones: by a permutation that `layout` and the number choose,
/// so that nobody has to remember who touched what first. Two spaces of a and b pages share some a b / 2^30 pages (of
/// 128 KiB): none.
class AddressSpace {
 public:
  AddressSpace() = default;
  /// `page_bytes`: a power of two, 128 at least.
  AddressSpace(std::uint32_t number, std::uint64_t layout, std::uint64_t page_bytes);

  /// The physical line of a virtual line (address / 128). Both are below 2^40, as programs have them; of higher lines
  /// the low bits count.
  std::uint64_t PhysicalLine(std::uint64_t line) const { return scattered_ ? Scattered(line) : line & kLineMask; }

 private:
  static constexpr unsigned kLineBits = 40;
  static constexpr std::uint64_t kLineMask = (std::uint64_t{1} << kLineBits) - 1;
  static constexpr int kRounds = 3;
  std::uint64_t Scattered(std::uint64_t line) const;

  bool scattered_ = false;
  unsigned page_shift_ = 0;  // of a line
  std::uint64_t keys_[kRounds] = {};
};

}  // namespace gridloom::timing
