#include "sim/timing/memory/address_map.h"

namespace gridloom::timing {

AddressMap::AddressMap(const Parameters& parameters)
    : partitions_(parameters.timing().dram.channels),
      slices_(parameters.slices_per_partition()),
      lines_per_block_(parameters.timing().l2.interleave_bytes / sim::TimingSpec::kLineBytes),
      lines_per_row_(parameters.timing().dram.row_bytes / sim::TimingSpec::kLineBytes),
      banks_(parameters.timing().dram.banks) {}

LineHome AddressMap::Home(std::uint64_t line) const {
  const std::uint64_t block = lines_per_block_.Quotient(line);
  const std::uint64_t round = partitions_.Quotient(block);
  const std::uint64_t part = slices_.Quotient(round);
  LineHome home;
  home.partition = static_cast<std::uint16_t>(partitions_.Remainder(block + Hash(round)));
  home.slice = static_cast<std::uint8_t>(slices_.Remainder(round + Hash(part)));
  home.local = part * lines_per_block_.value() + (line - block * lines_per_block_.value());
  return home;
}

std::uint64_t AddressMap::Line(const LineHome& home) const {
  const auto turned_back = [](std::uint64_t index, std::uint64_t hash, const Divisor& count) {
    return count.Remainder(index + count.value() - count.Remainder(hash));
  };
  const std::uint64_t part = lines_per_block_.Quotient(home.local);
  const std::uint64_t round = part * slices_.value() + turned_back(home.slice, Hash(part), slices_);
  const std::uint64_t block = round * partitions_.value() + turned_back(home.partition, Hash(round), partitions_);
  return block * lines_per_block_.value() + lines_per_block_.Remainder(home.local);
}

DramPlace AddressMap::Place(std::uint8_t slice, std::uint64_t local) const {
  // The slices of a partition interleave in DRAM as they do in addresses, so that a stream of addresses stays in a row.
  const std::uint64_t part = lines_per_block_.Quotient(local);
  const std::uint64_t line = (part * slices_.value() + slice) * lines_per_block_.value() + lines_per_block_.Remainder(local);
  const std::uint64_t row_of_all = lines_per_row_.Quotient(line);
  const std::uint64_t row = banks_.Quotient(row_of_all);
  return {.bank = static_cast<std::uint32_t>(banks_.Remainder(row_of_all + Hash(row))), .row = static_cast<std::uint32_t>(row)};
}

}  // namespace gridloom::timing
