// The Markov chain of one multiprocessor on which thread blocks of one or more kernels run (Kernelet, section 4.4).
//
// A warp is ready, or it is idle: stalled by a coalesced or by an uncoalesced memory access. The state of the chain
// says how many warps of each kernel are idle. A step is a round, in which each ready warp issues once:
//
//   R       = max(1, ready warps)                                cycles of the round
//   P(r→i)  = R_m, split by the share of uncoalesced accesses
//   P(i→r)  = R / L, at most 1
//   L       = L_0 + b_0 + a_0 · outstanding requests / B + (requests of the access - 1) · request interval
//
// Warps of all kernels move independently in a round, so a row of the transition matrix is a product of sums of
// independent choices (Eq. 2, and "Heterogeneous Workloads"). With the steady state γ (Eq. 3), the IPC of a kernel is
// the mean of what its warps issue in a round over the mean duration of a round (Eq. 4 to 6).
//
// Warps are taken together in units that stall and wake up as one: by default thread blocks, as in the paper. An SM
// with several warp schedulers is several virtual SMs with one each; every unit has its share of warps on each of them.
// docs/kernelet.md says where this reads the paper in one of several ways, and what the refinements of a profile do:
// where it is known what accesses wait for (SmModel::first_memory_resource), the last term but one of L is the queue at
// the busiest of these resources, and where it is known how many lines an SM can wait for, those beyond hold up all
// memory instructions behind them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/model/kernel_profile.h"
#include "scheduler/model/stationary.h"

namespace gridloom::model {

struct ModelOptions {
  enum class Granularity : std::uint8_t { kCta, kWarp };
  Granularity granularity = Granularity::kCta;
  /// Units are taken together until the chain has no more states; at least one per kernel remains. Time grows with the
  /// cube.
  std::uint32_t max_states = 90;
  bool uncoalesced = true;  ///< false: every access counts as coalesced (Fig. 10)
  bool virtual_sm = true;   ///< false: one warp scheduler serves the whole SM (Fig. 11)
};

/// Thread blocks of a kernel that an SM holds all the time.
struct Resident {
  const KernelProfile* kernel = nullptr;
  std::uint32_t ctas = 0;  ///< ≥ 1
};

/// IPC_K of each kernel on one SM, in the order given; of at least one kernel. Profiles and SM must be valid.
/// Thread-safe.
std::vector<double> PredictIpc(const SmModel& sm, std::span<const Resident> residents,
                               const ModelOptions& options = {});

/// One kernel alone (Eq. 4).
double PredictIpc(const SmModel& sm, const Resident& resident, const ModelOptions& options = {});

/// The chain itself, for tests and figures.
struct SmChain {
  /// Cycles of what accesses wait for, by resource (SmModel::first_memory_resource).
  using Work = std::array<double, 8>;
  struct Kernel {
    std::uint32_t units = 0;
    double warps = 0;  ///< of a unit, on the virtual SM
    /// Issues of a ready warp; below 1 if its instructions depend on each other more than the others' do.
    double issues_per_round = 1;
    double instructions_per_issue = 1;
    double stall_coalesced = 0, stall_uncoalesced = 0;        ///< P(r→i)
    double coalesced_requests = 0, uncoalesced_requests = 0;  ///< outstanding of an idle warp
    double coalesced_latency = 0, uncoalesced_latency = 0;    ///< without contention
    double coalesced_lines = 0, uncoalesced_lines = 0;        ///< outstanding of an idle warp
    Work coalesced_work{}, uncoalesced_work{};                ///< outstanding of an idle warp
    /// P(r→i), by an access that stays in the core, while the load/store unit is held; idle as if coalesced.
    double stall_core = 0;
  };
  struct Idle {  ///< units of one kernel
    std::uint32_t coalesced = 0, uncoalesced = 0;
  };
  std::vector<Kernel> kernels;
  /// By kernel; a state of the chain is one of each, the last kernel's counts fastest.
  std::vector<std::vector<Idle>> states;
  std::vector<double> round_cycles;  ///< R, by state of the chain
  TransitionMatrix transitions;
  double schedulers = 1;  ///< virtual SMs in an SM

  /// Units of kernel `k` that are idle in state `state` of the chain.
  const Idle& IdleOf(std::size_t state, std::size_t k) const;
  /// Eq. 4 to 6, of the whole SM.
  std::vector<double> Ipc(const Eigen::VectorXd& gamma) const;
};

SmChain BuildChain(const SmModel& sm, std::span<const Resident> residents, const ModelOptions& options = {});

}  // namespace gridloom::model
