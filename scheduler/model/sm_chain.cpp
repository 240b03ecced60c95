#include "scheduler/model/sm_chain.h"

#include <algorithm>
#include <cmath>

#include "rewriter/support/check.h"

namespace gridloom::model {
namespace {

/// Keeps every state able to get to the one where all are ready, so that the chain has one steady state.
constexpr double kAlmostOne = 1 - 1e-12;

constexpr std::size_t kMostStations = std::tuple_size_v<SmChain::Work>;

bool HasCoalesced(const SmChain::Kernel& kernel) {
  return kernel.stall_coalesced > 0 || kernel.stall_core > 0 || kernel.stall_uncoalesced == 0;
}

std::size_t StateCount(const SmChain::Kernel& kernel) {
  const std::size_t units = kernel.units;
  return HasCoalesced(kernel) && kernel.stall_uncoalesced > 0 ? (units + 1) * (units + 2) / 2 : units + 1;
}

std::size_t StateCount(std::span<const SmChain::Kernel> kernels) {
  std::size_t count = 1;
  for (const SmChain::Kernel& kernel : kernels) count *= StateCount(kernel);
  return count;
}

std::vector<SmChain::Idle> StatesOf(const SmChain::Kernel& kernel) {
  std::vector<SmChain::Idle> states;
  const std::uint32_t coalesced = HasCoalesced(kernel) ? kernel.units : 0,
                      uncoalesced = kernel.stall_uncoalesced > 0 ? kernel.units : 0;
  for (std::uint32_t c = 0; c <= coalesced; ++c) {
    for (std::uint32_t u = 0; u <= uncoalesced && c + u <= kernel.units; ++u) states.push_back({c, u});
  }
  return states;
}

/// What a stall takes of what accesses wait for: divided among both sorts of accesses as the lines are that they ask
/// for.
void DescribeWork(const SmModel& sm, const KernelProfile& profile, SmChain::Kernel& kernel) {
  const double stalls = profile.memory_ratio / profile.refinement.loads_per_stall;  // per instruction
  if (sm.first_memory_resource == 0 || stalls <= 0) return;
  const double share = profile.uncoalesced_share;
  const double lines = (1 - share) * kernel.coalesced_lines + share * kernel.uncoalesced_lines;
  const std::size_t count = std::min(
      kMostStations, profile.demands.size() - std::min<std::size_t>(profile.demands.size(), sm.first_memory_resource));
  for (std::size_t station = 0; station < count; ++station) {
    const double work = profile.demands[sm.first_memory_resource + station] / stalls;
    kernel.coalesced_work[station] = lines > 0 ? work * kernel.coalesced_lines / lines : work;
    kernel.uncoalesced_work[station] = lines > 0 ? work * kernel.uncoalesced_lines / lines : work;
  }
}

/// What does not depend on how units are made.
SmChain::Kernel Describe(const SmModel& sm, const KernelProfile& profile, double least_dependency,
                         const ModelOptions& options) {
  const KernelProfile::Refinement& refinement = profile.refinement;
  SmChain::Kernel kernel;
  kernel.issues_per_round = least_dependency / refinement.dependency_cycles;
  kernel.instructions_per_issue = refinement.instructions_per_issue;
  const double stalls =
      profile.memory_ratio * refinement.instructions_per_issue / refinement.loads_per_stall * kernel.issues_per_round;
  const double stall = std::min(stalls, kAlmostOne), share = options.uncoalesced ? profile.uncoalesced_share : 0;
  kernel.stall_uncoalesced = stall * share;
  kernel.stall_coalesced = stall * (1 - share);
  kernel.coalesced_requests = profile.coalesced_requests * refinement.loads_per_stall;
  kernel.uncoalesced_requests = profile.uncoalesced_requests * refinement.loads_per_stall;
  kernel.coalesced_lines = refinement.coalesced_lines * refinement.loads_per_stall;
  kernel.uncoalesced_lines = refinement.uncoalesced_lines * refinement.loads_per_stall;
  DescribeWork(sm, profile, kernel);
  const double queued = refinement.core_ratio + profile.memory_ratio * (1 - 1 / refinement.loads_per_stall);
  kernel.stall_core =
      std::clamp(queued * refinement.instructions_per_issue * kernel.issues_per_round, 0.0, kAlmostOne - stall);
  const double latency =
      (refinement.latency_cycles > 0 ? refinement.latency_cycles : sm.latency_cycles) + sm.contention_offset;
  kernel.coalesced_latency = latency + std::max(0.0, profile.coalesced_requests - 1) * sm.request_interval;
  kernel.uncoalesced_latency = latency + std::max(0.0, profile.uncoalesced_requests - 1) * sm.request_interval;
  return kernel;
}

/// Takes units of the kernel with most states together until the chain is small enough.
void LimitStates(std::vector<SmChain::Kernel>& kernels, std::size_t most) {
  while (StateCount(kernels) > most) {
    SmChain::Kernel& largest =
        *std::ranges::max_element(kernels, {}, [](const SmChain::Kernel& kernel) { return StateCount(kernel); });
    if (largest.units == 1) return;
    largest.warps *= static_cast<double>(largest.units) / (largest.units - 1);
    --largest.units;
  }
}

/// Whether the lines that all units together ask for may be more than the SM can wait for.
bool CanHoldLines(const std::vector<SmChain::Kernel>& kernels, double lines_in_flight) {
  double lines = 0;
  for (const SmChain::Kernel& kernel : kernels)
    lines += kernel.units * kernel.warps * std::max(kernel.coalesced_lines, kernel.uncoalesced_lines);
  return lines_in_flight > 0 && lines > lines_in_flight;
}

std::vector<SmChain::Kernel> MakeKernels(const SmModel& sm, std::span<const Resident> residents, double schedulers,
                                         const ModelOptions& options) {
  double least_dependency = residents.front().kernel->refinement.dependency_cycles;
  for (const Resident& resident : residents)
    least_dependency = std::min(least_dependency, resident.kernel->refinement.dependency_cycles);
  std::vector<SmChain::Kernel> kernels;
  for (const Resident& resident : residents) {
    SmChain::Kernel kernel = Describe(sm, *resident.kernel, least_dependency, options);
    const double warps = resident.ctas * (resident.kernel->needs.warps / schedulers);
    const double units = options.granularity == ModelOptions::Granularity::kCta ? resident.ctas : std::ceil(warps);
    // Counts beyond the limit are cut before they can overflow anything.
    kernel.units = static_cast<std::uint32_t>(std::clamp<double>(units, 1, std::max(options.max_states, 2u)));
    kernel.warps = warps / kernel.units;
    kernels.push_back(kernel);
  }
  if (!CanHoldLines(kernels, sm.lines_in_flight / schedulers)) {
    for (SmChain::Kernel& kernel : kernels) kernel.stall_core = 0;
  }
  LimitStates(kernels, options.max_states);
  return kernels;
}

/// What the units of one kernel do in a round, as probabilities of its next state. Each unit chooses on its own, so the
/// distribution grows by one unit at a time.
class Moves {
 public:
  explicit Moves(const SmChain::Kernel& kernel)
      : kernel_(kernel),
        width_(kernel.stall_uncoalesced > 0 ? kernel.units + 1 : 1),
        grid_((kernel.units + 1) * width_) {}

