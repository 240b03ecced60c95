#include "sim/timing/memory/address_map.h"

namespace gridloom::timing {

AddressMap::AddressMap(const Parameters& parameters)
    : partitions_(parameters.timing().dram.channels),
      slices_(parameters.slices_per_partition()),
      lines_per_block_(parameters.timing().l2.interleave_bytes / sim::TimingSpec::kLineBytes),
      lines_per_row_(parameters.timing().dram.row_bytes / sim::TimingSpec::kLineBytes),
      banks_(parameters.timing().dram.banks) {}

std::uint64_t AddressMap::Line(const LineHome& home) const {
  const auto turned_back = [](std::uint64_t index, std::uint64_t hash, const Divisor& count) {
    return count.Remainder(index + count.value() - count.Remainder(hash));
  };
  const std::uint64_t part = lines_per_block_.Quotient(home.local);
  const std::uint64_t round = part * slices_.value() + turned_back(home.slice, Hash(part), slices_);
  const std::uint64_t block = round * partitions_.value() + turned_back(home.partition, Hash(round), partitions_);
  return block * lines_per_block_.value() + lines_per_block_.Remainder(home.local);
}

}  // namespace gridloom::timing
