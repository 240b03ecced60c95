#include "sim/timing/kernel_table.h"

#include <algorithm>

namespace gridloom::timing {
void KernelTable::Add(const WorkResult& work, const Counters& during) {
  if (work.kind == WorkKind::kMarker) return;
  const Cycle cycles = work.ended - work.started;
  if (work.kind != WorkKind::kKernel) {
    CopyTimes& sum = copies_[work.kind];
    sum.kind = work.kind;
    ++sum.count;
    sum.bytes += work.bytes;
    sum.cycles += cycles;
    return;
  }
  auto found = kernels_.find(work.name);
  if (found == kernels_.end()) found = kernels_.emplace(work.name, KernelTimes{}).first;
  KernelTimes& sum = found->second;
  sum.name = work.name;
  ++sum.launches;
  sum.ctas += work.ctas;
  sum.warp_instructions += work.warp_instructions;
  sum.thread_instructions += work.thread_instructions;
  sum.cycles += cycles;
  sum.during += during;
}

std::vector<KernelTimes> KernelTable::Kernels() const {
  std::vector<KernelTimes> kernels;
  for (const auto& [name, sum] : kernels_) kernels.push_back(sum);
  std::ranges::stable_sort(kernels, [](const KernelTimes& a, const KernelTimes& b) { return a.cycles > b.cycles; });
  return kernels;
}

std::vector<CopyTimes> KernelTable::Copies() const {
  std::vector<CopyTimes> copies;
  for (const auto& [kind, sum] : copies_) copies.push_back(sum);
  return copies;
}

std::string_view Name(WorkKind kind) {
  constexpr std::string_view kNames[] = {"kernel", "copy to device", "copy to host", "copy on device", "fill", "marker"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace gridloom::timing
