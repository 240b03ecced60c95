#include "sim/timing/coalescer.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace gridloom::timing {
namespace {

using trace::kWarpSize;
using trace::MemoryAccess;

constexpr std::uint64_t kLineBytes = 128;
constexpr std::uint64_t kSectorBytes = 32;
using Addresses = std::array<std::uint64_t, kWarpSize>;

/// Bytes of a line, as a mask.
struct ByteMask {
  std::uint64_t low = 0, high = 0;
  void Add(std::uint32_t offset, std::uint32_t width) {
    const std::uint64_t bytes = (std::uint64_t{1} << width) - 1;
    if (offset < 64) low |= bytes << offset;
    else high |= bytes << (offset - 64);
  }
  std::uint32_t sector(std::uint32_t index) const { return static_cast<std::uint32_t>((index < 2 ? low : high) >> (32 * (index & 1))); }
};

std::uint8_t PartialSectors(const ByteMask& bytes) {
  std::uint8_t partial = 0;
  for (std::uint32_t s = 0; s < 4; ++s) {
    const std::uint32_t covered = bytes.sector(s);
    if (covered != 0 && covered != 0xffffffffu) partial |= static_cast<std::uint8_t>(1u << s);
  }
  return partial;
}

/// Lanes without gaps whose addresses rise by at most a sector: every sector from the first to the last byte is touched.
bool IsDense(const MemoryAccess& access) {
  if (access.stride < 0 || access.stride > static_cast<std::int32_t>(kSectorBytes) || access.mask == 0) return false;
  const std::uint32_t run = access.mask >> std::countr_zero(access.mask);
  return (run & (run + 1)) == 0;
}

void CoalesceDense(const MemoryAccess& access, std::uint64_t displacement, std::uint32_t width, LineList& out) {
  const auto stride = static_cast<std::uint64_t>(access.stride);
  const auto low = static_cast<std::uint64_t>(std::countr_zero(access.mask));
  const auto lanes = static_cast<std::uint64_t>(std::popcount(access.mask));
  const std::uint64_t first = access.base + displacement + low * stride;
  const std::uint64_t end = first + (lanes - 1) * stride + width;
  const bool covers = stride <= width;  // no gaps between the lanes
  out.count = 0;
  for (std::uint64_t line = first / kLineBytes; line * kLineBytes < end; ++line) {
    LineAccess& entry = out.lines[out.count++];
    const std::uint64_t from = std::max(first, line * kLineBytes) - line * kLineBytes;
    const std::uint64_t to = std::min(end, (line + 1) * kLineBytes) - line * kLineBytes;
    const std::uint64_t first_sector = from / kSectorBytes, last_sector = (to - 1) / kSectorBytes;
    entry.line = line;
    entry.sectors = static_cast<std::uint8_t>(((2u << last_sector) - 1) & ~((1u << first_sector) - 1));
    entry.partial = covers ? 0 : entry.sectors;
    if (from % kSectorBytes != 0) entry.partial |= static_cast<std::uint8_t>(1u << first_sector);
    if (to % kSectorBytes != 0) entry.partial |= static_cast<std::uint8_t>(1u << last_sector);
    entry.lanes = static_cast<std::uint8_t>(stride == 0 ? lanes : 1);
  }
}

Addresses Displaced(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint64_t displacement) {
  Addresses addresses;
  trace::LaneAddresses(cta, access, addresses);
  for (std::uint64_t& address : addresses) address += displacement;
  return addresses;
}

}  // namespace

void Coalesce(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint64_t displacement, std::uint32_t width, LineList& out) {
  if (IsDense(access) && (access.stride == 0 || static_cast<std::uint32_t>(access.stride) >= width)) {
    CoalesceDense(access, displacement, width, out);
    return;
  }
  const Addresses addresses = Displaced(cta, access, displacement);
  std::array<ByteMask, kWarpSize> bytes;
  out.count = 0;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint64_t line = addresses[lane] / kLineBytes;
    // Neighbouring lanes mostly share a line: look at the latest first.
    std::uint32_t index = out.count;
    while (index > 0 && out.lines[index - 1].line != line) --index;
    if (index == 0) {
      index = ++out.count;
      out.lines[index - 1] = {.line = line};
      bytes[index - 1] = {};
    }
    LineAccess& entry = out.lines[index - 1];
    const auto offset = static_cast<std::uint32_t>(addresses[lane] % kLineBytes);
    entry.sectors |= static_cast<std::uint8_t>(1u << (offset / kSectorBytes));
    bytes[index - 1].Add(offset, width);
    // Each lane counts itself and those before it on its address.
    std::uint8_t same = 1;
    for (std::uint32_t before = access.mask & ((1u << lane) - 1); before != 0; before &= before - 1) {
      same += addresses[static_cast<std::size_t>(std::countr_zero(before))] == addresses[lane] ? 1 : 0;
    }
    entry.lanes = std::max(entry.lanes, same);
  }
  for (std::uint32_t i = 0; i < out.count; ++i) out.lines[i].partial = PartialSectors(bytes[i]);
}

