// Planning of co-schedules: pure functions (Kernelet, sections 4.2 to 4.4).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/model/kernel_profile.h"
#include "scheduler/model/sm_chain.h"

namespace gridloom::model {

/// Where the rates of kernels that share an SM come from: the Markov chain, or measurements (OPT, section 5.1).
class CoRunModel {
 public:
  virtual ~CoRunModel() = default;
  /// IPC_i: of one SM with as many thread blocks of the kernel as it holds. Above 0 where anything runs.
  virtual double Alone(const KernelProfile& kernel) const = 0;
  /// cIPC_i: of one SM that holds so many thread blocks of each all the time; nothing where that is not known.
  virtual std::optional<std::array<double, 2>> Together(const KernelProfile& a, std::uint32_t ctas_a,
                                                        const KernelProfile& b, std::uint32_t ctas_b) const = 0;
};

class MarkovModel final : public CoRunModel {
 public:
  explicit MarkovModel(const SmModel& sm, const ModelOptions& options = {}) : sm_(sm), options_(options) {}
  double Alone(const KernelProfile& kernel) const override;
  std::optional<std::array<double, 2>> Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                std::uint32_t ctas_b) const override;

 private:
  SmModel sm_;
  ModelOptions options_;
};

struct PlanOptions {
  double prune_pur = 0.4;  ///< α_p (section 4.3)
  double prune_mur = 0.1;  ///< α_m; the paper takes 0.105 on the GTX 680
  enum class Ratio : std::uint8_t { kBalanced, kBest };
  Ratio ratio = Ratio::kBalanced;  ///< least ΔT (Eq. 8), or highest CP, as OPT takes it
  double ratio_tolerance = 0;      ///< of kBest: among ratios whose CP is less by no more than this, least ΔT decides
  std::uint32_t max_ratios = 16;   ///< slice ratios tried for a pair, spread evenly; 0: all
  double least_profit = 0;         ///< a co-schedule has to have a higher CP
};

/// CP (Eq. 1): 1 - 1 / Σ cIPC_i / IPC_i, the part of the time that is saved; minus infinity where nothing runs.
double CoSchedulingProfit(std::span<const double> alone, std::span<const double> together);

/// Section 4.3: whether the two are too much alike to profit from each other. The text prunes pairs close in PUR or
/// MUR; its Table 6 has the numbers of pairs close in both, and this does as the table.
bool Prunes(const KernelProfile& a, const KernelProfile& b, double prune_pur, double prune_mur);

/// Thread blocks of each, (a, b), such that an SM has room for them and for no more of either; a's rise. Where the
/// smallest slices allow it, a slice (these blocks on every SM) of neither is smaller.
std::vector<std::array<std::uint32_t, 2>> SliceRatios(const SmModel& sm, const KernelProfile& a,
                                                      const KernelProfile& b);

struct PairPlan {
  std::array<std::uint32_t, 2> ctas_per_sm{};
  std::array<double, 2> ipc{};  ///< cIPC
  double profit = 0;            ///< CP
  double imbalance = 0;         ///< ΔT (Eq. 8), cycles
};

/// The best slice ratio of a pair as the options want it; nothing if no ratio is possible or known.
std::optional<PairPlan> PlanPair(const SmModel& sm, const CoRunModel& model, const KernelProfile& a,
                                 const KernelProfile& b, const PlanOptions& options = {});

struct CoSchedulePlan {
  std::size_t first = 0, second = 0;  ///< of the kernels asked about; first < second
  PairPlan pair;
};

/// FindCoSchedule of Algorithm 1: prunes the pairs, plans the others, takes the one with the highest CP. While all
/// pairs are pruned, the thresholds are halved (section 4.3 says "increase", which would prune more). Nothing where no
/// CP exceeds the least. `plan` gives the plan of a pair, so that the caller can remember it.
std::optional<CoSchedulePlan> FindCoSchedule(
    std::span<const KernelProfile* const> kernels,
    const std::function<std::optional<PairPlan>(std::size_t first, std::size_t second)>& plan,
    const PlanOptions& options = {});
std::optional<CoSchedulePlan> FindCoSchedule(const SmModel& sm, const CoRunModel& model,
                                             std::span<const KernelProfile* const> kernels,
                                             const PlanOptions& options = {});

}  // namespace gridloom::model
