#include "sim/timing/memory/coalescer.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "rewriter/support/check.h"

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
  bool Has(std::uint32_t offset) const { return ((offset < 64 ? low >> offset : high >> (offset - 64)) & 1) != 0; }
  std::uint32_t sector(std::uint32_t index) const {
    return static_cast<std::uint32_t>((index < 2 ? low : high) >> (32 * (index & 1)));
  }
  /// Words of 4 bytes that are there as a whole.
  std::uint32_t words() const {
    std::uint32_t whole = 0;
    for (std::uint32_t word = 0; word < 32; ++word) {
      const std::uint64_t half = word < 16 ? low : high;
      if ((half >> (word % 16 * 4) & 0xf) == 0xf) whole |= 1u << word;
    }
    return whole;
  }
};

std::uint8_t PartialSectors(const ByteMask& bytes) {
  std::uint8_t partial = 0;
  for (std::uint32_t s = 0; s < 4; ++s) {
    const std::uint32_t covered = bytes.sector(s);
    if (covered != 0 && covered != 0xffffffffu) partial |= static_cast<std::uint8_t>(1u << s);
  }
  return partial;
}

std::uint64_t Checked(std::uint64_t line) {
  GL_CHECK(line >> LineAccess::kLineBits == 0, "an address above 2^57");
  return line;
}

/// Lanes without gaps whose addresses rise by at most a sector: every sector from the first to the last byte is
/// touched.
bool IsDense(const MemoryAccess& access) {
  if (access.stride < 0 || access.stride > static_cast<std::int32_t>(kSectorBytes) || access.mask == 0) return false;
  const std::uint32_t run = access.mask >> std::countr_zero(access.mask);
  return (run & (run + 1)) == 0;
}

/// The words of a line that lanes cover which begin at `first`, `stride` bytes apart.
std::uint32_t WordsOf(std::uint64_t line, std::uint64_t first, std::uint64_t stride, std::uint64_t lanes,
                      std::uint32_t width) {
  ByteMask bytes;
  for (std::uint64_t lane = 0; lane < lanes; ++lane) {
    const std::uint64_t begin = first + lane * stride;
    for (std::uint64_t byte = std::max(begin, line); byte < std::min(begin + width, line + kLineBytes); ++byte)
      bytes.Add(static_cast<std::uint32_t>(byte - line), 1);
    if (stride == 0) break;
  }
  return bytes.words();
}

void CoalesceDense(const MemoryAccess& access, std::uint64_t shift, std::uint32_t width, AccessKind kind,
                   LineList& out) {
  const auto stride = static_cast<std::uint64_t>(access.stride);
  const auto low = static_cast<std::uint64_t>(std::countr_zero(access.mask));
  const auto lanes = static_cast<std::uint64_t>(std::popcount(access.mask));
  const std::uint64_t first = access.base + shift + low * stride;
  const std::uint64_t end = first + (lanes - 1) * stride + width;
  const bool covers = stride <= width;  // no gaps between the lanes
  out.count = 0;
  for (std::uint64_t line = first / kLineBytes; line * kLineBytes < end; ++line) {
    LineAccess& entry = out.lines[out.count++];
    const std::uint64_t from = std::max(first, line * kLineBytes) - line * kLineBytes;
    const std::uint64_t to = std::min(end, (line + 1) * kLineBytes) - line * kLineBytes;
    const std::uint64_t first_sector = from / kSectorBytes, last_sector = (to - 1) / kSectorBytes;
    entry.line = Checked(line);
    entry.sectors = static_cast<std::uint8_t>(((2u << last_sector) - 1) & ~((1u << first_sector) - 1));
    entry.partial = covers ? 0 : entry.sectors;
    if (from % kSectorBytes != 0) entry.partial |= static_cast<std::uint8_t>(1u << first_sector);
    if (to % kSectorBytes != 0) entry.partial |= static_cast<std::uint8_t>(1u << last_sector);
    if (!kind.store) entry.partial = 0;
    if (entry.partial != 0) out.words[out.count - 1] = WordsOf(line * kLineBytes, first, stride, lanes, width);
    entry.lanes = static_cast<std::uint8_t>(!kind.atomic ? 0 : stride == 0 ? lanes : 1);
  }
}

Addresses Shifted(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint64_t shift) {
  Addresses addresses;
  trace::LaneAddresses(cta, access, addresses);
  for (std::uint64_t& address : addresses) address += shift;
  return addresses;
}

