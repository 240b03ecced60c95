#include "sim/exec/runtime/unit.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "sim/exec/contract/grid_workspace.h"
#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/memcheck/unit_check.h"
#include "sim/exec/runtime/program_impl.h"
#include "sim/exec/runtime/worker.h"

namespace gridloom::exec {
namespace {

constexpr std::size_t kHelperStackBytes = 16u << 10;  // what helpers may use below a recursing function's check

/// The number of a CTA's barrier in memcheck's books.
std::uint32_t CheckNumber(std::ptrdiff_t cta, std::uint32_t barrier) {
  return static_cast<std::uint32_t>(cta) * (kBarriersPerCta + 1) + barrier;
}

/// Stacks at equal distances would all fall into the same cache sets, so each begins an odd number of lines further
/// down.
std::size_t StackColour(std::size_t warp) { return (warp * 7 % 64) * 64; }

}  // namespace

void Unit::AlignedFree::operator()(Warp* warps) const { ::operator delete[](warps, std::align_val_t{alignof(Warp)}); }

Unit::Unit(Worker& worker, DeviceMemory& memory) : worker(worker), memory(memory) {}

Unit::~Unit() {
  for (std::uint32_t i = 0; i < warp_capacity_; ++i) ForgetStack(warps[i]);
  if (shared_ != 0) memory.Free(shared_);
  if (local_ != 0) memory.Free(local_);
  if (own_memory_ != 0) memory.Free(own_memory_);
}

namespace {
// Generic addresses of shared memory end in the bits of its own addresses, as on a GPU, whose windows lie at multiples
// of their size: programs make matrix descriptors, which hold the lower 18 bits of a shared address, from generic
// pointers without a conversion.
constexpr std::uint64_t kSharedWindowAlign = 1u << 18;
}  // namespace

bool Unit::RequireShared(std::uint64_t bytes) {
  if (bytes <= shared_capacity_) return true;
  if (shared_ != 0) memory.Free(shared_);
  shared_capacity_ = RoundUp(bytes, 64u << 10);
  shared_ = memory.Allocate(shared_capacity_, kSharedWindowAlign, MemoryKind::kInternal);
  if (shared_ == 0) shared_capacity_ = 0;
  return shared_ != 0;
}

bool Unit::RequireLocal(std::uint64_t bytes) {
  if (bytes <= local_capacity_) return true;
  if (local_ != 0) memory.Free(local_);
  local_capacity_ = RoundUp(bytes, kPageBytes);
  local_ = memory.Allocate(local_capacity_, kPageBytes, MemoryKind::kInternal);
  if (local_ == 0) local_capacity_ = 0;
  // Threads use the low end of a large stack each: with huge pages that would take all of it.
  if (local_ != 0 && bytes > kPageBytes)
    static_cast<void>(madvise(reinterpret_cast<void*>(local_), local_capacity_, MADV_NOHUGEPAGE));
  return local_ != 0;
}

bool Unit::RequireOwnMemory(std::uint64_t bytes) {
  if (bytes <= own_memory_capacity_) return true;
  if (own_memory_ != 0) memory.Free(own_memory_);
  own_memory_ = memory.Allocate(bytes, kPageBytes, MemoryKind::kInternal);
  own_memory_capacity_ = own_memory_ != 0 ? bytes : 0;
  return own_memory_ != 0;
}

/// Thread indices of every lane, for blocks of this shape.
void Unit::SetShape(const std::uint32_t (&block)[3], std::uint32_t cta_count) {
  if (std::ranges::equal(shape_, block) && shape_ctas_ >= cta_count) return;
  std::ranges::copy(block, shape_);
  shape_ctas_ = cta_count;
  const std::uint32_t threads = block[0] * block[1] * block[2];
  const std::uint32_t per_cta = (threads + kWarpSize - 1) / kWarpSize;
  for (std::uint32_t c = 0; c < cta_count; ++c) {
    std::uint32_t x = 0, y = 0, z = 0;
    for (std::uint32_t w = 0; w < per_cta; ++w) {
      WarpCtx& ctx = warps[c * per_cta + w].ctx;
      for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
        ctx.tid[0][lane] = x;
        ctx.tid[1][lane] = y;
        ctx.tid[2][lane] = z;
        if (++x == block[0]) {
          x = 0;
          if (++y == block[1]) {
            y = 0;
            ++z;
          }
        }
      }
      for (std::uint32_t d = 0; d < 3; ++d) ctx.tid0[d] = ctx.tid[d][0];
      const std::uint32_t lanes = std::min(threads - w * kWarpSize, kWarpSize);
      ctx.initial_mask = lanes == kWarpSize ? ~0u : (1u << lanes) - 1;
      ctx.warp_id = w;
    }
  }
}

