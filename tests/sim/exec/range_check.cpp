#include "tests/sim/exec/range_check.h"

#include <algorithm>
#include <cstring>

#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/printer.h"
#include "sim/exec/ranges/page_recorder.h"
#include "sim/exec/ranges/reference_counts.h"

namespace gridloom::test {
namespace {

using Contents = std::vector<std::vector<std::byte>>;

Contents Save(const std::vector<RangeArray>& arrays) {
  Contents contents;
  for (const RangeArray& array : arrays) {
    const auto* data = reinterpret_cast<const std::byte*>(array.address);
    contents.emplace_back(data, data + array.bytes);
  }
  return contents;
}

void Restore(const std::vector<RangeArray>& arrays, const Contents& contents) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    std::memcpy(reinterpret_cast<void*>(arrays[i].address), contents[i].data(), contents[i].size());
}

std::string PageText(std::uint64_t cta, std::uint64_t page, std::uint32_t flags,
                     const std::vector<RangeArray>& arrays) {
  std::string where = "page " + std::to_string(page);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (page >= arrays[i].address / 4096 && page <= (arrays[i].address + arrays[i].bytes - 1) / 4096) {
      where = "page " + std::to_string(page - arrays[i].address / 4096) + " of array " + std::to_string(i);
    }
  }
  return where + " of CTA " + std::to_string(cta) + ", flags " + std::to_string(flags);
}

Result<passes::Rewritten> Rewrite(const std::string& ptx, const std::string& pipeline) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  if (sink.has_errors()) return Error{FormatDiagnostics(sink, "kernel", ptx)};
  GL_TRY(passes, passes::Pipeline::Parse(pipeline));
  return passes::Run(passes, *module);
}

}  // namespace

RangeCheck CheckRanges(Executor& executor, const std::string& ptx, const std::string& kernel,
                       const exec::LaunchParams& launch, const std::vector<RangeArray>& arrays,
                       passes::RangeForm form) {
  RangeCheck check;
  const std::string suffix = form == passes::RangeForm::kStrided ? "-strided" : "";
  auto profiled = Rewrite(ptx, "profile" + suffix);
  auto released = Rewrite(ptx, "release" + suffix);
  if (!profiled || !released) {
    check.fault = profiled ? released.error().message : profiled.error().message;
    return check;
  }
  const passes::KernelOutcome* outcome = profiled->Find(kernel);
  check.regular = outcome != nullptr && outcome->status != passes::KernelStatus::kRefused;
  if (!check.regular) {
    check.reason = outcome == nullptr ? "not found" : outcome->reason;
    return check;
  }
  const auto run = [&](const std::string& text, const std::string& name, const exec::LaunchParams& params) {
    const auto fault = executor.Launch(text, name, params);
    if (fault.kind != exec::FaultKind::kNone && check.fault.empty()) check.fault = name + ": " + fault.text;
    return fault.kind == exec::FaultKind::kNone;
  };

  const Contents before = Save(arrays);
  exec::PageRecorder recorder(4096);
  exec::LaunchParams original = launch;
  original.observer = &recorder;
  if (!run(ptx, kernel, original)) return check;
  const Contents after = Save(arrays);
  Restore(arrays, before);

  exec::ReferenceCounts counts(executor.memory(), 4096);
  exec::LaunchParams profile = launch;
  std::vector<std::byte> params(launch.params.begin(), launch.params.end());
  const auto added = std::ranges::find(profiled->added, kernel, &passes::AddedKernel::of);
  if (added == profiled->added.end()) {
    check.fault = "no profiler was added";
    return check;
  }
  const std::uint32_t block[] = {launch.block.x, launch.block.y, launch.block.z};
  for (std::size_t i = 0; i < added->hidden.size(); ++i) {
    params.resize(std::max<std::size_t>(params.size(), added->hidden[i].offset + 4));
    std::memcpy(params.data() + added->hidden[i].offset, &block[i], 4);
  }
  profile.params = params;
  profile.block = {1, 1, 1};
  profile.dynamic_shared_bytes = 0;
  profile.ranges = &counts;
  if (!run(ptx::PrintModule(*profiled->module), added->name, profile)) return check;
  const auto set = counts.SetByCta();
  check.set_calls = counts.calls();

  for (const auto& [cta, pages] : recorder.Pages()) {
    const auto reported = std::ranges::find(set, cta, &exec::CtaPages::cta);
    check.touched += pages.size();
    for (const auto& range : pages.ranges()) {
      for (std::uint64_t page = range.first; page <= range.last; ++page) {
        const bool found = reported != set.end() && (reported->pages.FlagsOf(page) & range.flags) == range.flags;
        if (!found && check.missed.empty()) check.missed = PageText(cta, page, range.flags, arrays);
      }
    }
  }
  for (const auto& [cta, pages] : set) check.reported += pages.size();

  exec::LaunchParams release = launch;
  release.ranges = &counts;
  if (!run(ptx::PrintModule(*released->module), kernel, release)) return check;
  check.same_results = Save(arrays) == after;
  for (const auto& [page, count] : counts.Counts()) {
    if (check.unbalanced.empty())
      check.unbalanced = PageText(0, page, static_cast<std::uint32_t>(count.read * 1000 + count.write), arrays);
  }
  Restore(arrays, before);
  return check;
}

}  // namespace gridloom::test
