#include "sim/timing/address_map.h"

namespace gridloom::timing {

AddressMap::AddressMap(const Parameters& parameters)
    : partitions_(parameters.timing().dram.channels),
      slices_(parameters.slices_per_partition()),
      lines_per_block_(parameters.timing().l2.interleave_bytes / sim::TimingSpec::kLineBytes),
      lines_per_row_(parameters.timing().dram.row_bytes / sim::TimingSpec::kLineBytes),
      banks_(parameters.timing().dram.banks) {}

LineHome AddressMap::Home(std::uint64_t line) const {
  const std::uint64_t block = line / lines_per_block_;
  const std::uint64_t round = block / partitions_;
  const std::uint64_t part = round / slices_;
  LineHome home;
  home.partition = static_cast<std::uint16_t>((block + Hash(round)) % partitions_);
  home.slice = static_cast<std::uint8_t>((round + Hash(part)) % slices_);
  home.local = part * lines_per_block_ + line % lines_per_block_;
  return home;
}

std::uint64_t AddressMap::Line(const LineHome& home) const {
  const std::uint64_t part = home.local / lines_per_block_;
  const std::uint64_t round = part * slices_ + (home.slice + slices_ - Hash(part) % slices_) % slices_;
  const std::uint64_t block = round * partitions_ + (home.partition + partitions_ - Hash(round) % partitions_) % partitions_;
  return block * lines_per_block_ + home.local % lines_per_block_;
}

DramPlace AddressMap::Place(std::uint8_t slice, std::uint64_t local) const {
  // The slices of a partition interleave in DRAM as they do in addresses, so that a stream of addresses stays in a row.
  const std::uint64_t part = local / lines_per_block_;
  const std::uint64_t line = (part * slices_ + slice) * lines_per_block_ + local % lines_per_block_;
  const std::uint64_t row_of_all = line / lines_per_row_;
  const std::uint64_t row = row_of_all / banks_;
  return {.bank = static_cast<std::uint32_t>((row_of_all + Hash(row)) % banks_), .row = static_cast<std::uint32_t>(row)};
}

}  // namespace gridloom::timing