/// Lane by lane. `kBytes`: which bytes are touched is of interest, as it is for stores and atomics.
template <bool kBytes>
void CoalesceLanes(const Addresses& addresses, std::uint32_t mask, std::uint32_t width, AccessKind kind,
                   LineList& out) {
  std::array<ByteMask, kBytes ? kWarpSize : 1> bytes;
  std::uint64_t seen = 0;  // lines by their low bits: those whose bit is clear are new
  std::uint32_t count = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint64_t line = addresses[lane] / kLineBytes, bit = std::uint64_t{1} << (line & 63);
    // Neighbouring lanes mostly share a line: look at the latest first.
    std::uint32_t index = (seen & bit) != 0 ? count : 0;
    while (index > 0 && out.lines[index - 1].line != line) --index;
    if (index == 0) {
      seen |= bit;
      index = ++count;
      out.lines[index - 1] = {.line = Checked(line)};
      if constexpr (kBytes) bytes[index - 1] = {};
    }
    LineAccess& entry = out.lines[index - 1];
    const auto offset = static_cast<std::uint32_t>(addresses[lane] % kLineBytes);
    entry.sectors |= static_cast<std::uint8_t>(1u << (offset / kSectorBytes));
    if constexpr (kBytes) {
      // Each lane counts itself and those before it on its address; there are none where the line's byte is new.
      std::uint8_t same = kind.atomic ? 1 : 0;
      for (std::uint32_t before = kind.atomic && bytes[index - 1].Has(offset) ? mask & ((1u << lane) - 1) : 0;
           before != 0; before &= before - 1) {
        same += addresses[static_cast<std::size_t>(std::countr_zero(before))] == addresses[lane] ? 1 : 0;
      }
      bytes[index - 1].Add(offset, width);
      if (same > entry.lanes) entry.lanes = same;
    }
  }
  out.count = count;
  if constexpr (kBytes) {
    for (std::uint32_t i = 0; kind.store && i < count; ++i) {
      out.lines[i].partial = PartialSectors(bytes[i]);
      if (out.lines[i].partial != 0) out.words[i] = bytes[i].words();
    }
  }
}

}  // namespace

void Coalesce(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint64_t shift, std::uint32_t width,
              AccessKind kind, LineList& out) {
  if (IsDense(access) && (access.stride == 0 || static_cast<std::uint32_t>(access.stride) >= width)) {
    CoalesceDense(access, shift, width, kind, out);
    return;
  }
  const Addresses addresses = Shifted(cta, access, shift);
  if (kind.store || kind.atomic) CoalesceLanes<true>(addresses, access.mask, width, kind, out);
  else CoalesceLanes<false>(addresses, access.mask, width, kind, out);
}

void CoalescePlainly(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint64_t shift, std::uint32_t width,
                     AccessKind kind, LineList& out) {
  const Addresses addresses = Shifted(cta, access, shift);
  const auto active = [&](std::uint32_t lane) { return (access.mask >> lane & 1) != 0; };
  out.count = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t line = addresses[lane] / kLineBytes;
    const auto end = out.lines.begin() + out.count;
    if (!active(lane) ||
        std::find_if(out.lines.begin(), end, [&](const LineAccess& entry) { return entry.line == line; }) != end)
      continue;
    LineAccess entry{.line = Checked(line)};
    std::array<bool, kLineBytes> touched{};
    for (std::uint32_t other = 0; other < kWarpSize; ++other) {
      if (!active(other) || addresses[other] / kLineBytes != line) continue;
      // An access that is not aligned counts where it begins.
      for (std::uint64_t b = addresses[other] % kLineBytes;
           b < std::min(addresses[other] % kLineBytes + width, kLineBytes); ++b)
        touched[b] = true;
      std::uint32_t same = 0;
      for (std::uint32_t third = 0; third < kWarpSize; ++third)
        same += active(third) && addresses[third] == addresses[other] ? 1 : 0;
      if (kind.atomic && same > entry.lanes) entry.lanes = static_cast<std::uint8_t>(same);
    }
    for (std::uint32_t s = 0; s < 4; ++s) {
      const auto count = std::count(touched.begin() + s * kSectorBytes, touched.begin() + (s + 1) * kSectorBytes, true);
      if (count > 0) entry.sectors |= static_cast<std::uint8_t>(1u << s);
      if (kind.store && count > 0 && count < static_cast<std::ptrdiff_t>(kSectorBytes))
        entry.partial |= static_cast<std::uint8_t>(1u << s);
    }
    std::uint32_t words = 0;
    for (std::size_t word = 0; word < kLineBytes / 4; ++word) {
      const auto begin = touched.begin() + static_cast<std::ptrdiff_t>(word * 4);
      if (std::count(begin, begin + 4, true) == 4) words |= 1u << word;
    }
    out.words[out.count] = words;
    out.lines[out.count++] = entry;
  }
}

namespace {

/// The load on the banks while the lanes of one group take their turns.
class BankLoad {
 public:
  BankLoad(std::uint32_t banks, std::uint32_t bank_bytes) : banks_(banks), bank_bytes_(bank_bytes) {
    first_.fill(kNone);
  }

  std::uint32_t most() const { return most_; }

  /// A lane touches `width` bytes; each word keeps its bank for `turns`. With `share`, words that lanes share count
  /// once.
  void Add(std::uint64_t address, std::uint32_t width, std::uint32_t turns, bool share) {
    const std::uint64_t last = (address + width - 1) / bank_bytes_;
    for (std::uint64_t word = address / bank_bytes_; word <= last; ++word) {
      const std::size_t bank = word & (banks_ - 1);
      if (share && Known(bank, word)) continue;
      load_[bank] += turns;
      most_ = std::max(most_, load_[bank]);
    }
  }