  /// `stall_coalesced`: P(r→i); `wake_…`: P(i→r). The result has the order of StatesOf.
  void From(const SmChain::Idle& idle, double stall_coalesced, double wake_coalesced, double wake_uncoalesced,
            double* next) {
    std::ranges::fill(grid_, 0.0);
    grid_[0] = 1;
    done_ = 0;
    for (std::uint32_t i = 0; i < idle.coalesced; ++i) Add(1 - wake_coalesced, 0);
    for (std::uint32_t i = 0; i < idle.uncoalesced; ++i) Add(0, 1 - wake_uncoalesced);
    const std::uint32_t ready = kernel_.units - idle.coalesced - idle.uncoalesced;
    for (std::uint32_t i = 0; i < ready; ++i) Add(stall_coalesced, kernel_.stall_uncoalesced);
    const std::uint32_t most_coalesced = HasCoalesced(kernel_) ? kernel_.units : 0;
    for (std::uint32_t c = 0; c <= most_coalesced; ++c) {
      for (std::uint32_t u = 0; u < width_ && c + u <= kernel_.units; ++u) *next++ = grid_[c * width_ + u];
    }
  }

 private:
  /// One more unit: afterwards idle with these probabilities, else ready.
  void Add(double coalesced, double uncoalesced) {
    const double ready = 1 - coalesced - uncoalesced;
    ++done_;
    for (std::uint32_t c = done_ + 1; c-- > 0;) {
      for (std::uint32_t u = std::min(width_ - 1, done_ - c) + 1; u-- > 0;) {
        double& here = grid_[c * width_ + u];
        here *= ready;
        if (c > 0) here += coalesced * grid_[(c - 1) * width_ + u];
        if (u > 0) here += uncoalesced * grid_[c * width_ + u - 1];
      }
    }
  }