void CoalescePlainly(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint64_t displacement, std::uint32_t width,
                     LineList& out) {
  const Addresses addresses = Displaced(cta, access, displacement);
  const auto active = [&](std::uint32_t lane) { return (access.mask >> lane & 1) != 0; };
  out.count = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t line = addresses[lane] / kLineBytes;
    const auto end = out.lines.begin() + out.count;
    if (!active(lane) || std::find_if(out.lines.begin(), end, [&](const LineAccess& entry) { return entry.line == line; }) != end) continue;
    LineAccess entry{.line = line};
    std::array<bool, kLineBytes> touched{};
    for (std::uint32_t other = 0; other < kWarpSize; ++other) {
      if (!active(other) || addresses[other] / kLineBytes != line) continue;
      for (std::uint32_t b = 0; b < width; ++b) touched[addresses[other] % kLineBytes + b] = true;
      std::uint32_t same = 0;
      for (std::uint32_t third = 0; third < kWarpSize; ++third) same += active(third) && addresses[third] == addresses[other] ? 1 : 0;
      entry.lanes = std::max(entry.lanes, static_cast<std::uint8_t>(same));
    }
    for (std::uint32_t s = 0; s < 4; ++s) {
      const auto count = std::count(touched.begin() + s * kSectorBytes, touched.begin() + (s + 1) * kSectorBytes, true);
      if (count > 0) entry.sectors |= static_cast<std::uint8_t>(1u << s);
      if (count > 0 && count < static_cast<std::ptrdiff_t>(kSectorBytes)) entry.partial |= static_cast<std::uint8_t>(1u << s);
    }
    out.lines[out.count++] = entry;
  }
}

namespace {

/// Turns that the lanes of one group take: the most loaded bank decides. `Weight(lane, word)` is how long a word keeps its bank;
/// 0 when an earlier lane has fetched it.
template <typename Visit>
std::uint32_t GroupPasses(std::uint32_t lanes, const Addresses& addresses, std::uint32_t width, std::uint32_t banks,
                          std::uint32_t bank_bytes, const Visit& weight) {
  std::array<std::uint32_t, 64> load{};
  const std::uint32_t words = std::max(1u, width / bank_bytes);
  std::uint32_t most = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    for (std::uint32_t w = 0; w < words; ++w) {
      const std::uint64_t word = addresses[lane] / bank_bytes + w;
      std::uint32_t& bank = load[word & (banks - 1)];
      bank += weight(lanes & ((1u << lane) - 1), word);
      most = std::max(most, bank);
    }
  }
  return most;
}

template <typename Weight>
std::uint32_t Passes(const MemoryAccess& access, const Addresses& addresses, std::uint32_t width, std::uint32_t banks,
                     std::uint32_t bank_bytes, const Weight& weight) {
  const std::uint32_t group = std::min(kWarpSize, banks * bank_bytes / width);
  std::uint32_t passes = 0;
  for (std::uint32_t first = 0; first < kWarpSize; first += group) {
    const std::uint32_t lanes = access.mask & (group == 32 ? ~0u : ((1u << group) - 1) << first);
    if (lanes != 0) passes += GroupPasses(lanes, addresses, width, banks, bank_bytes, weight);
  }
  return passes;
}

/// Whether a lane of `lanes` touches the word.
bool Touches(std::uint32_t lanes, const Addresses& addresses, std::uint32_t width, std::uint32_t bank_bytes, std::uint64_t word) {
  const std::uint32_t words = std::max(1u, width / bank_bytes);
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t first = addresses[static_cast<std::size_t>(std::countr_zero(lanes))] / bank_bytes;
    if (word >= first && word < first + words) return true;
  }
  return false;
}

}  // namespace

std::uint32_t SharedPasses(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint32_t width, std::uint32_t banks,
                           std::uint32_t bank_bytes) {
  // Lanes side by side fill the banks without conflict; all on one address share it.
  const bool side_by_side = access.stride == static_cast<std::int32_t>(width) && access.base % width == 0;
  if (access.mask == 0xffffffffu && side_by_side) return std::max(1u, kWarpSize * width / (banks * bank_bytes));
  Addresses addresses;
  trace::LaneAddresses(cta, access, addresses);
  return Passes(access, addresses, width, banks, bank_bytes,
                [&](std::uint32_t before, std::uint64_t word) { return Touches(before, addresses, width, bank_bytes, word) ? 0u : 1u; });
}

std::uint32_t SharedAtomicPasses(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint32_t width, std::uint32_t banks,
                                 std::uint32_t bank_bytes, std::uint32_t interval) {
  Addresses addresses;
  trace::LaneAddresses(cta, access, addresses);
  return Passes(access, addresses, width, banks, bank_bytes, [&](std::uint32_t, std::uint64_t) { return interval; });
}

}  // namespace gridloom::timing
