#include "sim/timing/kernel_table.h"

#include <algorithm>
#include <initializer_list>

namespace gridloom::timing {

void KernelTable::Add(const WorkResult& work, const Counters& during) {
  if (work.kind == WorkKind::kMarker) return;
  const Cycle cycles = work.ended - work.started;
  if (work.kind != WorkKind::kKernel) {
    return Add(CopyTimes{.kind = work.kind, .count = 1, .bytes = work.bytes, .cycles = cycles});
  }
  Add(KernelTimes{.name = work.name,
                  .launches = 1,
                  .ctas = work.ctas,
                  .warp_instructions = work.warp_instructions,
                  .thread_instructions = work.thread_instructions,
                  .cycles = cycles,
                  .during = during});
}

void KernelTable::Add(const KernelTimes& kernel) {
  KernelTimes& sum = kernels_[kernel.name];
  sum.name = kernel.name;
  sum.launches += kernel.launches;
  sum.ctas += kernel.ctas;
  sum.warp_instructions += kernel.warp_instructions;
  sum.thread_instructions += kernel.thread_instructions;
  sum.cycles += kernel.cycles;
  sum.during += kernel.during;
}

void KernelTable::Add(const CopyTimes& copies) {
  CopyTimes& sum = copies_[copies.kind];
  sum.kind = copies.kind;
  sum.count += copies.count;
  sum.bytes += copies.bytes;
  sum.cycles += copies.cycles;
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

void KernelTable::Put(trace::ByteWriter& out) const {
  out.Varint(kernels_.size());
  for (const auto& [name, sum] : kernels_) {
    out.Text(name);
    for (const std::uint64_t value :
         {sum.launches, sum.ctas, sum.warp_instructions, sum.thread_instructions, sum.cycles})
      out.Varint(value);
    out.Fixed(sum.during);
  }
  out.Varint(copies_.size());
  for (const auto& [kind, sum] : copies_) {
    out.Fixed(kind);
    for (const std::uint64_t value : {sum.count, sum.bytes, sum.cycles}) out.Varint(value);
  }
}

Result<KernelTable> KernelTable::Get(trace::ByteReader& in) {
  KernelTable table;
  for (std::uint64_t count = in.Count(sizeof(Counters)); count-- != 0;) {
    KernelTimes sum;
    sum.name = std::string(in.Text());
    for (std::uint64_t* value :
         {&sum.launches, &sum.ctas, &sum.warp_instructions, &sum.thread_instructions, &sum.cycles})
      *value = in.Varint();
    sum.during = in.Fixed<Counters>();
    table.Add(sum);
  }
  for (std::uint64_t count = in.Count(); count-- != 0;) {
    CopyTimes sum;
    sum.kind = in.Fixed<WorkKind>();
    for (std::uint64_t* value : {&sum.count, &sum.bytes, &sum.cycles}) *value = in.Varint();
    if (sum.kind > kLastWorkKind) in.Fail();
    table.Add(sum);
  }
  if (in.failed()) return Error{"a table of kernels that is damaged"};
  return table;
}

std::string_view Name(WorkKind kind) {
  constexpr std::string_view kNames[] = {"kernel", "copy to device", "copy to host",      "copy on device",
                                         "fill",   "marker",         "read from storage", "write to storage"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace gridloom::timing
