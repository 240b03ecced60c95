#include "sim/exec/runtime/memcheck/checker.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "sim/exec/contract/async_copy_immediates.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/places.h"
#include "sim/exec/runtime/parameter_buffers.h"
#include "sim/exec/runtime/program_impl.h"
#include "sim/exec/runtime/source_line.h"

namespace gridloom::exec {
namespace {

/// Where bad accesses go: reads find zeros, writes are lost.
std::uint8_t* HarmlessPlace() {
  alignas(64) thread_local std::uint8_t place[256];
  std::memset(place, 0, sizeof place);
  return place;
}

UnitCheck& CheckOf(const Warp& warp) { return *warp.cta->unit->check; }
std::uint32_t NumberOf(const Warp& warp) { return static_cast<std::uint32_t>(&warp - warp.cta->unit->warps); }

/// Bytes of a CTA's window that exist: windows of a cluster's CTAs lie a rounded distance apart.
bool InSharedWindow(const Launch& launch, std::uint64_t offset, std::uint32_t bytes) {
  const std::uint64_t stride = launch.ctx.shared_stride, own = launch.ctx.total_shared_bytes;
  if (launch.ctas_per_unit == 1) return offset < own && bytes <= own - offset;
  const std::uint64_t inside = offset % stride;
  return offset / stride < launch.ctas_per_unit && inside < own && bytes <= own - inside;
}

bool IsAligned(std::uint64_t address, std::uint32_t bytes) { return (address & (std::bit_ceil(bytes) - 1)) == 0; }

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// One lane
// ---------------------------------------------------------------------------------------------------------------------

std::uint8_t* Memcheck::Check(Warp& warp, const LaneRequest& request) {
  const CtaCtx& cta = warp.cta->ctx;
  const std::uint64_t shared_offset = request.address - cta.shared_base;
  switch (request.space) {
    case Space::kShared: return CheckShared(warp, request, shared_offset);
    case Space::kLocal: return CheckLocal(warp, request);
    case Space::kGeneric:
      if (shared_offset < cta.shared_bytes) return CheckShared(warp, request, shared_offset);
      if (request.address - (warp.ctx.local_base + std::uint64_t{warp.ctx.local_stride} * request.lane) < warp.ctx.local_bytes)
        return CheckLocal(warp, request);
      break;
    case Space::kGlobal: break;
  }
  return CheckGlobal(warp, request);
}

std::uint8_t* Memcheck::CheckShared(Warp& warp, const LaneRequest& request, std::uint64_t offset) {
  const Launch& launch = LaunchOf(warp);
  LaneRequest shared = request;
  shared.space = Space::kShared;
  if (!InSharedWindow(launch, offset, request.bytes)) return Bad(warp, MemcheckKind::kOutOfBounds, shared, offset, true);
  if (!IsAligned(request.address, request.bytes)) return Bad(warp, MemcheckKind::kMisaligned, shared, offset, true);
  auto* const at = reinterpret_cast<std::uint8_t*>(request.address);
  if (!CheckOf(warp).copies.empty()) CheckCopies(warp, shared, static_cast<std::uint32_t>(offset));
  const bool silent = request.value && std::memcmp(at, request.value, request.bytes) == 0;
  SharedShadow::Finding finding;
  if (CheckOf(warp).shadow.Lane(NumberOf(warp), request.lane, request.line, request.kind, request.strong, silent,
                                static_cast<std::uint32_t>(offset), request.bytes, finding)) {
    if (finding.kind == MemcheckKind::kUninitialized && request.followed) NoteInvalidRead(warp, shared, finding.offset);
    else Race(warp, shared, finding);
  }
  return at;
}

std::uint8_t* Memcheck::CheckLocal(Warp& warp, const LaneRequest& request) {
  const std::uint64_t offset = request.address - (warp.ctx.local_base + std::uint64_t{warp.ctx.local_stride} * request.lane);
  LaneRequest local = request;
  local.space = Space::kLocal;
  if (offset >= warp.ctx.local_bytes || request.bytes > warp.ctx.local_bytes - offset)
    return Bad(warp, MemcheckKind::kOutOfBounds, local, offset, true);
  if (!IsAligned(request.address, request.bytes)) return Bad(warp, MemcheckKind::kMisaligned, local, offset, true);
  return reinterpret_cast<std::uint8_t*>(request.address);
}

std::uint8_t* Memcheck::CheckGlobal(Warp& warp, const LaneRequest& request) {
  CheckedRegion& last = CheckOf(warp).last;
  const bool write = request.kind != AccessKind::kRead;
  LaneRequest global = request;
  global.space = Space::kGlobal;
  if (!last.Holds(request.address, request.bytes)) {
    const auto region = FindRegion(warp, request.address, request.bytes);
    if (!region || !region->Holds(request.address, request.bytes)) {
      const bool freed = WasFreed(memory_, heap_, request.address);
      // What lies in mapped memory would not be noticed without memcheck, so the grid goes on.
      return Bad(warp, freed ? MemcheckKind::kUseAfterFree : MemcheckKind::kOutOfBounds, global, request.address,
                 !IsMapped(request.address) || !IsMapped(request.address + request.bytes - 1));
    }
    last = *region;
    if (!region->lasting) last.bytes = 0;
    if (write && !region->writable) return Bad(warp, MemcheckKind::kReadOnly, global, request.address, true);
  } else if (write && !last.writable) {
    return Bad(warp, MemcheckKind::kReadOnly, global, request.address, true);
  }
  if (!IsAligned(request.address, request.bytes)) return Bad(warp, MemcheckKind::kMisaligned, global, request.address, true);
  return reinterpret_cast<std::uint8_t*>(request.address);
}

std::optional<CheckedRegion> Memcheck::FindRegion(const Warp& warp, std::uint64_t address, std::uint32_t bytes) const {
  const auto allocation = memory_.Find(address);
  if (!allocation) return std::nullopt;
  switch (allocation->kind) {
    case MemoryKind::kDevice:
    case MemoryKind::kPool:
    case MemoryKind::kManaged:
    case MemoryKind::kPinned: return CheckedRegion{allocation->base, allocation->bytes, true, true};
    case MemoryKind::kRegistered: return CheckedRegion{allocation->base, allocation->bytes, memory_.Accessible(address, 1, true), true};
    case MemoryKind::kReserved:
      if (!memory_.Accessible(address, bytes, false)) return std::nullopt;
      return CheckedRegion{address, bytes, memory_.Accessible(address, bytes, true), false};
    case MemoryKind::kModule: {
      const auto* const program = allocation->OwnerAs<const ProgramImpl>();
      const GlobalInfo* const variable = program != nullptr ? VariableBefore(*program, address) : nullptr;
      return variable != nullptr ? std::optional(CheckedRegion{variable->address, variable->bytes, true, true}) : std::nullopt;
    }
    case MemoryKind::kInternal: break;
  }
  const std::uint64_t workspace = LaunchOf(warp).ctx.grid_workspace;
  if (workspace != 0 && address >= workspace && allocation->base == workspace)
    return CheckedRegion{allocation->base, allocation->bytes, true, true};
  const auto block = heap_.Contains(address) ? heap_.FindBefore(address) : ServicesOf(warp).parameter_buffers->BlockBefore(address);
  if (!block || block->freed) return std::nullopt;
  return CheckedRegion{block->base, block->bytes, true, false};  // another thread may free it
}

/// Whether the host would let the access happen.
bool Memcheck::IsMapped(std::uint64_t address) const {
  if (const auto allocation = memory_.Find(address))
    return allocation->kind != MemoryKind::kReserved || memory_.Accessible(address, 1, false);
  if (address - memory_.range_base() >= memory_.range_bytes()) return false;
  const auto nearest = memory_.FindNearest(address);
  if (!nearest || nearest->distance <= 0 || nearest->allocation.kind == MemoryKind::kRegistered) return false;
  return address < RoundUp(nearest->allocation.base + nearest->allocation.bytes, kPageBytes);
}

void Memcheck::LeaveIfStopped(Warp& warp) {
  if (LaunchOf(warp).stop.load(std::memory_order_relaxed)) LeaveStopped(warp);
}

void Memcheck::InvalidFree(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t address) {
  LaneRequest request;
  request.lane = lane;
  request.line = line;
  request.space = Space::kGlobal;
  request.address = address;
  Bad(warp, MemcheckKind::kInvalidFree, request, address, true);
}

// ---------------------------------------------------------------------------------------------------------------------
// Whole warps
// ---------------------------------------------------------------------------------------------------------------------

namespace {

/// Places of rows of which the code tells the first lanes.
void FillRows(SharedAccessImm imm, std::uint32_t mask, const std::uint64_t* first, LanePlaces& places) {
  places.row_lanes = imm.row_lanes;
  places.same = imm.pattern == SharedAccessImm::kUniform;
  const std::uint64_t step = places.same ? 0 : imm.bytes;
  std::uint64_t least = ~std::uint64_t{0}, most = 0, bits = 0;
  for (std::uint32_t begin = 0, row = 0; begin < kWarpSize; begin += imm.row_lanes, ++row) {
    places.first[row] = first[row];
    std::uint64_t low = first[row], high = first[row] + (imm.row_lanes - 1) * step;
    if (mask != ~0u) {
      const std::uint32_t on = mask >> begin & (~0u >> (kWarpSize - imm.row_lanes));
      if (on == 0) continue;
      low = first[row] + static_cast<std::uint32_t>(std::countr_zero(on)) * step;
      high = first[row] + (31u - static_cast<std::uint32_t>(std::countl_zero(on))) * step;
    }
    least = std::min(least, low);
    most = std::max(most, high);
    bits |= low | high;
  }
  places.least = least;
  places.most = most;
  places.bits = bits;
}

}  // namespace

bool Memcheck::CheckShared(Warp& warp, std::uint32_t mask, std::uint32_t line, SharedAccessImm imm, const std::uint64_t* offsets) {
  if (mask == ~0u && imm.pattern != SharedAccessImm::kAny && imm.kind == AccessKind::kRead && imm.strong == 0 &&
      LaunchOf(warp).ctas_per_unit == 1 && CheckOf(warp).copies.empty() &&
      CheckOf(warp).shadow.TryUsualRead(NumberOf(warp), line, imm, offsets))
    return true;
  return mask == 0 || CheckUnusual(warp, mask, line, imm, offsets);
}

bool Memcheck::CheckUnusual(Warp& warp, std::uint32_t mask, std::uint32_t line, SharedAccessImm imm, const std::uint64_t* offsets) {
  const Launch& launch = LaunchOf(warp);
  const bool any = imm.pattern == SharedAccessImm::kAny;
  SharedShadow::Access access;
  access.warp = NumberOf(warp);
  access.mask = mask;
  access.line = line;
  access.what = imm;
  if (any) access.offsets = offsets;
  LanePlaces& places = access.places;
  if (any) ScanOffsets(offsets, mask, imm.bytes, places);
  else FillRows(imm, mask, offsets, places);
  if (launch.ctas_per_unit > 1) {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const std::uint64_t offset = access.OffsetOf(static_cast<std::uint32_t>(std::countr_zero(left)));
      if (!InSharedWindow(launch, offset, imm.bytes) || !IsAligned(offset, imm.bytes)) return false;
    }
  } else if (places.most >= launch.ctx.total_shared_bytes || imm.bytes > launch.ctx.total_shared_bytes - places.most ||
             !IsAligned(places.bits, imm.bytes)) {
    return false;
  }
  if (CheckOf(warp).copies.MayWrite(places.least, places.most + imm.bytes)) return false;  // lane by lane
  if (CheckOf(warp).shadow.Try(access)) return true;
  if (imm.kind == AccessKind::kWrite && imm.strong == 0) return false;  // what is written decides
  const std::uint64_t base = warp.cta->ctx.shared_base;
  ForEachLane(mask, [&](std::uint32_t lane) {
    const std::uint64_t offset = access.OffsetOf(lane);
    CheckShared(warp,
                {lane, line, Space::kShared, base + offset, imm.bytes, imm.kind, imm.strong != 0, nullptr, imm.kind == AccessKind::kRead},
                offset);
  });
  return true;
}

void Memcheck::RememberSite(Warp& warp, std::uint32_t site, std::uint64_t address, std::uint32_t bytes, bool write) {
  UnitCheck& check = CheckOf(warp);
  if (site == 0 || std::size_t{site} * 2 + 1 >= check.sites.size()) return;
  const CheckedRegion& region = check.last;  // of the last lane that was looked up
  // The code takes an offset's alignment for the address's.
  if (!region.Holds(address, bytes) || !region.lasting || !IsAligned(region.base, bytes) || (write && !region.writable)) return;
  check.sites[std::size_t{site} * 2] = region.base;
  check.sites[std::size_t{site} * 2 + 1] = region.bytes;
}

// ---------------------------------------------------------------------------------------------------------------------
// Values from memory that nobody has written
// ---------------------------------------------------------------------------------------------------------------------

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
  CheckOf(warp).invalid_reads[std::size_t{NumberOf(warp)} * kWarpSize + request.lane] = {request.line, offset, request.bytes};
}

