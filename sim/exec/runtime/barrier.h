// Barriers of a CTA that go through the runtime: ids, counts, arrive, reductions, diverged arrival. Warps count as
// wholes: a warp that arrives stands for 32 threads, as on the hardware.
#pragma once

#include <cstdint>

namespace gridloom::exec {

struct Warp;

inline constexpr std::uint32_t kNamedBarriers = 16;  ///< that programs number
/// Behind them, one for each warp group: where its warps wait for the products of all of them.
inline constexpr std::uint32_t kFirstGroupBarrier = kNamedBarriers, kWarpsOfGroup = 4, kMostWarpGroups = 8;
inline constexpr std::uint32_t kBarriersPerCta = kFirstGroupBarrier + kMostWarpGroups;
// The number under which a cluster's barrier appears in messages.
inline constexpr std::uint32_t kClusterBarrier = kBarriersPerCta;

struct Barrier {
  std::uint32_t arrived_warps = 0;  ///< in this phase
  std::uint32_t arrived_threads = 0;
  std::uint32_t needed_threads = 0;  ///< 0: every warp that has not ended
  std::uint32_t count = 0;           ///< lanes whose predicate holds
  bool all = true;
  bool partial = false;          ///< some warp has arrived without waiting yet (kBarrierArriveOnly)
  Warp* first_waiter = nullptr;  ///< linked by Warp::next_waiter, in order of arrival
  Warp* last_waiter = nullptr;
};

}  // namespace gridloom::exec
