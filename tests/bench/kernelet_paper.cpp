// kernelet_paper: Kernelet's Table 4 through our model of co-schedules (docs/kernelet.md, "Against the paper's own
// numbers"). The paper prints PUR, MUR and occupancy of its kernels, not R_m. For each kernel on the C2050 this prints
// the R_m that follows from MUR/PUR if every access reached DRAM, what the model makes of it, and the R_m with which
// the model gives the paper's PUR; with the latter, which pairs Kernelet takes and what it expects of them.
#include <cstdio>
#include <vector>

#include "scheduler/model/plan.h"
#include "tests/scheduler/model/paper_tables.h"

namespace {

using namespace gridloom;
using model::KernelProfile;

/// Table 2, in cycles of the core clock, in which an SM issues one instruction.
model::SmModel C2050() {
  constexpr double kBytesPerCycle = 144e9 / 1147e6;
  return {.sms = 14,
          .schedulers = 1,
          .peak_ipc = 1,
          .empty = {.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152},
          .request_bytes = 64,
          .latency_cycles = 600,  // CUDA C Programming Guide of 2012: 400 to 800
          .requests_per_cycle = kBytesPerCycle / 64 / 14};
}

/// Warps of a thread block (Table 3).
constexpr std::uint32_t kWarps[] = {8, 1, 8, 4, 8, 8, 4, 4};

KernelProfile ProfileOf(std::size_t i, const model::SmModel& sm) {
  const model::PaperKernel& paper = model::kPaperKernels[i];
  KernelProfile profile;
  profile.kernel = paper.name;
  profile.max_resident_ctas = static_cast<std::uint32_t>(paper.c2050_occupancy * 48 / kWarps[i] + 0.5);
  // Registers stand for whatever limits the occupancy.
  profile.needs = {.warps = kWarps[i], .registers = sm.empty.free_registers / profile.max_resident_ctas};
  profile.instructions_per_cta = 1000.0 * kWarps[i];
  profile.pur = profile.ipc = paper.c2050_pur;
  profile.mur = paper.c2050_mur;
  // The paper has uncoalesced accesses in PC and SPMV only (section 5.3).
  profile.uncoalesced_share = paper.name == "PC" ? 1 : paper.name == "SPMV" ? 0.33 : 0;
  profile.coalesced_requests = 2;
  profile.uncoalesced_requests = 32;
  return profile;
}

double Alone(const model::SmModel& sm, KernelProfile profile, double memory_ratio) {
  profile.memory_ratio = memory_ratio;
  return PredictIpc(sm, {&profile, profile.max_resident_ctas});
}

double RatioFor(const model::SmModel& sm, const KernelProfile& profile, double ipc) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (Alone(sm, profile, middle) > ipc ? low : high) = middle;
  }
  return low;
}

}  // namespace

int main() {
  const model::SmModel sm = C2050();
  std::vector<KernelProfile> profiles;
  std::printf("| kernel | PUR | MUR | R_m by MUR | IPC of the model | R_m for the PUR |\n|---|--:|--:|--:|--:|--:|\n");
  for (std::size_t i = 0; i < model::kPaperKernels.size(); ++i) {
    KernelProfile profile = ProfileOf(i, sm);
    const double requests = profile.uncoalesced_share * profile.uncoalesced_requests +
                            (1 - profile.uncoalesced_share) * profile.coalesced_requests;
    const double by_mur = std::min(1.0, profile.mur * sm.requests_per_cycle / profile.pur / requests);
    profile.memory_ratio = RatioFor(sm, profile, profile.pur);
    std::printf("| %s | %.4f | %.4f | %.4f | %.3f | %.4f |\n", profile.kernel.c_str(), profile.pur, profile.mur, by_mur,
                Alone(sm, profile, by_mur), profile.memory_ratio);
    profiles.push_back(profile);
  }
  const struct {
    const char* name;
    std::vector<std::size_t> kernels;
  } mixes[] = {
      {"CI", {6, 4, 7, 5}}, {"MI", {0, 2, 3, 1}}, {"MIX", {0, 6, 7, 1}}, {"ALL", {0, 1, 2, 3, 4, 5, 6, 7}}};  // Table 5
  const model::MarkovModel markov(sm);
  std::printf("\n| mix | pair | thread blocks per SM | CP |\n|---|---|---|--:|\n");
  for (const auto& mix : mixes) {
    std::vector<const KernelProfile*> kernels;
    for (const std::size_t i : mix.kernels) kernels.push_back(&profiles[i]);
    const auto found = FindCoSchedule(sm, markov, kernels);
    if (!found) std::printf("| %s | none pays | | |\n", mix.name);
    else
      std::printf("| %s | %s + %s | %u + %u | %.1f %% |\n", mix.name, kernels[found->first]->kernel.c_str(),
                  kernels[found->second]->kernel.c_str(), found->pair.ctas_per_sm[0], found->pair.ctas_per_sm[1],
                  100 * found->pair.profit);
  }
  return 0;
}
