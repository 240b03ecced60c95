// Loads and stores that generated code does not do itself: lanes outside of the launch window, misaligned ones, host
// memory.
#include <bit>
#include <cstring>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/checker.h"

namespace gridloom::exec {

std::uint8_t* CheckedAddress(Warp& warp, std::uint32_t lane, std::uint32_t line, Space space, std::uint64_t address,
                             std::uint32_t bytes, AccessKind kind, bool strong, const void* value, bool followed) {
  if (Memcheck* const memcheck = ServicesOf(warp).memcheck)
    return memcheck->Check(warp, {lane, line, space, address, bytes, kind, strong, value, followed});
  const bool write = kind != AccessKind::kRead;
  // A misaligned address is reported as such only when it is one at all, as the hardware checks the address first.
  const CtaCtx& cta = warp.cta->ctx;
  const DeviceMemory& memory = *ServicesOf(warp).memory;
  switch (space) {
    case Space::kShared: {
      const std::uint64_t offset = address - cta.shared_base;
      if (offset >= cta.shared_bytes || bytes > cta.shared_bytes - offset)
        RaiseFault(warp, FaultKind::kIllegalAddress, lane, address, line,
                   write ? "shared store out of bounds:" : "shared load out of bounds:", space);
      break;
    }
    case Space::kLocal: {
      const std::uint64_t offset = address - (warp.ctx.local_base + std::uint64_t{warp.ctx.local_stride} * lane);
      if (offset >= warp.ctx.local_bytes || bytes > warp.ctx.local_bytes - offset)
        RaiseFault(warp, FaultKind::kIllegalAddress, lane, address, line,
                   write ? "local store out of bounds:" : "local load out of bounds:", space);
      break;
    }
    case Space::kGlobal:
    case Space::kGeneric:
      // In the range, memory that is not there faults by itself; outside of it, only registered host memory may be
      // touched.
#if !defined(__SANITIZE_THREAD__)  // its own locks would stay taken when an atomic faults
      if (address - memory.range_base() < memory.range_bytes() &&
          bytes <= memory.range_base() + memory.range_bytes() - address)
        break;
#endif
      if (!memory.Accessible(address, bytes, write))
        RaiseFault(warp, FaultKind::kIllegalAddress, lane, address, line,
                   write ? "illegal store to" : "illegal load from");
      break;
  }
  if ((address & (std::bit_ceil(bytes) - 1)) != 0)
    RaiseFault(warp, FaultKind::kMisalignedAddress, lane, address, line,
               write ? "misaligned store to" : "misaligned load from", space);
  return reinterpret_cast<std::uint8_t*>(address);
}

void EndOfAccesses(Warp& warp, std::uint32_t mask, std::uint32_t site, const std::uint64_t* addresses,
                   std::uint32_t bytes, bool write) {
  Memcheck* const memcheck = ServicesOf(warp).memcheck;
  if (!memcheck) return;
  memcheck->LeaveIfStopped(warp);
  if (site != 0 && mask != 0) memcheck->RememberSite(warp, site, addresses[31 - std::countl_zero(mask)], bytes, write);
}

namespace {

/// 16 bytes at an aligned address in one access: vector moves, which processors with AVX make whole.
typedef long long Word16 __attribute__((vector_size(16), may_alias));

template <typename Word>
Word LoadWhole(const std::uint8_t* from) {
  if constexpr (sizeof(Word) == 16) return *reinterpret_cast<const volatile Word*>(from);
  else return __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
}
template <typename Word>
void StoreWhole(std::uint8_t* to, Word value) {
  if constexpr (sizeof(Word) == 16) *reinterpret_cast<volatile Word*>(to) = value;
  else __atomic_store_n(reinterpret_cast<Word*>(to), value, __ATOMIC_RELAXED);
}

/// One lane's value at a time; sizes a register can have are single accesses, so that they are not torn.
template <typename Copy>
void BySize(std::uint32_t bytes, Copy copy) {
  switch (bytes) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    case 8: return copy(std::uint64_t{});
    case 16: return copy(Word16{});
    default: break;
  }
  copy(std::uint64_t{});  // longer vectors: whole 8-byte words, each a single access
}

}  // namespace

void Helper_kLoadSlow(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const auto bytes = static_cast<std::uint32_t>(imm & 0xff);
  const Space space = SpaceOfSlowAccess(imm);
  const bool strong = (imm >> 15 & 1) != 0;
  auto* const out = static_cast<std::uint8_t*>(args[0]);
  const auto* const addresses = static_cast<const std::uint64_t*>(args[1]);
  LaneAccess access(warp, line);
  BySize(bytes, [&](auto word) {
    using Word = decltype(word);
    ForEachLane(mask, [&](std::uint32_t lane) {
      const std::uint8_t* const from =
          CheckedAddress(warp, lane, line, space, addresses[lane], bytes, AccessKind::kRead, strong, nullptr, true);
      access.At(lane);
      for (std::uint32_t at = 0; at < bytes; at += sizeof(Word)) {
        const Word value = LoadWhole<Word>(from + at);
        std::memcpy(out + std::size_t{lane} * bytes + at, &value, sizeof value);
      }
    });
  });
  EndOfAccesses(warp, mask, static_cast<std::uint32_t>(imm >> 16), addresses, bytes, false);
}

void Helper_kStoreSlow(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const auto bytes = static_cast<std::uint32_t>(imm & 0xff);
  const Space space = SpaceOfSlowAccess(imm);
  const bool strong = (imm >> 15 & 1) != 0;
  const auto* const addresses = static_cast<const std::uint64_t*>(args[0]);
  const auto* const values = static_cast<const std::uint8_t*>(args[1]);
  LaneAccess access(warp, line);
  BySize(bytes, [&](auto word) {
    using Word = decltype(word);
    ForEachLane(mask, [&](std::uint32_t lane) {
      std::uint8_t* const to = CheckedAddress(warp, lane, line, space, addresses[lane], bytes, AccessKind::kWrite,
                                              strong, values + std::size_t{lane} * bytes);
      access.At(lane);
      for (std::uint32_t at = 0; at < bytes; at += sizeof(Word)) {
        Word value;
        std::memcpy(&value, values + std::size_t{lane} * bytes + at, sizeof value);
        StoreWhole(to + at, value);
      }
    });
  });
  EndOfAccesses(warp, mask, static_cast<std::uint32_t>(imm >> 16), addresses, bytes, true);
}

}  // namespace gridloom::exec