/// Room for so many warps. Empty, or what is missing.
std::string Unit::RequireWarps(std::uint32_t count) {
  if (count <= warp_capacity_) return {};
  for (std::uint32_t i = 0; i < warp_capacity_; ++i) ForgetStack(warps[i]);
  void* const memory = ::operator new[](count * sizeof(Warp), std::align_val_t{alignof(Warp)}, std::nothrow);
  if (!memory) return "no memory for " + std::to_string(count) + " warps";
  warps = static_cast<Warp*>(memory);
  std::uninitialized_value_construct_n(warps, count);
  warp_memory_.reset(warps);
  warp_capacity_ = count;
  shape_ctas_ = 0;
  return {};
}

/// Stacks, so many, for the launch's kernel. Empty, or what is missing.
std::string Unit::RequireStacks(const Launch& new_launch, std::size_t count) {
  const std::size_t room = std::max(Worker::kStackBytes, new_launch.recursion_bytes);
  // Large kernels have frames of many KiB; the room on top is for runtime helpers.
  constexpr std::size_t kFramesInRoom = 64u << 10;
  const std::size_t frames = std::max<std::size_t>(new_launch.kernel->frame_bytes, kFramesInRoom) - kFramesInRoom;
  const std::size_t bytes = room + (frames + 0xFFFF) / 0x10000 * 0x10000;
  if (count <= stacks.count() && bytes <= stacks.bytes()) return {};
  for (std::uint32_t i = 0; i < warp_capacity_; ++i) ForgetStack(warps[i]);
  if (!stacks.Require(count, bytes))
    return "no address space for the stacks of " + std::to_string(warp_count) + " warps";
  return {};
}

/// Connects CTAs and warps with the launch, their memory and their stacks.
void Unit::Connect(const Launch& new_launch, bool fibers) {
  const LaunchCtx& lc = new_launch.ctx;
  const std::uint32_t cta_count = new_launch.ctas_per_unit;
  const std::uint64_t local_per_warp = std::uint64_t{new_launch.local_stride} * kWarpSize;
  const bool local_each = fibers || new_launch.kernel->turns;
  for (std::uint32_t c = 0; c < cta_count; ++c) {
    Cta& cta = ctas[c];
    cta.unit = this;
    cta.warps = warps + c * lc.warps_per_cta;
    cta.ctx.launch = &lc;
    cta.ctx.owner = &cta;
    cta.ctx.shared_base = shared_;
    cta.ctx.shared_bytes =
        cta_count == 1 ? std::min(new_launch.shared_limit, lc.shared_stride) : lc.shared_stride * cta_count;
    cta.ctx.shared_offset = lc.shared_stride * c;
    cta.ctx.cluster_rank = c;
    cta.ctx.own_memory =
        new_launch.own_memory_bytes != 0 ? own_memory_ + std::uint64_t{new_launch.own_memory_bytes} * c : 0;
    for (std::uint32_t w = 0; w < lc.warps_per_cta; ++w) {
      Warp& warp = cta.warps[w];
      const auto number = static_cast<std::size_t>(&warp - warps);
      const std::size_t own = fibers ? number : 0;
      warp.cta = &cta;
      warp.stack_low = stacks.low(own);
      warp.stack_bytes = stacks.bytes();
      warp.ctx.cta = &cta.ctx;
      warp.ctx.launch = &lc;
      warp.ctx.owner = &warp;
      warp.ctx.local_base = local_ + (local_each ? local_per_warp * number : 0);
      warp.ctx.local_stride = new_launch.local_stride;
      warp.ctx.local_bytes = new_launch.local_bytes;
      warp.ctx.stack_limit = warp.stack_low + kHelperStackBytes;
    }
  }
}

