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

/// Blocks of interleave_bytes go round the partitions, turned by a hash of the higher bits so that power-of-two strides
/// spread; any number of partitions is possible. Within a partition, blocks go round the slices; of a slice's memory,
/// rows go round the banks, permuted by the row number. One-to-one at every step.
class AddressMap {
 public:
  explicit AddressMap(const Parameters& parameters);

  LineHome Home(std::uint64_t line) const;
  /// The inverse of Home().
  std::uint64_t Line(const LineHome& home) const;
  /// The place in DRAM of a line whose slice and local number Home() gave.
  DramPlace Place(std::uint8_t slice, std::uint64_t local) const;

 private:
  static std::uint64_t Hash(std::uint64_t value) {
    return value ^ (value >> 4) ^ (value >> 9) ^ (value >> 15) ^ (value >> 23);
  }

  Divisor partitions_, slices_, lines_per_block_, lines_per_row_, banks_;
};

inline LineHome AddressMap::Home(std::uint64_t line) const {
  const std::uint64_t block = lines_per_block_.Quotient(line);
  const std::uint64_t round = partitions_.Quotient(block);
  const std::uint64_t part = slices_.Quotient(round);
  LineHome home;
  home.partition = static_cast<std::uint16_t>(partitions_.Remainder(block + Hash(round)));
  home.slice = static_cast<std::uint8_t>(slices_.Remainder(round + Hash(part)));
  home.local = part * lines_per_block_.value() + (line - block * lines_per_block_.value());
  return home;
}

inline DramPlace AddressMap::Place(std::uint8_t slice, std::uint64_t local) const {
  // The slices of a partition interleave in DRAM as they do in addresses, so that a stream of addresses stays in a row.
  const std::uint64_t part = lines_per_block_.Quotient(local);
  const std::uint64_t line =
      (part * slices_.value() + slice) * lines_per_block_.value() + lines_per_block_.Remainder(local);
  const std::uint64_t row_of_all = lines_per_row_.Quotient(line);
  const std::uint64_t row = banks_.Quotient(row_of_all);
  return {.bank = static_cast<std::uint32_t>(banks_.Remainder(row_of_all + Hash(row))),
          .row = static_cast<std::uint32_t>(row)};
}

}  // namespace gridloom::timing