void Memcheck::LoadedBits(Warp& warp, std::uint32_t mask, ShadowImm imm, const std::uint64_t* addresses, std::uint8_t* bits) {
  std::memset(bits, 0, std::size_t{kWarpSize} * imm.bytes);
  const SharedShadow& shadow = CheckOf(warp).shadow;
  ForEachLane(mask, [&](std::uint32_t lane) {
    const auto offset = SharedOffset(warp, imm.space, addresses[lane], imm.bytes);
    for (std::uint32_t i = 0; offset && i < imm.bytes; ++i)
      if (!shadow.IsWritten(*offset + i)) bits[std::size_t{lane} * imm.bytes + i] = kNoBitValid;
  });
}

/// In shared memory a byte without a valid bit counts as not written. Local memory is taken to be valid. Elsewhere, what is stored leaves
/// the CTA: it has to have a valid byte, as structs have gaps and vectors elements that nobody uses.
void Memcheck::StoredBits(Warp& warp, std::uint32_t mask, std::uint32_t line, ShadowImm imm, const std::uint64_t* addresses,
                          const std::uint8_t* const* bits) {
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

/// Of the lane, or of another one that has given it the value.
const UnitCheck::InvalidRead& InvalidReadOf(const Warp& warp, std::uint32_t lane) {
  const UnitCheck::InvalidRead* const reads = CheckOf(warp).invalid_reads.data() + std::size_t{NumberOf(warp)} * kWarpSize;
  if (reads[lane].line != 0) return reads[lane];
  const auto* const other = std::find_if(reads, reads + kWarpSize, [](const UnitCheck::InvalidRead& read) { return read.line != 0; });
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

// ---------------------------------------------------------------------------------------------------------------------
// Barriers
// ---------------------------------------------------------------------------------------------------------------------

namespace {

std::string HexMask(std::uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

std::string NameThread(const Warp& warp, std::uint32_t lane) {
  const auto& tid = warp.ctx.tid;
  return "thread (" + std::to_string(tid[0][lane]) + "," + std::to_string(tid[1][lane]) + "," + std::to_string(tid[2][lane]) + ")";
}

std::string DescribeSync(const SyncCheck::Finding& finding, const Warp& other) {
  if (finding.kind == MemcheckKind::kSyncMask)
    return "its mask " + HexMask(finding.members) + " does not hold its own lane, " + std::to_string(finding.thread.lane);
  const std::string who = NameThread(other, finding.other.lane);
  const bool waits = finding.other_line != 0;
  if (finding.kind == MemcheckKind::kSyncMissing)
    return "its mask " + HexMask(finding.members) + " names lanes that did not come, " + HexMask(finding.missing) + ": " + who +
           (waits ? " waits at another place" : " has passed it by");
  return who + (waits ? " of the same warp waits at another barrier" : " has passed it by");
}

}  // namespace

void Memcheck::TellSync(Warp& warp, const SyncCheck::Findings& found) {
  for (const SyncCheck::Finding& finding : found) {
    Warp* const warps = warp.cta->unit->warps;
    const LaneRequest request{.lane = finding.thread.lane, .line = finding.line, .space = Space::kShared};
    Note(warps[finding.thread.warp], finding.kind, request, 0, finding.other_line, [&](MemcheckReport& report) {
      const Warp& other = warps[finding.other.warp];
      report.place = DescribeSync(finding, other);
      if (finding.other_line != 0) report.other = Describe(other, finding.other.lane, AccessKind::kRead, 0, finding.other_line);
    });
  }
}

void Memcheck::EnterSync(Warp& warp, std::uint32_t mask, std::uint32_t line, SyncCheckImm imm, const std::uint32_t* members) {
  SyncCheck::Findings found;
  SyncCheck& sync = CheckOf(warp).sync;
  sync.Enter(NumberOf(warp), mask, line, imm, members, found);
  warp.ctx.sync_waits = sync.Waits(NumberOf(warp));
  TellSync(warp, found);
}

void Memcheck::LeaveSync(Warp& warp, std::uint32_t mask) {
  SyncCheck::Findings found;
  SyncCheck& sync = CheckOf(warp).sync;
  sync.Leave(NumberOf(warp), mask, found);
  warp.ctx.sync_waits = sync.Waits(NumberOf(warp));
  TellSync(warp, found);
}

void Memcheck::PassSync(Warp& warp, std::uint32_t mask, PassSyncImm imm) {
  SyncCheck::Findings found;
  CheckOf(warp).sync.Pass(NumberOf(warp), mask, imm, found);
  TellSync(warp, found);
}

namespace {

constexpr std::uint64_t kMostArrivals = (1u << 20) - 1, kMostBytes = (1u << 20) - 1;

/// What is wrong with an operation on an mbarrier; empty: nothing. `known`: what is known of the object, null if nobody has begun it.
std::string DescribeMisuse(MbarrierOp op, const std::optional<std::uint64_t>* known, std::uint64_t word, std::uint64_t operand) {
  if (op == MbarrierOp::kInit) {
    if (operand == 0 || operand > kMostArrivals) return "initialised for " + WithCommas(operand) + " arrivals, not 1 to 1,048,575";
    // Memory that has been used for something else in between holds no object any more.
    if (known && *known == word) return "initialised again without mbarrier.inval";
    return {};
  }
  if (op == MbarrierOp::kPendingCount) return {};
  if (!known) return "used before mbarrier.init";
  if (*known && *known != word && op != MbarrierOp::kInvalidate) return "used after something else was written to its memory";
  if ((op == MbarrierOp::kExpectTx || op == MbarrierOp::kCompleteTx) && operand > kMostBytes)
    return "given " + WithCommas(operand) + " bytes, more than 1,048,575";
  return {};
}

}  // namespace

void Memcheck::CheckMbarrier(Warp& warp, std::uint32_t lane, std::uint32_t line, MbarrierOp op, const void* place, std::uint64_t word,
                             std::uint64_t operand) {
  const auto& known = CheckOf(warp).mbarriers;
  const auto found = known.find(place);
  const std::string wrong = DescribeMisuse(op, found == known.end() ? nullptr : &found->second, word, operand);
  if (wrong.empty()) return;
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(place) - warp.cta->ctx.shared_base;
  Note(warp, MemcheckKind::kMbarrier, {.lane = lane, .line = line, .space = Space::kShared}, offset, 0, [&](MemcheckReport& report) {
    const std::string where = SharedPlace(LaunchOf(warp), offset);
    report.place = "the mbarrier at shared " + HexAddress(offset) + (where.empty() ? "" : " (" + where + ")") + " is " + wrong;
  });
}

void Memcheck::NoteMbarrier(Warp& warp, MbarrierOp op, const void* place, std::uint64_t word) {
  auto& known = CheckOf(warp).mbarriers;
  if (op == MbarrierOp::kInvalidate) {
    known[place].reset();
  } else if (op == MbarrierOp::kInit) {
    known[place] = word;
  } else if (const auto found = known.find(place); found != known.end() && found->second) {
    found->second = word;
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Asynchronous copies
// ---------------------------------------------------------------------------------------------------------------------

void Memcheck::BeginCopies(Warp& warp, std::uint32_t mask, std::uint32_t line, void* const* args) {
  const auto input = [&](std::size_t n, std::uint32_t lane) { return static_cast<const std::uint64_t*>(args[n])[lane]; };
  ForEachLane(mask, [&](std::uint32_t lane) {
    const std::uint64_t offset = input(0, lane), bytes = input(1, lane);
    if (offset >= ~0u || bytes >= ~0u - offset) return;  // out of bounds, and told
    CheckOf(warp).copies.Begin({.begin = static_cast<std::uint32_t>(offset),
                                .end = static_cast<std::uint32_t>(offset + bytes),
                                .warp = NumberOf(warp),
                                .lane = lane,
                                .line = line,
                                .mbarrier = reinterpret_cast<const void*>(input(2, lane))});
  });
}

/// When they have been waited for, the thread has written them: now, as the others see it.
void Memcheck::OrderCopies(Warp& warp, std::uint32_t mask, std::uint64_t order, void* const* args) {
  UnitCheck& check = CheckOf(warp);
  const std::uint32_t number = NumberOf(warp);
  const bool all = order == kAllCopiesAwaited;
  const auto groups = static_cast<std::uint32_t>(order >> 8);
  ForEachLane(mask, [&](std::uint32_t lane) {
    if (order == kCopiesCommitted) return check.copies.Commit(number, lane);
    if (order == kCopiesToMbarrier)
      return check.copies.Bind(number, lane, reinterpret_cast<const void*>(static_cast<const std::uint64_t*>(args[0])[lane]));
    for (const AsyncCopies::Copy& copy : check.copies.Await(number, lane, groups, all)) {
      SharedShadow::Finding told;
      check.shadow.Lane(number, lane, copy.line, AccessKind::kWrite, false, false, copy.begin, copy.end - copy.begin, told);
    }
  });
}

void Memcheck::EndCopies(Warp& warp, const void* place) { CheckOf(warp).copies.EndPhase(place); }
void Memcheck::SeeCopies(Warp& warp, const void* place) { CheckOf(warp).copies.SeeEnd(place); }

void Memcheck::CheckCopies(Warp& warp, const LaneRequest& request, std::uint32_t offset) {
  const AsyncCopies::Copy* const copy = CheckOf(warp).copies.Find(offset, offset + request.bytes);
  if (!copy) return;
  Note(warp, MemcheckKind::kUnfinishedCopy, request, offset, copy->line, [&](MemcheckReport& report) {
    report.place = SharedPlace(LaunchOf(warp), offset);
    report.other = Describe(warp.cta->unit->warps[copy->warp], copy->lane, AccessKind::kWrite, copy->end - copy->begin, copy->line);
  });
}

void Memcheck::OrderWarp(Warp& warp) { CheckOf(warp).shadow.OrderWarp(NumberOf(warp)); }
void Memcheck::OrderCta(Warp& warp) { CheckOf(warp).shadow.OrderCta(NumberOf(warp)); }

// ---------------------------------------------------------------------------------------------------------------------
// Findings
// ---------------------------------------------------------------------------------------------------------------------

MemcheckAccess Memcheck::Describe(const Warp& warp, std::uint32_t lane, AccessKind kind, std::uint32_t bytes, std::uint32_t line) const {
  MemcheckAccess access;
  access.kind = kind;
  access.bytes = bytes;
  access.ptx_line = line;
  const std::uint32_t at = std::min(lane, kWarpSize - 1);
  access.thread = {warp.ctx.tid[0][at], warp.ctx.tid[1][at], warp.ctx.tid[2][at]};
  const Launch& launch = LaunchOf(warp);
  if (line == 0 || !launch.program) return access;
  if (auto source = FindSource(launch.program->module(), launch.info ? launch.info->function : nullptr, line)) {
    access.file = std::move(source->file);
    access.source_line = source->line;
  }
  return access;
}

namespace {

/// Where an access is in the code: its source line, or the straight line of code that it is in.
std::string LineOf(const Launch& launch, std::uint32_t line) {
  if (line == 0 || !launch.program) return {};
  const ptx::Module& module = launch.program->module();
  const ptx::Function* const function = launch.info ? launch.info->function : nullptr;
  if (const auto source = FindSource(module, function, line)) return source->text();
  const CodePlace place = FindInCode(module, function, line);
  return "behind " + std::to_string(place.begin) + " " + place.opcode;
}

}  // namespace

Memcheck::ErrorPlace Memcheck::PlaceOf(const Launch& launch, const MemcheckReport& report, std::uint32_t other_line) const {
  ErrorPlace place{.kernel = report.kernel, .kind = report.kind, .what = {}, .other = LineOf(launch, other_line), .space = report.space};
  const MemcheckAccess& access = report.access;
  if (!access.file.empty()) {
    place.what = access.file + ":" + std::to_string(access.source_line);
    return place;
  }
  place.what = LineOf(launch, access.ptx_line);
  if (report.space == Space::kGlobal) place.what += " " + GlobalNeighbour(memory_, heap_, report.address);
  else if (report.space == Space::kShared && launch.program && launch.ctas_per_unit == 1)
    place.what += " " + std::to_string(SharedVariableAt(launch.program->module(), *launch.info->function, report.address).offset);
  return place;
}

template <typename Fill>
void Memcheck::Note(Warp& warp, MemcheckKind kind, const LaneRequest& request, std::uint64_t shown, std::uint32_t other_line, Fill fill) {
  const Launch& launch = LaunchOf(warp);
  const std::lock_guard lock(mutex_);
  const auto [it, inserted] = index_.try_emplace(Key{launch.kernel_name, kind, request.line, other_line, request.space}, found_.size());
  if (!inserted) {
    if (it->second < found_.size()) ++found_[it->second].report.times;
    else ++not_kept_;
    return;
  }
  Finding finding;
  finding.launch = launch.serial;
  MemcheckReport& report = finding.report;
  report.kind = kind;
  report.space = request.space;
  report.kernel = launch.kernel_name;
  report.access = Describe(warp, request.lane, request.kind, request.bytes, request.line);
  report.cta = PlaceInGrid(*warp.cta);
  report.address = shown;
  const auto [same, first] = by_place_.try_emplace(PlaceOf(launch, report, other_line), found_.size());
  if (!first || found_.size() >= limit_) {
    if (first) same->second = SIZE_MAX;
    it->second = same->second;
    if (it->second < found_.size()) ++found_[it->second].report.times;
    else ++not_kept_;
    return;
  }
  fill(report);
  found_.push_back(std::move(finding));
}

std::uint8_t* Memcheck::Bad(Warp& warp, MemcheckKind kind, const LaneRequest& request, std::uint64_t shown, bool fatal) {
  Note(warp, kind, request, shown, 0, [&](MemcheckReport& report) {
    report.place = Place(warp, kind, request);
    if (request.space == Space::kGlobal) report.allocation = NearestAllocation(memory_, request.address);
  });
  if (fatal) {
    const FaultKind fault = kind == MemcheckKind::kMisaligned ? FaultKind::kMisalignedAddress : FaultKind::kIllegalAddress;
    RecordFault(LaunchOf(warp), &warp, fault, request.lane, request.address, request.line, "stopped by what memcheck found:");
  }
  return HarmlessPlace();
}

void Memcheck::Race(Warp& warp, const LaneRequest& request, const SharedShadow::Finding& finding) {
  const bool race = finding.kind == MemcheckKind::kRace;
  Note(warp, finding.kind, request, finding.offset, race ? finding.other_line : 0, [&](MemcheckReport& report) {
    report.place = SharedPlace(LaunchOf(warp), finding.offset);
    if (!race) return;
    const Warp& other = warp.cta->unit->warps[finding.other_warp];
    report.other = Describe(other, finding.other_lane, finding.other_kind, 0, finding.other_line);
  });
}

std::string Memcheck::Place(const Warp& warp, MemcheckKind kind, const LaneRequest& request) const {
  const Launch& launch = LaunchOf(warp);
  if (kind == MemcheckKind::kMisaligned)
    return std::to_string(request.bytes) + "-byte accesses need a multiple of " + std::to_string(std::bit_ceil(request.bytes));
  if (request.space == Space::kShared) {
    return "the CTA has " + WithCommas(launch.ctx.total_shared_bytes) + " bytes of shared memory (" +
           WithCommas(launch.info->static_shared_bytes) + " static, " + WithCommas(launch.ctx.dynamic_shared_bytes) + " dynamic)";
  }
  if (request.space == Space::kLocal) return "the thread has " + WithCommas(warp.ctx.local_bytes) + " bytes of local memory";
  const CtaCtx& cta = warp.cta->ctx;
  if (request.address - cta.shared_base < cta.shared_bytes) return "it lies in shared memory, and the instruction is for global memory";
  return GlobalPlace(memory_, heap_, request.address, request.bytes);
}

std::string Memcheck::SharedPlace(const Launch& launch, std::uint64_t offset) const {
  if (!launch.program) return {};
  if (launch.ctas_per_unit > 1) offset %= launch.ctx.shared_stride;
  return SharedVariablePlace(launch.program->module(), *launch.info->function, offset);
}

void Memcheck::EndOfLaunch(const Launch& launch) {
  std::vector<MemcheckReport> reports;
  {
    const std::lock_guard lock(mutex_);
    for (const Finding& finding : found_) {
      if (finding.launch == launch.serial) reports.push_back(finding.report);
    }
  }
  if (!on_finding_) return;
  for (const MemcheckReport& report : reports) on_finding_(report);
}

Engine::Findings Memcheck::findings() const {
  const std::lock_guard lock(mutex_);
  Engine::Findings findings;
  for (const Finding& finding : found_) findings.reports.push_back(finding.report);
  findings.not_kept = not_kept_;
  heap_.CountLive(&findings.heap_blocks, &findings.heap_bytes);
  return findings;
}

}  // namespace gridloom::exec
