// Which memory partition, L2 slice, set, DRAM bank and row an address belongs to.
#pragma once

#include <cstdint>

#include "sim/timing/divisor.h"
#include "sim/timing/parameters.h"

namespace gridloom::timing {

/// Where a line goes. `local` numbers the lines of a slice densely.
struct LineHome {
  std::uint16_t partition = 0;
  std::uint8_t slice = 0;  ///< of the partition
  std::uint64_t local = 0;
};

struct DramPlace {
  std::uint32_t bank = 0;
  std::uint32_t row = 0;
};

/// Blocks of interleave_bytes go round the partitions, turned by a hash of the higher bits so that power-of-two strides spread; any
/// number of partitions is possible. Within a partition, blocks go round the slices; of a slice's memory, rows go round the banks,
/// permuted by the row number. One-to-one at every step.
class AddressMap {
 public:
  explicit AddressMap(const Parameters& parameters);

  LineHome Home(std::uint64_t line) const;
  /// The inverse of Home().
  std::uint64_t Line(const LineHome& home) const;
  /// Of a line that Home() gave the partition's slice and local number.
  DramPlace Place(std::uint8_t slice, std::uint64_t local) const;

 private:
  static std::uint64_t Hash(std::uint64_t value) { return value ^ (value >> 4) ^ (value >> 9) ^ (value >> 15) ^ (value >> 23); }

  Divisor partitions_, slices_, lines_per_block_, lines_per_row_, banks_;
};

}  // namespace gridloom::timing