std::string Unit::Adopt(Launch& new_launch, bool fibers) {
  if (adopted_serial_ == new_launch.serial) return {};
  launch = &new_launch;
  mbarrier_waits.Clear();  // a launch that was stopped leaves some
  const LaunchCtx& lc = new_launch.ctx;
  const std::uint32_t cta_count = new_launch.ctas_per_unit;
  warp_count = cta_count * lc.warps_per_cta;
  if (ctas.size() != cta_count) ctas = std::vector<Cta>(cta_count);
  if (std::string missing = RequireWarps(warp_count); !missing.empty()) return missing;
  const std::size_t stack_count = fibers ? warp_count : 1;
  if (std::string missing = RequireStacks(new_launch, stack_count); !missing.empty()) return missing;
  if (!RequireShared(std::uint64_t{lc.shared_stride} * cta_count))
    return "no memory for " + std::to_string(lc.total_shared_bytes) + " bytes of shared memory";
  const std::size_t local_count = fibers || new_launch.kernel->turns ? warp_count : 1;
  if (!RequireLocal(std::uint64_t{new_launch.local_stride} * kWarpSize * local_count))
    return "no memory for " + std::to_string(new_launch.local_bytes) + " bytes of local memory per thread";
  if (!RequireOwnMemory(std::uint64_t{new_launch.own_memory_bytes} * cta_count))
    return "no memory for " + std::to_string(new_launch.own_memory_bytes) + " bytes of global memory per CTA";
  SetShape(lc.block, cta_count);
  Connect(new_launch, fibers);
  if (new_launch.services->memcheck) PrepareCheck();
  else check.reset();
  PrepareRecords(stack_count);
  barriers_ = fibers && !new_launch.kernel->simple_barriers;
  adopted_serial_ = new_launch.serial;
  return {};
}

void Unit::Begin(std::uint64_t index) {
  const Launch& l = *launch;
  const Dim3 place = l.PlaceOf(index);
  position_[0] = place.x;
  position_[1] = place.y;
  position_[2] = place.z;
  if (!l.ctas.empty()) {
    named_ = index;
    index = l.ctas[index];
  }
  sm_ = static_cast<std::uint32_t>(index % l.sm_share);
  PlaceCtas();
}

void Unit::Advance() {
  const Launch& l = *launch;
  if (!l.ctas.empty()) return Begin(named_ + 1);
  if (++sm_ == l.sm_share) sm_ = 0;
  if (++position_[0] != l.unit_grid[0])
    return ctas.size() == 1 && !check && l.kernel->reserved_shared_bytes == 0 ? MoveInRow() : PlaceCtas();
  position_[0] = 0;
  if (++position_[1] == l.unit_grid[1]) {
    position_[1] = 0;
    ++position_[2];
  }
  PlaceCtas();
}

/// PlaceCtas where nothing but x has changed. Copying the whole position, part of which was written just now, as one
/// vector would wait until all stores of the CTA before have left the store buffer: 15 ns in a kernel that streams.
void Unit::MoveInRow() {
  CtaCtx& ctx = ctas[0].ctx;
  ctx.ctaid[0] = position_[0];
  ctx.smid = launch->SmAt(sm_);
  ctx.live_warps = launch->ctx.warps_per_cta;
}

