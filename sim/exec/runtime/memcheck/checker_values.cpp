// Values from memory that nobody has written (compiler/invalid_values.h).
#include <algorithm>
#include <cstring>

#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/check_support.h"
#include "sim/exec/runtime/memcheck/places.h"

namespace gridloom::exec {
namespace {

/// Where in the unit's shared memory an address of the code lies; nothing if it does not.
std::optional<std::uint32_t> SharedOffset(const Warp& warp, Space space, std::uint64_t address, std::uint32_t bytes) {
  const std::uint64_t offset = space == Space::kShared ? address : address - warp.cta->ctx.shared_base;
  if (space == Space::kGlobal || !InSharedWindow(LaunchOf(warp), offset, bytes)) return std::nullopt;
  return static_cast<std::uint32_t>(offset);
}

bool IsInLocalMemory(const Warp& warp, std::uint32_t lane, std::uint64_t address) {
  return address - (warp.ctx.local_base + std::uint64_t{warp.ctx.local_stride} * lane) < warp.ctx.local_bytes;
}

constexpr std::uint8_t kNoBitValid = 0xff;

}  // namespace

void Memcheck::NoteInvalidRead(Warp& warp, const LaneRequest& request, std::uint32_t offset) {
  warp.ctx.invalid_reads = 1;
  CheckOf(warp).invalid_reads[std::size_t{NumberOf(warp)} * kWarpSize + request.lane] = {request.line, offset,
                                                                                         request.bytes};
}

/// What an access does to what is known of global memory. Reads are not looked at: what is read may never be used.
void Memcheck::CheckWritten(Warp& warp, const LaneRequest& request, const CheckedRegion& region) {
  if (request.kind == AccessKind::kRead) return;
  const std::uint64_t offset = request.address - region.base;
  if (request.kind == AccessKind::kAtomic && region.written->FirstUnwritten(offset, request.bytes)) {
    Note(warp, MemcheckKind::kUninitialized, request, request.address, 0, [&](MemcheckReport& report) {
      report.place = GlobalPlace(memory_, heap_, request.address, request.bytes);
      report.allocation = NearestAllocation(memory_, request.address);
    });
  }
  region.written->Write(offset, request.bytes);
}

void Memcheck::LoadedBits(Warp& warp, std::uint32_t mask, ShadowImm imm, const std::uint64_t* addresses,
                          std::uint8_t* bits) {
  std::memset(bits, 0, std::size_t{kWarpSize} * imm.bytes);
  const SharedShadow& shadow = CheckOf(warp).shadow;
  ForEachLane(mask, [&](std::uint32_t lane) {
    const auto offset = SharedOffset(warp, imm.space, addresses[lane], imm.bytes);
    for (std::uint32_t i = 0; offset && i < imm.bytes; ++i)
      if (!shadow.IsWritten(*offset + i)) bits[std::size_t{lane} * imm.bytes + i] = kNoBitValid;
  });
}

/// In shared memory a byte without a valid bit counts as not written. Local memory is taken to be valid. Elsewhere,
/// what is stored leaves the CTA: it has to have a valid byte, as structs have gaps and vectors elements that nobody
/// uses.
void Memcheck::StoredBits(Warp& warp, std::uint32_t mask, std::uint32_t line, ShadowImm imm,
                          const std::uint64_t* addresses, const std::uint8_t* const* bits) {
  const std::uint32_t bytes = std::uint32_t{imm.bytes} * imm.count;
  std::uint32_t leaves = 0;
  ForEachLane(mask, [&](std::uint32_t lane) {
    const auto invalid = [&](std::uint32_t at) {
      return bits[at / imm.bytes][std::size_t{lane} * imm.bytes + at % imm.bytes] == kNoBitValid;
    };
    if (const auto offset = SharedOffset(warp, imm.space, addresses[lane], bytes)) {
      for (std::uint32_t at = 0, end = 0; at < bytes; at = end + 1) {
        for (end = at; end < bytes && invalid(end);) ++end;
        if (end != at) CheckOf(warp).shadow.Unwrite(*offset + at, end - at);
      }
      return;
    }
    bool all = imm.space != Space::kShared && !IsInLocalMemory(warp, lane, addresses[lane]);
    for (std::uint32_t at = 0; at < bytes; ++at) all = all && invalid(at);
    if (all) leaves |= 1u << lane;
  });
  if (leaves != 0) UseInvalid(warp, leaves, line, InvalidUse::kStore);
}

/// The invalid read of the lane, or of another lane that has given it the value.
const UnitCheck::InvalidRead& InvalidReadOf(const Warp& warp, std::uint32_t lane) {
  const UnitCheck::InvalidRead* const reads =
      CheckOf(warp).invalid_reads.data() + std::size_t{NumberOf(warp)} * kWarpSize;
  if (reads[lane].line != 0) return reads[lane];
  const auto* const other =
      std::find_if(reads, reads + kWarpSize, [](const UnitCheck::InvalidRead& read) { return read.line != 0; });
  return other == reads + kWarpSize ? reads[lane] : *other;
}

void Memcheck::UseInvalid(Warp& warp, std::uint32_t mask, std::uint32_t line, InvalidUse use) {
  ForEachLane(mask, [&](std::uint32_t lane) {
    const UnitCheck::InvalidRead& read = InvalidReadOf(warp, lane);
    const bool shuffled = read.line == 0;  // nobody of the warp has read such memory
    const MemcheckKind kind = shuffled ? MemcheckKind::kShuffleSource : MemcheckKind::kUninitialized;
    const LaneRequest request{.lane = lane, .line = line, .space = Space::kShared, .bytes = read.bytes};
    Note(warp, kind, request, read.offset, read.line, [&](MemcheckReport& report) {
      report.use = use;
      if (!shuffled) report.place = SharedPlace(LaunchOf(warp), read.offset);
      if (read.line != 0) report.other = Describe(warp, lane, AccessKind::kRead, read.bytes, read.line);
    });
  });
}

}  // namespace gridloom::exec
