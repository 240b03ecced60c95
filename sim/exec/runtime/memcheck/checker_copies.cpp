// Asynchronous copies to shared memory (async_copies.h).
#include "sim/exec/contract/async_copy_immediates.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/check_support.h"

namespace gridloom::exec {

void Memcheck::BeginCopies(Warp& warp, std::uint32_t mask, std::uint32_t line, void* const* args) {
  const auto input = [&](std::size_t n, std::uint32_t lane) {
    return static_cast<const std::uint64_t*>(args[n])[lane];
  };
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
      return check.copies.Bind(number, lane,
                               reinterpret_cast<const void*>(static_cast<const std::uint64_t*>(args[0])[lane]));
    for (const AsyncCopies::Copy& copy : check.copies.Await(number, lane, groups, all)) {
      SharedShadow::Finding told;
      check.shadow.Lane(number, lane, copy.line, AccessKind::kWrite, false, false, copy.begin, copy.end - copy.begin,
                        told);
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
    report.other = Describe(warp.cta->unit->warps[copy->warp], copy->lane, AccessKind::kWrite, copy->end - copy->begin,
                            copy->line);
  });
}

}  // namespace gridloom::exec