std::uint64_t Unit::InRow(std::uint64_t most) const {
  const Launch& l = *launch;
  if (ctas.size() != 1 || check || recording() || !l.ctas.empty() || l.kernel->reserved_shared_bytes != 0) return 1;
  return std::min({most, kMostInRow, std::uint64_t{l.unit_grid[0] - position_[0]}});
}

void Unit::RunInRow(std::uint64_t count) {
  const auto more = static_cast<std::uint32_t>(count - 1);
  ctas[0].ctx.row_left = more;
  position_[0] += more;
  sm_ = (sm_ + more) % launch->sm_share;
}

/// Toolkits take it that the memory reserved for them is zero when a CTA begins.
void Unit::ClearReservedShared() {
  const std::uint32_t bytes = launch->kernel->reserved_shared_bytes;
  for (const Cta& cta : ctas) {
    std::memset(reinterpret_cast<void*>(shared_ + cta.ctx.shared_offset), 0, bytes);
    if (check) check->shadow.Fill(cta.ctx.shared_offset, bytes);
  }
}

void Unit::PlaceCtas() {
  if (check) check->BeginCta();
  if (launch->kernel->reserved_shared_bytes != 0) ClearReservedShared();
  const LaunchCtx& lc = launch->ctx;
  if (ctas.size() == 1) {
    CtaCtx& ctx = ctas[0].ctx;
    for (int d = 0; d < 3; ++d) ctx.ctaid[d] = position_[d];
    ctx.smid = launch->SmAt(sm_);
    ctx.live_warps = lc.warps_per_cta;
    return;
  }
  std::uint32_t offset[3] = {0, 0, 0};
  for (Cta& cta : ctas) {
    for (int d = 0; d < 3; ++d) cta.ctx.ctaid[d] = position_[d] * lc.cluster[d] + offset[d];
    cta.ctx.smid = launch->SmAt(sm_);
    cta.ctx.live_warps = lc.warps_per_cta;
    if (++offset[0] == lc.cluster[0]) {
      offset[0] = 0;
      if (++offset[1] == lc.cluster[1]) {
        offset[1] = 0;
        ++offset[2];
      }
    }
  }
}

void Unit::LinkRing(std::uint32_t first_cta, std::uint32_t last_cta) {
  const std::uint32_t per_cta = launch->ctx.warps_per_cta;
  const std::uint32_t first = first_cta * per_cta, last = last_cta * per_cta;
  const WarpEntry entry = launch->kernel->entry;
  // Warps that are linked as long as they live need no counting: the last one ends for all.
  const bool uncounted = KnowsRingEnd() && !barriers_ && !launch->observer && !check && !launch->kernel->gives_way;
  const OnReturn on_return = uncounted ? OnReturn::kNextInRing : OnReturn::kRuntime;
  Warp* previous = &warps[last - 1];
  for (std::uint32_t i = first; i < last; ++i) {
    Warp& warp = warps[i];
    warp.ctx.exited_mask = 0;
    warp.ctx.prev = &previous->ctx;
    previous->ctx.next = &warp.ctx;
    if (check) warp.ctx.sync_waits = 0;
    if (check && warp.ctx.invalid_reads != 0) {
      warp.ctx.invalid_reads = 0;
      std::fill_n(check->invalid_reads.begin() + std::size_t{i} * kWarpSize, kWarpSize, UnitCheck::InvalidRead{});
    }
    previous = &warp;
    PrepareStart(warp, StackColour(i), entry, on_return);
  }
  if (barriers_) {
    for (std::uint32_t i = first; i < last; ++i) {
      Warp& warp = warps[i];
      warp.state = WarpState::kReady;
      warp.arrived_barriers = warp.counted_barriers = 0;
      warp.waits_for_arrivals = warp.cluster_arrived = false;
      warp.line = 0;
    }
    for (std::uint32_t c = first_cta; c < last_cta; ++c) std::ranges::fill(ctas[c].barriers, Barrier{});
    cluster_barrier = Barrier{};
  }
  ring = &warps[first];
  for (std::uint32_t c = first_cta; c < last_cta; ++c) {
    ctas[c].ctx.ring = &ring->ctx;
    ctas[c].ctx.arrived_warps = 0;  // a launch that was stopped leaves some
  }
  runnable = live_warps = uncounted ? 1 : last - first;
  idle_yields = 0;
}