 private:
  static constexpr std::uint8_t kNone = 0xff;

  /// Whether the word is in the bank's list already; else puts it there.
  bool Known(std::size_t bank, std::uint64_t word) {
    for (std::uint8_t i = first_[bank]; i != kNone; i = next_[i]) {
      if (words_[i] == word) return true;
    }
    words_[count_] = word;
    next_[count_] = first_[bank];
    first_[bank] = count_++;
    return false;
  }

  // Aligned, a group touches at most as many words as there are lanes, or as fill the banks once; not aligned, each
  // lane one more.
  static constexpr std::size_t kMostBanks = 64, kMostWords = kMostBanks + kWarpSize;
  std::uint32_t banks_, bank_bytes_, most_ = 0;
  std::array<std::uint32_t, kMostBanks> load_{};
  std::array<std::uint8_t, kMostBanks> first_;
  std::array<std::uint8_t, kMostWords> next_;
  std::array<std::uint64_t, kMostWords> words_;
  std::uint8_t count_ = 0;
};

/// Lanes that go together: as many as fill the banks once.
std::uint32_t GroupSize(std::uint32_t width, std::uint32_t banks, std::uint32_t bank_bytes) {
  return std::min(kWarpSize, std::max(1u, banks * bank_bytes / width));
}

std::uint32_t GroupLanes(std::uint32_t mask, std::uint32_t first, std::uint32_t size) {
  return size == kWarpSize ? mask : mask & (((1u << size) - 1) << first);
}

/// Whether each bank is asked for one word only, so that the lanes take one turn.
bool IsWithoutConflict(const Addresses& addresses, std::uint32_t lanes, std::uint32_t banks, std::uint32_t bank_bytes) {
  const int shift = std::countr_zero(bank_bytes);
  std::array<std::uint64_t, 64> word_of;  // set where `taken` says so
  std::uint64_t taken = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t word = addresses[static_cast<std::size_t>(std::countr_zero(lanes))] >> shift;
    const std::size_t bank = word & (banks - 1);
    if ((taken >> bank & 1) != 0 && word_of[bank] != word) return false;
    taken |= std::uint64_t{1} << bank;
    word_of[bank] = word;
  }
  return true;
}

/// Whether each lane has the address of the one whose number differs from its own by a bit, if both take part.
bool HasTwins(const Addresses& addresses, std::uint32_t mask, std::uint32_t bit) {
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint32_t twin = lane ^ bit;
    if ((mask >> twin & 1) != 0 && addresses[lane] != addresses[twin]) return false;
  }
  return true;
}

std::uint32_t Passes(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint32_t width, std::uint32_t banks,
                     std::uint32_t bank_bytes, std::uint32_t turns, bool share, bool twins) {
  Addresses addresses;
  trace::LaneAddresses(cta, access, addresses);
  std::uint32_t size = GroupSize(width, banks, bank_bytes);
  if (twins && size < kWarpSize && (HasTwins(addresses, access.mask, 1) || HasTwins(addresses, access.mask, 2)))
    size *= 2;
  std::uint32_t passes = 0;
  for (std::uint32_t first = 0; first < kWarpSize; first += size) {
    const std::uint32_t lanes = GroupLanes(access.mask, first, size);
    if (lanes == 0) continue;
    if (share && width <= bank_bytes && IsWithoutConflict(addresses, lanes, banks, bank_bytes)) {
      ++passes;
      continue;
    }
    BankLoad load(banks, bank_bytes);
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      load.Add(addresses[static_cast<std::size_t>(std::countr_zero(rest))], width, turns, share);
    }
    passes += load.most();
  }
  return passes;
}

}  // namespace

std::uint32_t SharedPasses(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint32_t width,
                           std::uint32_t banks, std::uint32_t bank_bytes, bool twins) {
  // Lanes side by side fill the banks without conflict, lanes on one address share it: a pass for each group with a
  // lane.
  if (access.stride == 0 || access.stride == static_cast<std::int32_t>(width)) {
    std::uint32_t size = GroupSize(width, banks, bank_bytes);
    if (twins && access.stride == 0) size = std::min(kWarpSize, 2 * size);
    std::uint32_t passes = 0;
    for (std::uint32_t first = 0; first < kWarpSize; first += size)
      passes += GroupLanes(access.mask, first, size) != 0 ? 1 : 0;
    return passes;
  }
  return Passes(cta, access, width, banks, bank_bytes, 1, true, twins);
}

std::uint32_t SharedAtomicPasses(const trace::CtaTrace& cta, const MemoryAccess& access, std::uint32_t width,
                                 std::uint32_t banks, std::uint32_t bank_bytes, std::uint32_t interval) {
  return Passes(cta, access, width, banks, bank_bytes, interval, false, false);
}

}  // namespace gridloom::timing
