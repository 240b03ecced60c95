#include "sim/study/measure/profiling.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "scheduler/model/calibration.h"
#include "sim/timing/memory/coalescer.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::study {
namespace {

/// So many turns of one repeat are walked at most: what comes of them are ratios, and one CTA can have billions.
constexpr std::uint64_t kMostTurnVisits = std::uint64_t{1} << 20;

double Ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

struct Sums {
  std::uint64_t instructions = 0, accesses = 0, uncoalesced = 0, sectors = 0, uncoalesced_sectors = 0, stalls = 0;
  std::uint64_t core_accesses = 0, lines = 0, uncoalesced_lines = 0;
  double cycles = 0;
  std::array<std::uint64_t, sim::kPipeCount> pipe_cycles{};
};

/// One warp alone, in order: every instruction issues when its registers are ready. Results of global and local memory
/// are there at once; the first instruction that needs one of them is counted as a stall for all that are on their way.
class WarpWalk {
 public:
  WarpWalk(const TracedKernel& kernel, const trace::CtaTrace& cta, const sim::TimingSpec& timing, Sums& sums)
      : kernel_(kernel),
        cta_(cta),
        timing_(timing),
        sums_(sums),
        ready_(kernel.code.register_count + 1),
        pending_(ready_.size()) {}

  void Walk(std::uint32_t warp) {
    std::ranges::fill(ready_, 0.0);
    pending_.assign(pending_.size(), false);
    next_ = 0;
    for (const trace::PathPiece& piece : trace::PiecesOf(cta_, warp)) {
      const std::uint64_t turns =
          std::min(piece.times, std::max<std::uint64_t>(kMostTurnVisits / piece.visit_count, 1));
      for (std::uint64_t turn = 0; turn < turns; ++turn) WalkOnce(piece);
    }
    sums_.cycles += next_;
  }

 private:
  void WalkOnce(const trace::PathPiece& piece) {
    access_ = piece.first_access;
    for (std::uint32_t i = 0; i < piece.visit_count; ++i) {
      const trace::BasicBlock& block = kernel_.code.blocks[cta_.visits[piece.first_visit + i].block];
      for (std::uint32_t j = block.first; j < block.first + block.count; ++j) Step(kernel_.code.instructions[j]);
    }
  }
  void Step(const trace::Instruction& instruction) {
    ++sums_.instructions;
    const auto registers =
        std::span(kernel_.code.operands).subspan(instruction.operands, instruction.destinations + instruction.sources);
    double issue = next_;
    bool waits = false;
    for (const std::uint16_t reg : registers) {
      issue = std::max(issue, ready_[reg]);
      waits |= reg != 0 && pending_[reg];
    }
    if (waits) {
      ++sums_.stalls;
      pending_.assign(pending_.size(), false);
    }
    const sim::TimingSpec::Op& op = timing_.of(instruction.op);
    std::uint64_t& pipe = sums_.pipe_cycles[static_cast<std::size_t>(op.pipe)];
    pipe += op.interval;
    double latency = op.latency;
    next_ = issue + 1;
    if (instruction.op == trace::OpClass::kBranch || instruction.op == trace::OpClass::kBarrier)
      next_ = issue + latency;
    std::uint32_t passes = 1;
    const bool off_core = instruction.has_access() && NoteAccess(instruction, latency, passes);
    pipe += passes - 1;
    sums_.core_accesses += instruction.has_access() && !off_core;
    for (std::uint32_t d = 0; d < instruction.destinations; ++d) {
      if (registers[d] == 0) continue;
      ready_[registers[d]] = issue + latency;
      if (off_core) pending_[registers[d]] = true;
    }
  }