// ---------------------------------------------------------------------------------------------------------------------
// The ring. `ring` always points to a linked warp, or is null when none is.
// ---------------------------------------------------------------------------------------------------------------------

void Unit::Unlink(Warp& warp) {
  --runnable;
  if (runnable == 0) {
    ring = nullptr;
    return;
  }
  Warp& next = WarpOf(warp.ctx.next);
  next.ctx.prev = warp.ctx.prev;
  warp.ctx.prev->next = &next.ctx;
  ring = &next;
}

void Unit::Append(Warp& warp) {
  warp.state = WarpState::kReady;
  if (runnable++ == 0) {
    ring = &warp;
    warp.ctx.next = warp.ctx.prev = &warp.ctx;
    return;
  }
  warp.ctx.next = &ring->ctx;
  warp.ctx.prev = ring->ctx.prev;
  warp.ctx.prev->next = &warp.ctx;
  ring->ctx.prev = &warp.ctx;
}

void Unit::End(Warp& warp) {
  Unlink(warp);
  --live_warps;
  CtaCtx& cta = warp.cta->ctx;
  if (--cta.live_warps == cta.arrived_warps && cta.arrived_warps != 0) {  // of the in-line barrier
    cta.arrived_warps = 0;
    ++cta.barrier_phase;
  }
  if (recording()) EndRecords(warp);
  if (check) check->shadow.Exit(static_cast<std::uint32_t>(&warp - warps));
  if (!mbarrier_waits.empty()) mbarrier_waits.Forget(warp);
  if (barriers_) {
    warp.state = WarpState::kEnded;
    idle_yields = 0;
    ++progress;
    for (std::uint32_t id = 0; id < kBarriersPerCta; ++id)
      if (warp.cta->barriers[id].arrived_warps != 0) CompleteIfFull(*warp.cta, id);
    if (cluster_barrier.arrived_warps != 0) CompleteClusterIfFull();
  }
  if (ring) LeaveWarp(warp, *ring);
  if (live_warps == 0) LeaveWarp(warp, worker.root);
  RecordFault(*launch, &warp, FaultKind::kDeadlock, kNoLane, 0, warp.line, DescribeWaiting());
  LeaveStopped(warp);
}

// One turn of the ring: who is in it runs up to where it waits. Whoever is released meanwhile comes behind this warp,
// with nothing to read from before its barrier. No progress, and no yield either: a loop that gives way and waits
// yields, too.
void Unit::GiveWay(Warp& warp) {
  if (launch->stop.load(std::memory_order_relaxed)) LeaveStopped(warp);
  ring = &WarpOf(warp.ctx.next);
  SwitchWarp(warp, *ring);
}

