#include "sim/timing/memory/address_space.h"

#include <bit>

namespace gridloom::timing {
namespace {

/// SplitMix64: spreads any number over 64 bits.
std::uint64_t Mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

AddressSpace::AddressSpace(std::uint32_t number, std::uint64_t layout, std::uint64_t page_bytes)
    : scattered_(number != 0), page_shift_(static_cast<unsigned>(std::countr_zero(page_bytes / 128))) {
  std::uint64_t key = Mix(Mix(layout) ^ number);
  for (std::uint64_t& round : keys_) round = key = Mix(key);
}

/// Each step is one-to-one on page numbers: adding a key, multiplying with an odd number, folding the high half into
/// the low one.
std::uint64_t AddressSpace::Scattered(std::uint64_t line) const {
  const unsigned bits = kLineBits - page_shift_;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t page = line >> page_shift_ & mask;
  for (const std::uint64_t key : keys_) {
    page = ((page ^ key) & mask) * 0xff51afd7ed558ccd & mask;
    page ^= page >> (bits + 1) / 2;
  }
  return page << page_shift_ | (line & ((std::uint64_t{1} << page_shift_) - 1));
}

}  // namespace gridloom::timing