  /// Whether the access leaves the SM's core; sets the latency of its result and the cycles it keeps the load/store
  /// unit.
  bool NoteAccess(const trace::Instruction& instruction, double& latency, std::uint32_t& passes) {
    const trace::MemoryAccess& access = cta_.accesses[access_++];
    const trace::AccessWindow window = trace::WindowOf(instruction.space, instruction.flags, cta_, access);
    if (window.space == trace::Space::kShared) {
      const bool twins = timing_.shared.twins && (instruction.flags & (trace::kStore | trace::kAtomic)) == 0;
      passes = std::max(1u, timing::SharedPasses(cta_, access, instruction.width, timing_.shared.banks,
                                                 timing_.shared.bank_bytes, twins));
      latency = timing_.shared.latency + passes - 1;
      return false;
    }
    if (window.space != trace::Space::kGlobal && window.space != trace::Space::kLocal) {
      latency = window.space == trace::Space::kConstant ? timing_.constant.latency : timing_.texture.latency;
      return false;
    }
    if (access.mask == 0) return false;
    timing::LineList lines;
    timing::Coalesce(cta_, access, 0 - window.added, instruction.width, {}, lines);
    passes = std::max(1u, lines.count);
    std::uint64_t sectors = 0;
    for (std::uint32_t i = 0; i < lines.count; ++i)
      sectors += static_cast<std::uint64_t>(std::popcount(lines.lines[i].sectors));
    ++sums_.accesses;
    sums_.sectors += sectors;
    sums_.lines += lines.count;
    if (lines.count > kCoalescedLines) {
      ++sums_.uncoalesced;
      sums_.uncoalesced_sectors += sectors;
      sums_.uncoalesced_lines += lines.count;
    }
    latency = 1;
    return true;
  }

  const TracedKernel& kernel_;
  const trace::CtaTrace& cta_;
  const sim::TimingSpec& timing_;
  Sums& sums_;
  std::vector<double> ready_;  // cycle, by register
  std::vector<bool> pending_;  // registers that loads on their way write
  std::uint32_t access_ = 0;
  double next_ = 0;  // cycle of the next issue at the earliest
};

/// Mean latency of an access on an idle device, where it is served as often from each level as in the measurement.
double UnloadedLatency(const timing::Counters& counters, const sim::TimingSpec& timing) {
  const double l1 =
      Ratio(static_cast<double>(counters.sm.l1_hits), static_cast<double>(counters.sm.l1_hits + counters.sm.l1_misses));
  const double dram = Ratio(static_cast<double>(counters.memory.l2_sector_misses),
                            static_cast<double>(counters.memory.l2_sector_accesses));
  return l1 * timing.l1.latency + (1 - l1) * ((1 - dram) * timing.l2.latency + dram * timing.dram.latency);
}

/// KernelProfile::demands: each pipe, bytes into the SM, DRAM bandwidth, rows that DRAM can open, time of L2 slices.
std::vector<double> DemandsFrom(const PathFacts& facts, const sim::DeviceSpec& device, const CoRunRates& alone) {
  const sim::TimingSpec& timing = device.timing;
  std::vector<double> demands;
  for (std::size_t pipe = 0; pipe < sim::kPipeCount; ++pipe)
    demands.push_back(timing.units[pipe] == 0 ? 0 : facts.pipe_cycles[pipe] / timing.units[pipe]);
  const auto instructions = static_cast<double>(alone.counters.sm.warp_instructions);
  const auto per_instruction = [&](double amount, double of_sm_in_a_cycle) {
    return Ratio(amount, instructions) / of_sm_in_a_cycle;
  };
  const timing::SmCounters& sm = alone.counters.sm;
  const double into_sm = static_cast<double>(sm.response_sectors * sim::TimingSpec::kSectorBytes +
                                             sm.responses * timing.crossbar.header_bytes);
  demands.push_back(per_instruction(
      into_sm, static_cast<double>(timing.crossbar.sm_in_bytes) * timing.clock.crossbar_mhz / timing.clock.sm_mhz));
  const timing::MemoryCounters& memory = alone.counters.memory;
  const double channel_cycles =
      static_cast<double>(timing.dram.channels) * timing.clock.dram_mhz / timing.clock.sm_mhz / device.sm.count;
  demands.push_back(per_instruction(static_cast<double>(memory.dram_read_bytes + memory.dram_write_bytes),
                                    channel_cycles * timing.dram.bytes_per_cycle));
  demands.push_back(per_instruction(static_cast<double>(memory.dram_activations), channel_cycles / timing.dram.tRRD));
  const double slice_cycles =
      static_cast<double>(timing.l2.slices) * timing.clock.l2_mhz / timing.clock.sm_mhz / device.sm.count;
  demands.push_back(per_instruction(static_cast<double>(memory.l2_busy_cycles), slice_cycles));
  return demands;
}

}  // namespace

