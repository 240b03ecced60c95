#include "sim/timing/derived.h"

#include <algorithm>

#include "rewriter/support/check.h"

namespace gridloom::timing {
namespace {

double Ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }
double Number(std::uint64_t value) { return static_cast<double>(value); }
const SmCounters& SmOf(const Activity& a) { return a.counters.sm; }
const MemoryCounters& MemoryOf(const Activity& a) { return a.counters.memory; }
double Gigabytes(double bytes, const Activity& a) { return Ratio(bytes, a.seconds()) / 1e9; }
double ReadBytes(const Activity& a) { return Number(MemoryOf(a).dram_read_bytes); }
double WriteBytes(const Activity& a) { return Number(MemoryOf(a).dram_write_bytes); }
double HitShare(std::uint64_t hits, std::uint64_t misses) { return Ratio(Number(hits), Number(hits + misses)); }

double L2HitShare(const Activity& a) {
  const double accesses = Number(MemoryOf(a).l2_sector_accesses);
  return accesses == 0 ? 0 : 1 - Number(MemoryOf(a).l2_sector_misses) / accesses;
}

double DramUse(const Activity& a) {
  const sim::TimingSpec& timing = a.device.timing;
  const double cycles = Number(a.cycles) * timing.clock.dram_mhz / timing.clock.sm_mhz * timing.dram.channels;
  return Ratio(Number(MemoryOf(a).dram_busy_cycles), cycles);
}

constexpr DerivedInfo kDerivedTable[] = {
    {"seconds", "s", "simulated time", [](const Activity& a) { return a.seconds(); }},
    {"ipc", "instructions/cycle", "warp instructions per cycle, of the whole device",
     [](const Activity& a) { return Ratio(Number(SmOf(a).warp_instructions), Number(a.cycles)); }},
    {"issue_share", "share", "of the scheduler cycles on SMs with a CTA, those in which an instruction was issued",
     [](const Activity& a) {
       return Ratio(Number(SmOf(a).issue_cycles), Number(SmOf(a).resident_cycles) * a.device.timing.sm.schedulers);
     }},
    {"sm_share", "share", "of the cycles of all SMs, those with a CTA resident",
     [](const Activity& a) { return Ratio(Number(SmOf(a).resident_cycles), Number(a.cycles) * a.device.sm.count); }},
    {"occupancy", "share", "warps resident of the warps that fit, in cycles with a CTA resident",
     [](const Activity& a) {
       return Ratio(Number(SmOf(a).warp_cycles), Number(SmOf(a).resident_cycles) * a.device.max_warps_per_sm());
     }},
    {"active_lanes", "share", "lanes that took part in warp instructions",
     [](const Activity& a) {
       return Ratio(Number(SmOf(a).thread_instructions), Number(SmOf(a).warp_instructions) * trace::kWarpSize);
     }},
    {"shared_passes_per_access", "passes",
     "passes over the banks per access to shared memory; 1 is without bank conflicts",
     [](const Activity& a) { return Ratio(Number(SmOf(a).shared_passes), Number(SmOf(a).shared_instructions)); }},
    {"l1_hit_share", "share", "of the line accesses of L1, those that it served",
     [](const Activity& a) { return HitShare(SmOf(a).l1_hits, SmOf(a).l1_misses); }},
    {"l2_hit_share", "share", "of the sectors that requests touched, those that L2 had or did not have to read",
     L2HitShare},
    {"dram_read_gb_s", "GB/s", "bytes read from DRAM per second, 10^9",
     [](const Activity& a) { return Gigabytes(ReadBytes(a), a); }},
    {"dram_write_gb_s", "GB/s", "bytes written to DRAM per second, 10^9",
     [](const Activity& a) { return Gigabytes(WriteBytes(a), a); }},
    {"dram_gb_s", "GB/s", "bytes read from and written to DRAM per second, 10^9",
     [](const Activity& a) { return Gigabytes(ReadBytes(a) + WriteBytes(a), a); }},
    {"dram_share", "share", "of the command cycles of all channels, those with a busy data bus", DramUse},
};

template <std::uint64_t SmCounters::*counter>
std::uint64_t Read(const SmCounters& counters, std::size_t) {
  return counters.*counter;
}

constexpr SchedulerState kStates[] = {
    {"issue_cycles", "issue", Read<&SmCounters::issue_cycles>},
    {"stall_pipe", "execution units", Read<&SmCounters::stall_pipe>},
    {"stall_load_store", "load/store units", Read<&SmCounters::stall_load_store>},
    {"stall_dependency", "dependences", Read<&SmCounters::stall_dependency>},
    {"stall_memory", "memory", Read<&SmCounters::stall_memory>},
    {"stall_barrier", "barriers", Read<&SmCounters::stall_barrier>},
    {"stall_finish", "stores", Read<&SmCounters::stall_finish>},
    {"stall_empty", "too few warps", Read<&SmCounters::stall_empty>},
};

}  // namespace

std::span<const DerivedInfo> DerivedTable() { return kDerivedTable; }

double Derived(std::string_view name, const Activity& activity) {
  const auto info = std::ranges::find(kDerivedTable, name, &DerivedInfo::name);
  GL_CHECK(info != std::end(kDerivedTable), "no such derived figure");
  return info->value(activity);
}

std::span<const SchedulerState> SchedulerStates() { return kStates; }

std::string_view BoundBy(const Activity& activity, std::span<const SchedulerState> states) {
  constexpr double kMostOfTheTime = 0.7;
  if (DramUse(activity) > kMostOfTheTime) return "DRAM bandwidth";
  return std::ranges::max(states, {}, [&](const SchedulerState& state) { return state.value(activity.counters.sm); })
      .label;
}

}  // namespace gridloom::timing