  const SmChain::Kernel& kernel_;
  std::uint32_t width_, done_ = 0;
  std::vector<double> grid_;  // [idle, coalesced][idle, uncoalesced]
};

/// What the ready units want in the shortest round, and what the idle ones have asked for.
struct Demand {
  double issues = 0;               ///< slots
  double requests = 0, lines = 0;  ///< outstanding
  double stalls = 0;               ///< warps that wait for what is off the core
  SmChain::Work work{};            ///< outstanding, cycles of the whole SM
};

Demand DemandIn(const SmChain& chain, std::size_t state) {
  Demand demand;
  for (std::size_t k = 0; k < chain.kernels.size(); ++k) {
    const SmChain::Kernel& kernel = chain.kernels[k];
    const SmChain::Idle& idle = chain.IdleOf(state, k);
    const double ready = kernel.units - idle.coalesced - idle.uncoalesced;
    demand.issues += ready * kernel.warps * kernel.issues_per_round;
    // Some of the idle units may wait for accesses that stay in the core.
    const double off_core =
        kernel.stall_core > 0 ? kernel.stall_coalesced / (kernel.stall_coalesced + kernel.stall_core) : 1;
    const double coalesced = kernel.warps * idle.coalesced * off_core, uncoalesced = kernel.warps * idle.uncoalesced;
    demand.requests += coalesced * kernel.coalesced_requests + uncoalesced * kernel.uncoalesced_requests;
    demand.lines += coalesced * kernel.coalesced_lines + uncoalesced * kernel.uncoalesced_lines;
    demand.stalls += coalesced + uncoalesced;
    for (std::size_t station = 0; station < kMostStations; ++station)
      demand.work[station] +=
          coalesced * kernel.coalesced_work[station] + uncoalesced * kernel.uncoalesced_work[station];
  }
  return demand;
}

/// What an access waits for others, beyond its latency. The paper's line where it is not known what accesses wait for.
/// Else a station with a queue behind a delay of L_0 (mean value analysis, with all accesses alike): no wait to speak
/// of while the work on its way is less than fits into the delay, and all of it less the delay when it is much more; of
/// several stations, the slowest one's.
double Contention(const SmModel& sm, const SmChain& chain, const Demand& demand) {
  if (sm.first_memory_resource == 0)
    return sm.contention_slope * demand.requests * chain.schedulers / sm.requests_per_cycle;
  double longest = 0;
  for (const double of_sm : demand.work) {
    if (of_sm <= 0) continue;
    const double work = of_sm * chain.schedulers, service = work / demand.stalls;
    const double excess = work - sm.latency_cycles - service;
    longest = std::max(longest, (excess + std::sqrt(excess * excess + 4 * work * service)) / 2);
  }
  return longest;
}

}  // namespace

const SmChain::Idle& SmChain::IdleOf(std::size_t state, std::size_t k) const {
  for (std::size_t later = states.size() - 1; later > k; --later) state /= states[later].size();
  return states[k][state % states[k].size()];
}

std::vector<double> SmChain::Ipc(const Eigen::VectorXd& gamma) const {
  std::vector<double> issued(kernels.size());
  double cycles = 0;
  for (std::size_t state = 0; state < round_cycles.size(); ++state) {
    const double probability = gamma(static_cast<Eigen::Index>(state));
    cycles += probability * round_cycles[state];
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const Idle& idle = IdleOf(state, k);
      const double ready = kernels[k].units - idle.coalesced - idle.uncoalesced;
      issued[k] +=
          probability * ready * kernels[k].warps * kernels[k].issues_per_round * kernels[k].instructions_per_issue;
    }
  }
  for (double& ipc : issued) ipc *= schedulers / cycles;
  return issued;
}

