// Trace files from anywhere: no crash, no unchecked index, and whatever CTA is given back is valid. trace_mutator.cpp
// makes inputs whose checksums are right.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "sim/trace/trace_file.h"

namespace {

using namespace gridloom::trace;

/// What who tracks memory relies on.
void CheckMemory(const HostAction& action) {
  const std::uint64_t most = UINT64_MAX;
  if (action.span > most - action.address || action.source_span > most - action.source) std::abort();
  const std::uint64_t pages = action.bytes / HostAction::kRankedPage + (action.bytes % HostAction::kRankedPage != 0);
  if (!action.ranks.empty() && action.ranks.size() != pages) std::abort();
  if ((!action.reuses.empty() || action.host_span != 0) && !action.over_pcie()) std::abort();
  std::uint64_t last = 0;
  for (const HostAction::Reuse& reuse : action.reuses) {
    if (reuse.work <= last || reuse.work >= action.work) std::abort();
    last = reuse.work;
  }
}

/// As `gridloom trace` and replays go through a file: by its directory, then the CTAs.
void ReadLaunch(const std::shared_ptr<TraceFile>& file, std::size_t number) {
  const TraceFile::Launch& launch = file->launches()[number];
  if (launch.info.of_program() != (launch.info.ranges == LaunchInfo::Ranges::kNone)) std::abort();
  if (launch.info.kernel >= file->kernels().size()) std::abort();
  for (const auto& [cta, place] : launch.place) {
    if (cta >= launch.info.shape.ctas || place.first >= launch.batches.size()) std::abort();
  }
  const auto source = TraceFile::Source(file, number);
  const std::vector<std::uint64_t> kept = launch.KeptCtas();
  for (const std::uint64_t cta : kept) {
    const auto loaded = source->Load(cta);
    if (loaded && !CtaChecks().Check(source->code(), source->shape(), *loaded).ok()) std::abort();
  }
  if (source->Load(kept.empty() ? 0 : kept.back() + 1).ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto file = TraceFile::FromBytes({data, data + size}, "input");
  if (!file) return 0;
  std::uint64_t last_work = 0;
  for (const HostAction& action : (*file)->actions()) {
    CheckMemory(action);
    if (action.kind == HostAction::Kind::kWait) continue;
    if (action.work <= last_work || action.group >= action.work) std::abort();
    last_work = action.work;
  }
  for (std::size_t l = 0; l < (*file)->launches().size(); ++l) ReadLaunch(*file, l);
  return 0;
}
