// Where accesses may take place: one lane's, and those of whole warps.
#include "sim/exec/runtime/memcheck/checker.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "sim/exec/contract/layout.h"
#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/check_support.h"
#include "sim/exec/runtime/memcheck/places.h"
#include "sim/exec/runtime/parameter_buffers.h"
#include "sim/exec/runtime/program_impl.h"

namespace gridloom::exec {
namespace {

/// Where bad accesses go: reads find zeros, writes are lost.
std::uint8_t* HarmlessPlace() {
  alignas(64) thread_local std::uint8_t place[256];
  std::memset(place, 0, sizeof place);
  return place;
}

}  // namespace

bool InSharedWindow(const Launch& launch, std::uint64_t offset, std::uint32_t bytes) {
  const std::uint64_t stride = launch.ctx.shared_stride, own = launch.ctx.total_shared_bytes;
  if (launch.ctas_per_unit == 1) return offset < own && bytes <= own - offset;
  const std::uint64_t inside = offset % stride;
  return offset / stride < launch.ctas_per_unit && inside < own && bytes <= own - inside;
}

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
      if (request.address - (warp.ctx.local_base + std::uint64_t{warp.ctx.local_stride} * request.lane) <
          warp.ctx.local_bytes)
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
  if (!InSharedWindow(launch, offset, request.bytes))
    return Bad(warp, MemcheckKind::kOutOfBounds, shared, offset, true);
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
  const std::uint64_t offset =
      request.address - (warp.ctx.local_base + std::uint64_t{warp.ctx.local_stride} * request.lane);
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
    const auto region = FindRegion(warp, global);
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
  if (!IsAligned(request.address, request.bytes))
    return Bad(warp, MemcheckKind::kMisaligned, global, request.address, true);
  if (last.written) CheckWritten(warp, global, last);
  if (UseOrder* const order = LaunchOf(warp).use_order; order && last.of_host) {
    if (request.strong || request.kind == AccessKind::kAtomic) order->Fence();
    order->ShareWithHost(request.kind != AccessKind::kWrite, write);
  }
  return reinterpret_cast<std::uint8_t*>(request.address);
}

std::optional<CheckedRegion> Memcheck::FindRegion(Warp& warp, const LaneRequest& request) {
  const auto [address, bytes] = std::pair(request.address, request.bytes);
  const auto allocation = memory_.Find(address);
  if (!allocation) return std::nullopt;
  switch (allocation->kind) {
    case MemoryKind::kPool: CheckUseOrder(warp, request, *allocation); [[fallthrough]];
    case MemoryKind::kDevice:
      if (written_)
        return CheckedRegion{
            allocation->base, allocation->bytes, true, true, false, written_->Of(memory_, *allocation)};
      return CheckedRegion{allocation->base, allocation->bytes, true, true};
    case MemoryKind::kManaged:
    case MemoryKind::kPinned: return CheckedRegion{allocation->base, allocation->bytes, true, true, true};
    case MemoryKind::kRegistered:
      return CheckedRegion{allocation->base, allocation->bytes, memory_.Accessible(address, 1, true), true, true};
    case MemoryKind::kReserved:
      if (!memory_.Accessible(address, bytes, false)) return std::nullopt;
      return CheckedRegion{address, bytes, memory_.Accessible(address, bytes, true), false};
    case MemoryKind::kModule: {
      const auto* const program = allocation->OwnerAs<const ProgramImpl>();
      const GlobalInfo* const variable = program != nullptr ? VariableBefore(*program, address) : nullptr;
      return variable != nullptr ? std::optional(CheckedRegion{variable->address, variable->bytes, true, true})
                                 : std::nullopt;
    }
    case MemoryKind::kInternal: break;
  }
  const std::uint64_t workspace = LaunchOf(warp).ctx.grid_workspace;
  if (workspace != 0 && address >= workspace && allocation->base == workspace) {
    warp.looks_at_grid |= request.kind == AccessKind::kRead;
    return CheckedRegion{allocation->base, allocation->bytes, true, false};  // each read of it counts
  }
  const std::uint64_t own = warp.cta->ctx.own_memory, own_bytes = LaunchOf(warp).own_memory_bytes;
  if (own != 0 && address - own < own_bytes) return CheckedRegion{own, own_bytes, true, true};
  const auto block =
      heap_.Contains(address) ? heap_.FindBefore(address) : ServicesOf(warp).parameter_buffers->BlockBefore(address);
  if (!block || block->freed) return std::nullopt;
  return CheckedRegion{block->base, block->bytes, true, false};  // another thread may free it
}

void Memcheck::CheckUseOrder(Warp& warp, const LaneRequest& request, const Allocation& allocation) {
  UseOrder* const order = LaunchOf(warp).use_order;
  const std::string wrong = order ? order->Use(allocation) : std::string();
  if (wrong.empty()) return;
  Note(warp, MemcheckKind::kStreamOrder, request, request.address, 0, [&](MemcheckReport& report) {
    report.place =
        DescribeMiss(request.address, request.bytes, allocation.base, allocation.bytes, NameAllocation(allocation)) +
        ", " + wrong;
    report.allocation = allocation.id;
  });
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

std::uint8_t* Memcheck::Bad(Warp& warp, MemcheckKind kind, const LaneRequest& request, std::uint64_t shown,
                            bool fatal) {
  Note(warp, kind, request, shown, 0, [&](MemcheckReport& report) {
    report.place = Place(warp, kind, request);
    if (request.space == Space::kGlobal) report.allocation = NearestAllocation(memory_, request.address);
  });
  if (fatal) {
    const FaultKind fault =
        kind == MemcheckKind::kMisaligned ? FaultKind::kMisalignedAddress : FaultKind::kIllegalAddress;
    RecordFault(LaunchOf(warp), &warp, fault, request.lane, request.address, request.line,
                "stopped by what memcheck found:");
  }
  return HarmlessPlace();
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

bool Memcheck::CheckShared(Warp& warp, std::uint32_t mask, std::uint32_t line, SharedAccessImm imm,
                           const std::uint64_t* offsets) {
  if (mask == 0) return true;
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
                {lane, line, Space::kShared, base + offset, imm.bytes, imm.kind, imm.strong != 0, nullptr,
                 imm.kind == AccessKind::kRead},
                offset);
  });
  return true;
}

void Memcheck::RememberSite(Warp& warp, std::uint32_t site, std::uint64_t address, std::uint32_t bytes, bool write) {
  UnitCheck& check = CheckOf(warp);
  if (site == 0 || std::size_t{site} * 2 + 1 >= check.sites.size()) return;
  const CheckedRegion& region = check.last;  // of the last lane that was looked up
  // The code takes an offset's alignment for the address's.
  if (!region.Holds(address, bytes) || !region.lasting || region.written || !IsAligned(region.base, bytes) ||
      (write && !region.writable))
    return;
  check.sites[std::size_t{site} * 2] = region.base;
  check.sites[std::size_t{site} * 2 + 1] = region.bytes;
}

void Memcheck::OrderWarp(Warp& warp) { CheckOf(warp).shadow.OrderWarp(NumberOf(warp)); }
void Memcheck::OrderCta(Warp& warp) { CheckOf(warp).shadow.OrderCta(NumberOf(warp)); }

}  // namespace gridloom::exec