model::SmModel SmModelOf(const sim::DeviceSpec& device) {
  const sim::TimingSpec& timing = device.timing;
  model::SmModel sm;
  sm.sms = device.sm.count;
  sm.schedulers = timing.sm.schedulers;
  sm.peak_ipc = timing.sm.schedulers;
  sm.empty = timing::EmptySm(device);
  sm.request_bytes = timing.dram.access_bytes;
  sm.latency_cycles = timing.dram.latency;
  sm.first_memory_resource = sim::kPipeCount;
  sm.lines_in_flight = timing.l1.mshrs;
  const double bytes_per_sm_cycle = static_cast<double>(timing.dram.channels) * timing.dram.bytes_per_cycle *
                                    timing.clock.dram_mhz / timing.clock.sm_mhz;
  sm.requests_per_cycle = bytes_per_sm_cycle / sm.request_bytes / sm.sms;
  return sm;
}

PathFacts WalkPaths(const TracedKernel& kernel, const sim::TimingSpec& timing, std::size_t blocks) {
  Sums sums;
  const std::size_t count = std::clamp<std::size_t>(blocks, 1, kernel.ctas.size());
  for (std::size_t i = 0; i < count; ++i) {
    const trace::CtaTrace& cta = *kernel.ctas[i * kernel.ctas.size() / count];
    WarpWalk walk(kernel, cta, timing, sums);
    for (std::uint32_t warp = 0; warp < cta.warps.size(); ++warp) walk.Walk(warp);
  }
  PathFacts facts;
  const auto accesses = static_cast<double>(sums.accesses), instructions = static_cast<double>(sums.instructions);
  facts.memory_ratio = Ratio(accesses, instructions);
  facts.uncoalesced_share = Ratio(static_cast<double>(sums.uncoalesced), accesses);
  facts.uncoalesced_sectors = Ratio(static_cast<double>(sums.uncoalesced_sectors), static_cast<double>(sums.sectors));
  facts.loads_per_stall = sums.stalls == 0 ? 1 : std::max(1.0, accesses / static_cast<double>(sums.stalls));
  facts.core_ratio = Ratio(static_cast<double>(sums.core_accesses), instructions);
  facts.coalesced_lines = Ratio(static_cast<double>(sums.lines - sums.uncoalesced_lines),
                                static_cast<double>(sums.accesses - sums.uncoalesced));
  facts.uncoalesced_lines = Ratio(static_cast<double>(sums.uncoalesced_lines), static_cast<double>(sums.uncoalesced));
  facts.dependency_cycles = std::max(1.0, Ratio(sums.cycles, instructions));
  for (std::size_t pipe = 0; pipe < sim::kPipeCount; ++pipe)
    facts.pipe_cycles[pipe] = Ratio(static_cast<double>(sums.pipe_cycles[pipe]), instructions);
  facts.sectors_per_access = Ratio(static_cast<double>(sums.sectors), accesses);
  return facts;
}

