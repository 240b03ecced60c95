// What the SPMD form has for memcheck: values that nobody has written (compiler/invalid_values.h), barriers and .sync
// instructions (compiler/sync_checks.h). The runtime is asked where there may be something to say, as by machine code
// (compiler/warp_memcheck.cpp).
#include <cstring>

#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/interpreter/frame.h"

namespace gridloom::exec {
namespace {

const std::uint32_t* OperandsOf(const Frame& f, const ByteStep& s) { return f.lists + s.b; }

/// What a warp reads that has met nothing but valid memory is valid.
void RunLoadedBits(Frame& f, const ByteStep& s) {
  const std::uint32_t* const list = OperandsOf(f, s);
  auto* const out = f.Out<std::uint8_t>(list[0]);
  if (f.warp->invalid_reads == 0) {
    std::memset(out, 0, std::size_t{UnpackImm<ShadowImm>(s.imm).bytes} * kWarpSize);
    return;
  }
  void* const args[] = {out, const_cast<std::uint8_t*>(f.In<std::uint8_t>(list[1]))};
  Helper_kLoadedBits(f.warp, f.mask, s.line, s.imm, args);
}

/// The lanes whose `bytes` at `bits` are not all zero.
std::uint32_t NotNull(const std::uint8_t* bits, std::uint32_t bytes) {
  std::uint64_t any = 0;
  for (std::uint32_t at = 0; at < bytes * kWarpSize; at += sizeof any) {
    std::uint64_t word;
    std::memcpy(&word, bits + at, sizeof word);
    any |= word;
  }
  if (any == 0) return 0;
  std::uint32_t lanes = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (std::uint32_t i = 0; i < bytes; ++i)
      lanes |= static_cast<std::uint32_t>(bits[std::size_t{lane} * bytes + i] != 0) << lane;
  return lanes;
}

void RunStoredBits(Frame& f, const ByteStep& s) {
  const std::uint32_t* const list = OperandsOf(f, s);
  std::uint32_t lanes = 0;
  for (std::uint32_t i = 1; i < s.c; ++i)
    lanes |= NotNull(f.In<std::uint8_t>(list[i]), UnpackImm<ShadowImm>(s.imm).bytes);
  lanes &= f.mask;
  if (lanes == 0) return;
  void* args[1 + kMostStoredElements];
  for (std::uint32_t i = 0; i < s.c; ++i) args[i] = const_cast<std::uint8_t*>(f.In<std::uint8_t>(list[i]));
  Helper_kStoredBits(f.warp, lanes, s.line, s.imm, args);
}

void RunUseInvalid(Frame& f, const ByteStep& s) {
  const std::uint32_t lanes = f.BitsIn(OperandsOf(f, s)[0]) & f.mask;
  if (lanes != 0) Helper_kUseInvalid(f.warp, lanes, s.line, s.imm, nullptr);
}

/// While all lanes are together they miss nobody, and a mask of all lanes holds those that are there.
void RunEnterSync(Frame& f, const ByteStep& s) {
  const auto* const members = f.In<std::uint32_t>(OperandsOf(f, s)[0]);
  if (f.mask == ~0u && !UnpackImm<SyncCheckImm>(s.imm).has(SyncCheckImm::kCounted)) {
    std::uint32_t all = ~0u;
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) all &= members[lane];
    if (all == ~0u) return;
  }
  void* const args[] = {const_cast<std::uint32_t*>(members)};
  Helper_kEnterSync(f.warp, f.mask, s.line, s.imm, args);
}

void RunLeaveSync(Frame& f, const ByteStep& s) {
  if (f.warp->sync_waits != 0) Helper_kLeaveSync(f.warp, f.mask, s.line, s.imm, nullptr);
}

void RunPassSync(Frame& f, const ByteStep& s) {
  if (f.warp->sync_waits != 0 || UnpackImm<PassSyncImm>(s.imm).counted != 0)
    Helper_kPassSync(f.warp, f.mask, s.line, s.imm, nullptr);
}

}  // namespace

StepFn CheckStep(const ByteStep& step) {
  if (step.code != ByteCode::kHelper) return nullptr;
  switch (static_cast<Helper>(step.a)) {
    case Helper::kLoadedBits: return step.c == 2 ? &RunLoadedBits : nullptr;
    case Helper::kStoredBits: return &RunStoredBits;
    case Helper::kUseInvalid: return &RunUseInvalid;
    case Helper::kEnterSync: return &RunEnterSync;
    case Helper::kLeaveSync: return &RunLeaveSync;
    case Helper::kPassSync: return &RunPassSync;
    default: return nullptr;
  }
}

}  // namespace gridloom::exec