SmChain BuildChain(const SmModel& sm, std::span<const Resident> residents, const ModelOptions& options) {
  GL_CHECK(!residents.empty(), "a chain of no kernels");
  SmChain chain;
  chain.schedulers = options.virtual_sm ? sm.schedulers : 1;
  chain.kernels = MakeKernels(sm, residents, chain.schedulers, options);
  for (const SmChain::Kernel& kernel : chain.kernels) chain.states.push_back(StatesOf(kernel));

  double shortest = residents.front().kernel->refinement.dependency_cycles;
  for (const Resident& resident : residents)
    shortest = std::min(shortest, resident.kernel->refinement.dependency_cycles);
  std::vector<Moves> moves(chain.kernels.begin(), chain.kernels.end());
  std::vector<double> row{1.0}, wider, next;
  const std::size_t count = StateCount(chain.kernels);
  chain.transitions.resize(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(count));
  chain.round_cycles.resize(count);
  for (std::size_t state = 0; state < count; ++state) {
    const Demand demand = DemandIn(chain, state);
    const double cycles = std::max(shortest, demand.issues);
    chain.round_cycles[state] = cycles;
    const double contention = Contention(sm, chain, demand);
    // Lines that the SM cannot wait for yet stay in its load/store unit, and who comes behind them waits until they
    // have left.
    const double most = sm.lines_in_flight / chain.schedulers;
    const double held = most > 0 && demand.lines > most ? (1 - most / demand.lines) * contention : 0;
    const auto wake = [&](double latency) { return std::min(cycles / latency, kAlmostOne); };
    row.assign(1, 1.0);
    for (std::size_t k = 0; k < chain.kernels.size(); ++k) {
      const SmChain::Kernel& kernel = chain.kernels[k];
      next.resize(chain.states[k].size());
      const double core = held > 0 ? kernel.stall_core : 0, stalls = kernel.stall_coalesced + core;
      double latency = kernel.coalesced_latency + contention;
      if (core > 0) latency = (kernel.stall_coalesced * latency + core * held) / stalls;
      moves[k].From(chain.IdleOf(state, k), stalls, wake(latency), wake(kernel.uncoalesced_latency + contention),
                    next.data());
      wider.clear();
      for (const double before : row) {
        for (const double probability : next) wider.push_back(before * probability);
      }
      row.swap(wider);
    }
    chain.transitions.row(static_cast<Eigen::Index>(state)) =
        Eigen::Map<const Eigen::RowVectorXd>(row.data(), static_cast<Eigen::Index>(count));
  }
  return chain;
}

std::vector<double> PredictIpc(const SmModel& sm, std::span<const Resident> residents, const ModelOptions& options) {
  const SmChain chain = BuildChain(sm, residents, options);
  return chain.Ipc(StationaryDistribution(chain.transitions));
}

double PredictIpc(const SmModel& sm, const Resident& resident, const ModelOptions& options) {
  return PredictIpc(sm, std::span(&resident, 1), options).front();
}

}  // namespace gridloom::model
