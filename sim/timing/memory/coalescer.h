// How the accesses of a warp's lanes fall on lines, sectors and banks.
#pragma once

#include <array>
#include <cstdint>

#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

/// What one instruction touches of one line of 128 bytes. A word: an SM keeps hundreds.
struct LineAccess {
  static constexpr unsigned kLineBits = 50;
  std::uint64_t line : kLineBits = 0;  ///< address / 128
  std::uint64_t sectors : 4 = 0;       ///< mask of those touched
  std::uint64_t partial : 4 = 0;       ///< stores: of those, the ones with bytes that no lane touches
  std::uint64_t lanes : 6 = 0;         ///< atomics: most lanes on one address
};
static_assert(sizeof(LineAccess) == 8);

/// The lines of one instruction in the order of the first lane that touches each.
struct LineList {
  std::uint32_t count = 0;
  std::array<LineAccess, trace::kWarpSize> lines;
  /// By line, of stores: the words of 4 bytes that are covered, as a mask, where LineAccess::partial is not 0.
  std::array<std::uint32_t, trace::kWarpSize> words;
};

struct AccessKind {
  bool atomic = false;
  bool store = false;
};

/// `shift` is added to the addresses. Accesses are aligned to `width`, as GPUs require. LineAccess::lanes is counted
/// for atomics only, LineAccess::partial for stores only; else they are 0. LineList::words is of stores.
void Coalesce(const trace::CtaTrace& cta, const trace::MemoryAccess& access, std::uint64_t shift, std::uint32_t width,
              AccessKind kind, LineList& out);

/// The same without short cuts: the reference for it.
void CoalescePlainly(const trace::CtaTrace& cta, const trace::MemoryAccess& access, std::uint64_t shift,
                     std::uint32_t width, AccessKind kind, LineList& out);

/// Passes over the banks of shared memory that an access takes: lanes that read different words of one bank take turns,
/// those that read one word share it. Wide accesses go in groups of lanes that fill the banks once. 0 for an empty
/// mask. `twins`: lanes count as one where each lane has the address of its neighbour (of lane n ^ 1, or of n ^ 2), so
/// that twice as many go together.
std::uint32_t SharedPasses(const trace::CtaTrace& cta, const trace::MemoryAccess& access, std::uint32_t width,
                           std::uint32_t banks, std::uint32_t bank_bytes, bool twins);

/// The same for atomics, where lanes on one word take turns of `interval` passes, too.
std::uint32_t SharedAtomicPasses(const trace::CtaTrace& cta, const trace::MemoryAccess& access, std::uint32_t width,
                                 std::uint32_t banks, std::uint32_t bank_bytes, std::uint32_t interval);

}  // namespace gridloom::timing
