// Task pipelines: S. Mu, D. Li, Y. Chen, Y. Deng and Z. Wang, "Exploiting the task-pipelined parallelism of stream
// programs on many-core GPUs", IEICE Trans. Inf. & Syst. E96-D, 2013 (docs/pipelines.md).
#include "sim/study/paper/paper.h"

#include <algorithm>

#include "sim/study/pipeline/exhibits.h"

namespace gridloom::study::pipeline {
namespace {

constexpr ExhibitRow<Runs> kExhibits[] = {
    {"classes", Classes},   {"fig2", Fig2},     {"fig3", Fig3},         {"fig4", Fig4},       {"fig6", Fig6},
    {"table4", Table4},     {"fig9", Fig9},     {"fig10", Fig10},       {"fig11", Fig11},     {"fig12", Fig12},
    {"best", Best},         {"starts", Starts}, {"together", Together}, {"guarded", Guarded}, {"victims", VictimTable},
    {"readings", Readings}, {"sizes", Sizes},
};

constexpr std::string_view kLabels = "tagged-l2", kOneStream = "--serial", kOfAllocator = "allocator_keys";
/// Traces have a stream for each data set, or one for all.
constexpr Scheme kSchemes[] = {
    {.name = kSerial, .policy = "serial", .arguments = kOneStream},
    {.name = kSerialLabelled, .policy = "serial", .arguments = kOneStream, .parts = kLabels},
    {.name = kPreemptive, .policy = "leftover", .keys = "preemptive_keys"},
    {.name = kDka, .policy = "dka", .keys = kOfAllocator},
    {.name = kDkaLabelled, .policy = "dka", .parts = kLabels, .keys = kOfAllocator},
    {.name = kDkaPredicted, .policy = "dka-predicted", .keys = kOfAllocator},
    {.name = kDkaGuarded, .policy = "dka-guarded", .keys = kOfAllocator},
};

}  // namespace

extern constinit const Paper kPaper{.name = "pipeline",
                                    .version = 6,
                                    .exhibits = kExhibits,
                                    .schemes = kSchemes,
                                    .programs = "workloads",
                                    .devices = "devices",
                                    .kernels_only = true,
                                    .tried = kDkaLabelled};

Result<bool> IsLight(const Settings& settings, const std::string& workload) {
  GL_TRY(light, settings.List("light"));
  return std::ranges::find(light, workload) != light.end();
}

void Means::Add(double value, bool light) {
  sum_[light ? 0 : 1] += value;
  ++count_[light ? 0 : 1];
}

double Means::Of(bool light, bool heavy) const {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    if (i == 0 ? !light : !heavy) continue;
    sum += sum_[i];
    count += count_[i];
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace gridloom::study::pipeline