Result<model::KernelProfile> ProfileFrom(const TracedKernel& kernel, const sim::DeviceSpec& device,
                                         const CoRunRates& alone, double lone_ipc) {
  const model::SmModel sm = SmModelOf(device);
  const PathFacts facts = WalkPaths(kernel, device.timing);
  model::KernelProfile profile;
  profile.kernel = kernel.name;
  GL_TRY(needs, timing::NeedsOf(kernel.shape, device));
  profile.needs = needs;
  profile.max_resident_ctas = timing::CtasPerSm(needs, device);
  profile.instructions_per_cta = kernel.instructions_per_cta;
  profile.memory_ratio = facts.memory_ratio;
  profile.uncoalesced_share = facts.uncoalesced_share;
  const timing::MemoryCounters& memory = alone.counters.memory;
  const double requests = static_cast<double>(memory.dram_read_bytes + memory.dram_write_bytes) / sm.request_bytes;
  const double accesses = facts.memory_ratio * static_cast<double>(alone.counters.sm.warp_instructions);
  // Where rows cannot be opened as fast as the bus would take their data, a request keeps DRAM longer than its bytes
  // say, and those behind it wait longer: the model, which knows the bus only, gets so many more requests.
  const sim::TimingSpec::Dram& dram = device.timing.dram;
  const double bus_cycles =
      static_cast<double>(memory.dram_read_bytes + memory.dram_write_bytes) / dram.bytes_per_cycle;
  const double longer = std::max(1.0, Ratio(static_cast<double>(memory.dram_activations) * dram.tRRD, bus_cycles));
  // Requests are divided among both sorts of accesses as the sectors they touch are.
  profile.uncoalesced_requests =
      Ratio(longer * requests * facts.uncoalesced_sectors, accesses * facts.uncoalesced_share);
  profile.coalesced_requests =
      Ratio(longer * requests * (1 - facts.uncoalesced_sectors), accesses * (1 - facts.uncoalesced_share));
  profile.ipc = alone.parts[0].ipc;
  profile.pur = profile.ipc / sm.peak_ipc;
  profile.mur = Ratio(requests, static_cast<double>(alone.cycles) * sm.sms) / sm.requests_per_cycle;
  profile.refinement.dependency_cycles = facts.dependency_cycles;
  profile.refinement.loads_per_stall = facts.loads_per_stall;
  profile.refinement.coalesced_lines = facts.coalesced_lines;
  profile.refinement.uncoalesced_lines = facts.uncoalesced_lines;
  profile.refinement.core_ratio = facts.core_ratio;
  const auto issued = static_cast<double>(alone.counters.sm.warp_instructions);
  profile.refinement.instructions_per_issue =
      std::max(1.0, Ratio(issued, issued - static_cast<double>(alone.counters.sm.dual_issues)));
  profile.refinement.latency_cycles = UnloadedLatency(alone.counters, device.timing);
  profile.demands = DemandsFrom(facts, device, alone);
  GL_TRY_STATUS(model::Validate(profile));
  model::FitToLoneBlock(sm, lone_ipc, profile);
  return profile;
}

Result<model::KernelProfile> ProfileKernel(const std::shared_ptr<const TracedKernel>& kernel,
                                           const sim::DeviceSpec& device, const CoRunOptions& options) {
  GL_TRY(needs, timing::NeedsOf(kernel->shape, device));
  const CoRunPart part{.kernel = kernel, .ctas_per_sm = timing::CtasPerSm(needs, device)},
      lone_part{.kernel = kernel, .ctas_per_sm = 1};
  GL_TRY(alone, MeasureCoRun(device, std::span(&part, 1), options));
  GL_TRY(lone, MeasureCoRun(device, std::span(&lone_part, 1), options));
  return ProfileFrom(*kernel, device, alone, lone.parts[0].ipc);
}

Result<std::uint64_t> MeasureSmallestSlice(const std::shared_ptr<const TracedKernel>& kernel,
                                           const sim::DeviceSpec& device, const model::KernelProfile& profile,
                                           const SliceLimit& limit) {
  const std::uint64_t sms = device.sm.count, full = profile.max_resident_ctas;
  const double ctas_per_cycle = profile.ipc * static_cast<double>(sms) / profile.instructions_per_cta;
  std::optional<timing::Cycle> whole;  // in one launch
  const auto within = [&](std::uint64_t ctas_per_sm) -> Result<bool> {
    const double slice_cycles = static_cast<double>(ctas_per_sm * sms) / ctas_per_cycle;
    const bool launched_in_time = 2 * static_cast<double>(limit.launch_interval) <= slice_cycles;
    if (launched_in_time && kSliceStreams * ctas_per_sm >= 2 * full) return true;
    const SlicedRun sliced_run = SlicingRun(device, full, ctas_per_sm, limit.launch_interval, limit.effort.simulated);
    const double instructions = static_cast<double>(sliced_run.ctas) * profile.instructions_per_cta;
    if (limit.effort.most != 0 && instructions > static_cast<double>(limit.effort.most)) return false;
    if (!whole) {
      GL_TRY(cycles,
             MeasureSliced(device, kernel, SlicingRun(device, full, 0, limit.launch_interval, limit.effort.simulated)));
      whole = cycles;
    }
    GL_TRY(sliced, MeasureSliced(device, kernel, sliced_run));
    return static_cast<double>(sliced) <= (1 + limit.overhead) * static_cast<double>(*whole);
  };
  std::uint64_t least = 1, enough = full;  // the answer is in between
  while (least < enough) {
    const std::uint64_t middle = (least + enough) / 2;
    GL_TRY(cheap, within(middle));
    if (cheap) enough = middle;
    else least = middle + 1;
  }
  return enough * sms;
}

}  // namespace gridloom::study