void Unit::Yield(Warp& warp) {
  if (launch->stop.load(std::memory_order_relaxed)) LeaveStopped(warp);
  Warp& next = WarpOf(warp.ctx.next);
  ring = &next;
  if (++idle_yields >= runnable) {
    // Every warp that can run has had its turn and waits for something: let another CTA run.
    idle_yields = 0;
    SwitchWarp(warp, worker.root);
  } else if (&next != &warp) {
    SwitchWarp(warp, next);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Barriers
// ---------------------------------------------------------------------------------------------------------------------

void Unit::Block(Warp& warp, std::uint32_t id) {
  warp.state = WarpState::kAtBarrier;
  warp.wait_barrier = id;
  Unlink(warp);
  if (!ring) {
    RecordFault(*launch, &warp, FaultKind::kDeadlock, kNoLane, 0, warp.line, DescribeWaiting());
    LeaveStopped(warp);
  }
  SwitchWarp(warp, *ring);
}

namespace {

std::uint32_t ResultOf(const Barrier& barrier) { return barrier.count | (barrier.all ? 0x80000000u : 0u); }

void Enqueue(Barrier& barrier, Warp& warp) {
  warp.next_waiter = nullptr;
  if (barrier.last_waiter) barrier.last_waiter->next_waiter = &warp;
  else barrier.first_waiter = &warp;
  barrier.last_waiter = &warp;
}

bool IsFull(const Barrier& barrier, std::uint32_t live_warps) {
  if (barrier.needed_threads != 0) return barrier.arrived_threads >= barrier.needed_threads;
  return barrier.arrived_warps != 0 && barrier.arrived_warps >= live_warps;
}

}  // namespace

/// memcheck: what came before the barrier is ordered before what the released warps do next. Of a cluster's barrier
/// that is every warp: those that have arrived and not waited yet do nothing that needs the difference.
void Unit::CompleteForCheck(const Cta* cta, std::uint32_t id, const Barrier& barrier, const Warp* last) {
  std::vector<std::uint32_t> released;
  const auto add = [&](const Warp& warp) { released.push_back(static_cast<std::uint32_t>(&warp - warps)); };
  if (!cta) {
    for (std::uint32_t i = 0; i < warp_count; ++i) released.push_back(i);
  } else {
    for (const Warp* waiter = barrier.first_waiter; waiter; waiter = waiter->next_waiter) add(*waiter);
    if (last) add(*last);
    for (std::uint32_t w = 0; barrier.partial && w < launch->ctx.warps_per_cta; ++w)
      if ((cta->warps[w].counted_barriers & 1u << id) != 0) add(cta->warps[w]);
  }
  check->shadow.Complete(CheckNumber(cta ? cta - ctas.data() : 0, id), released, barrier.needed_threads == 0);
}

void Unit::PrepareCheck() {
  if (!check) check = std::make_unique<UnitCheck>();
  constexpr unsigned kIndependentThreads = 70;  // from sm_70 on, lanes of a warp do not run in lockstep
  const bool check_lanes = launch->program && launch->program->module_as_read().sm() >= kIndependentThreads;
  const std::uint32_t shared_bytes = launch->ctas_per_unit == 1
                                         ? static_cast<std::uint32_t>(launch->ctx.total_shared_bytes)
                                         : launch->ctx.shared_stride * launch->ctas_per_unit;
  check->shadow.Prepare(shared_bytes, warp_count, check_lanes);
  check->sync.Prepare(warp_count, launch->ctx.warps_per_cta);
  check->copies.Prepare(shared_bytes, warp_count);
  check->sites.assign(std::size_t{launch->kernel->check_sites} * 2 + 2, 0);
  check->last = {};
  check->invalid_reads.assign(std::size_t{warp_count} * kWarpSize, {});
  for (std::uint32_t i = 0; i < warp_count; ++i) warps[i].ctx.check_sites = check->sites.data();
}

/// Ends a phase: wakes its waiters and empties the barrier.
void Unit::Release(Barrier& barrier, std::uint32_t result) {
  for (Warp* waiter = barrier.first_waiter; waiter;) {
    Warp* const next = waiter->next_waiter;
    waiter->barrier_result = result;
    Append(*waiter);
    waiter = next;
  }
  barrier = Barrier{};
  idle_yields = 0;
  ++progress;
}

void Unit::CompleteIfFull(Cta& cta, std::uint32_t id, const Warp* last) {
  Barrier& barrier = cta.barriers[id];
  if (!IsFull(barrier, cta.ctx.live_warps)) return;
  if (check) CompleteForCheck(&cta, id, barrier, last);
  const bool partial = barrier.partial;
  Release(barrier, ResultOf(barrier));
  if (!partial) return;
  for (std::uint32_t w = 0; w < launch->ctx.warps_per_cta; ++w) {
    Warp& warp = cta.warps[w];
    warp.arrived_barriers &= ~(warp.counted_barriers & 1u << id);
    warp.counted_barriers &= ~(1u << id);
    if (warp.state == WarpState::kAtBarrier && warp.waits_for_arrivals && warp.arrived_barriers == 0) {
      warp.waits_for_arrivals = false;
      Append(warp);
    }
  }
}

std::uint32_t Unit::ArriveAt(Warp& warp, std::uint32_t id, std::uint32_t needed_threads, std::uint32_t mask,
                             std::uint32_t predicate, bool wait, bool partial) {
  Cta& cta = *warp.cta;
  Barrier& barrier = cta.barriers[id];
  if (check) check->shadow.Arrive(CheckNumber(&cta - ctas.data(), id), static_cast<std::uint32_t>(&warp - warps));
  // Lanes of a diverged warp do not count yet: the warp arrives when its last lane has (WaitForArrivals).
  if (!partial) {
    ++barrier.arrived_warps;
    barrier.arrived_threads += kWarpSize;
  }
  barrier.needed_threads = static_cast<std::uint32_t>(RoundUp(needed_threads, kWarpSize));
  barrier.count += static_cast<std::uint32_t>(std::popcount(predicate & mask));
  barrier.all = barrier.all && (predicate & mask) == mask;
  if (partial) {
    warp.arrived_barriers |= 1u << id;
    barrier.partial = true;
    return 0;
  }
  if (!wait) {
    CompleteIfFull(cta, id);
    return 0;
  }
  if (IsFull(barrier, cta.ctx.live_warps)) {
    const std::uint32_t result = ResultOf(barrier);
    CompleteIfFull(cta, id, &warp);
    return result;
  }
  Enqueue(barrier, warp);
  Block(warp, id);
  return warp.barrier_result;
}

void Unit::WaitForArrivals(Warp& warp) {
  for (std::uint32_t id = 0; id < kBarriersPerCta; ++id) {
    if ((warp.arrived_barriers & ~warp.counted_barriers & 1u << id) == 0) continue;
    warp.counted_barriers |= 1u << id;
    ++warp.cta->barriers[id].arrived_warps;
    warp.cta->barriers[id].arrived_threads += kWarpSize;
    CompleteIfFull(*warp.cta, id);
  }
  if (warp.arrived_barriers == 0) return;
  warp.waits_for_arrivals = true;
  Block(warp, static_cast<std::uint32_t>(std::countr_zero(warp.arrived_barriers)));
}

std::uint32_t Unit::LiveWarpsOfGroup(const Cta& cta, std::uint32_t group) const {
  const std::uint32_t first = group * kWarpsOfGroup, end = std::min(first + kWarpsOfGroup, launch->ctx.warps_per_cta);
  std::uint32_t live = 0;
  for (std::uint32_t w = first; w < end; ++w) live += cta.warps[w].state != WarpState::kEnded;
  return live;
}

void Unit::CompleteClusterIfFull() {
  if (!IsFull(cluster_barrier, live_warps)) return;
  if (check) CompleteForCheck(nullptr, kClusterBarrier, cluster_barrier, nullptr);
  for (std::uint32_t i = 0; i < warp_count; ++i) warps[i].cluster_arrived = false;
  Release(cluster_barrier, 0);
}

void Unit::ArriveAtCluster(Warp& warp) {
  if (warp.cluster_arrived) return;  // the rest of a diverged warp
  warp.cluster_arrived = true;
  if (check) check->shadow.Arrive(CheckNumber(0, kClusterBarrier), static_cast<std::uint32_t>(&warp - warps));
  ++cluster_barrier.arrived_warps;
  CompleteClusterIfFull();
}

void Unit::WaitForCluster(Warp& warp) {
  if (!warp.cluster_arrived) return;
  Enqueue(cluster_barrier, warp);
  Block(warp, kClusterBarrier);
}

std::uint64_t CtaNumber(const Cta& cta) {
  const std::uint32_t* const grid = cta.ctx.launch->grid;
  const std::uint32_t* const id = cta.ctx.ctaid;
  const std::uint64_t number = id[0] + std::uint64_t{grid[0]} * (id[1] + std::uint64_t{grid[1]} * id[2]);
  const auto& slice = cta.unit->launch->slice;
  return slice ? slice->first + number : number;
}

Dim3 PlaceInGrid(const Cta& cta) {
  const auto& slice = cta.unit->launch->slice;
  if (!slice) return {cta.ctx.ctaid[0], cta.ctx.ctaid[1], cta.ctx.ctaid[2]};
  const std::uint64_t number = CtaNumber(cta), row = number / slice->grid.x;
  return {static_cast<std::uint32_t>(number % slice->grid.x), static_cast<std::uint32_t>(row % slice->grid.y),
          static_cast<std::uint32_t>(row / slice->grid.y)};
}

namespace {

/// Each CTA adds one to the count, the first one so much that the top bit changes when all have come.
std::string DescribeGridBarrier(const Launch& launch) {
  constexpr std::uint32_t kTop = 0x80000000u;
  const auto& grid = launch.ctx.grid;
  const std::uint32_t ctas = grid[0] * grid[1] * grid[2];
  std::uint32_t count;
  std::memcpy(&count, reinterpret_cast<const void*>(launch.ctx.grid_workspace + kGridCountOffset), sizeof count);
  count &= kTop - 1;
  const std::uint32_t missing = kTop - count < ctas ? kTop - count : ctas - count;
  return " the grid's barrier, to which " + std::to_string(missing) + " of " + std::to_string(ctas) + " CTAs " +
         (missing == 1 ? "has" : "have") + " not come";
}

}  // namespace

std::string Unit::DescribeWaiting() const {
  constexpr int kMostNamed = 16;
  std::string text = "deadlock: ";
  int named = 0, left_out = 0;
  for (std::uint32_t i = 0; i < warp_count; ++i) {
    const Warp& warp = warps[i];
    if (warp.state == WarpState::kEnded) continue;
    if (named == kMostNamed) {
      ++left_out;
      continue;
    }
    if (named++ != 0) text += ", ";
    const std::string mbarrier = mbarrier_waits.Describe(warp);
    const Dim3 place = PlaceInGrid(*warp.cta);
    text += "warp " + std::to_string(warp.ctx.warp_id) + " of CTA (" + std::to_string(place.x) + "," +
            std::to_string(place.y) + "," + std::to_string(place.z) + ")";
    if (warp.state == WarpState::kReady && warp.awaits_grid) text += " waits for" + DescribeGridBarrier(*launch);
    else if (warp.state == WarpState::kReady) text += mbarrier.empty() ? " spins" : " waits for an mbarrier" + mbarrier;
    else if (warp.wait_barrier == kClusterBarrier) text += " waits at the cluster's barrier";
    else if (warp.wait_barrier >= kFirstGroupBarrier) text += " waits for its warp group";
    else text += " waits at barrier " + std::to_string(warp.wait_barrier);
    if (const std::uint32_t line = PtxLineOf(*launch, warp.line)) text += " (PTX line " + std::to_string(line) + ")";
  }
  if (left_out != 0) text += " and " + std::to_string(left_out) + " more warps";
  return text;
}

}  // namespace gridloom::exec

void gl_warp_returned(gridloom::exec::WarpCtx* ctx) {
  gridloom::exec::Warp& warp = gridloom::exec::WarpOf(ctx);
  warp.cta->unit->End(warp);
}
