// What must hold of a trace with ranges, for any program. usage: range_trace TRACE [WITHOUT]
//
// Each launch of the program's has complete ranges in every form that the trace has any in, or says why not. What a CTA
// of the profiler sets is what the CTA of that number releases; and what the CTA of the program's own launch touches in
// global memory lies in it, for that use. WITHOUT: where the same trace goes, without ranges.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/trace/range_forms.h"
#include "sim/trace/trace_file.h"

using namespace gridloom;
using namespace gridloom::trace;

namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "range_trace: %s\n", what.c_str());
  std::exit(1);
}

using FilePtr = std::shared_ptr<TraceFile>;

/// What was traced for one work.
struct Work {
  std::size_t kernel = ~std::size_t{0};
  std::map<LaunchInfo::Ranges, std::size_t> profilers, releasing;
};

struct Said {
  std::uint8_t flags = 0;
  std::array<std::uint64_t, 4> data{};
  auto operator<=>(const Said&) const = default;
  bool Has(std::uint64_t address, std::uint8_t use) const {
    const auto [base, width, stride, count] = data;
    if ((flags & use) != use || address < base) return false;
    const std::uint64_t distance = address - base, piece = stride == 0 ? 0 : std::min(distance / stride, count - 1);
    return distance - piece * stride < width;
  }
};

Result<CtaTrace> LoadFlat(CtaSource& source, std::uint64_t cta) {
  GL_TRY(loaded, source.Load(cta));
  return Flatten(source.code(), loaded);
}

std::vector<Said> SaidBy(const CtaTrace& cta, EventKind kind) {
  std::vector<Said> said;
  for (const CtaEvent& event : cta.events) {
    if (event.kind == kind) said.push_back({event.flags, event.data});
  }
  std::ranges::sort(said);
  return said;
}

void CheckAccess(const CtaTrace& cta, const MemoryAccess& access, const Instruction& instruction,
                 const std::vector<Said>& said, const std::string& where) {
  if (access.mask == 0 || WindowOf(instruction.space, instruction.flags, cta, access).space != Space::kGlobal) return;
  const std::uint8_t use = (instruction.flags & kAtomic) != 0  ? kRangeRead | kRangeWrite
                           : (instruction.flags & kStore) != 0 ? kRangeWrite
                                                               : kRangeRead;
  std::array<std::uint64_t, kWarpSize> addresses{};
  LaneAddresses(cta, access, addresses);
  for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t first = addresses[static_cast<std::size_t>(std::countr_zero(lanes))];
    for (const std::uint64_t address : {first, first + instruction.width - 1}) {
      for (std::uint8_t bit : {kRangeRead, kRangeWrite}) {
        if ((use & bit) != 0 && !std::ranges::any_of(said, [&](const Said& one) { return one.Has(address, bit); }))
          Fail(where + " touches " + std::to_string(address) + " in PTX line " + std::to_string(instruction.line) +
               ", which it had not set for that use");
      }
    }
  }
}

void CheckAccesses(const KernelCode& code, const CtaTrace& cta, const std::vector<Said>& said,
                   const std::string& where) {
  for (const WarpTrace& warp : cta.warps) {
    std::size_t access = warp.first_access;
    for (std::uint32_t v = warp.first_visit; v < warp.first_visit + warp.visit_count; ++v) {
      const BasicBlock& block = code.blocks[cta.visits[v].block];
      for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
        if (code.instructions[i].has_access())
          CheckAccess(cta, cta.accesses[access++], code.instructions[i], said, where);
      }
    }
  }
}

/// One launch in one form. How many ranges its CTAs have set.
std::uint64_t CheckForm(const FilePtr& file, const Work& work, LaunchInfo::Ranges form) {
  const auto kernel = TraceFile::Source(file, work.kernel), profiler = TraceFile::Source(file, work.profilers.at(form));
  const auto releasing = TraceFile::Source(file, work.releasing.at(form));
  std::uint64_t ranges = 0;
  for (std::uint64_t cta = 0; cta < kernel->shape().ctas; ++cta) {
    const std::string where = kernel->code().name + ", " + std::string(NameOf(form)) + ", CTA " + std::to_string(cta);
    const auto own = LoadFlat(*kernel, cta), profiled = LoadFlat(*profiler, cta), released = LoadFlat(*releasing, cta);
    if (!own.ok() || !profiled.ok() || !released.ok()) Fail(where + " is not there");
    const std::vector<Said> set = SaidBy(*profiled, EventKind::kSetRange);
    if (set != SaidBy(*released, EventKind::kReleaseRange)) Fail(where + " does not release what it had set");
    if (!SaidBy(*own, EventKind::kSetRange).empty() || !SaidBy(*own, EventKind::kReleaseRange).empty())
      Fail(where + " has ranges itself");
    CheckAccesses(kernel->code(), *own, set, where);
    ranges += set.size();
  }
  return ranges;
}

std::map<std::uint64_t, Work> WorksOf(const TraceFile& file) {
  std::map<std::uint64_t, Work> works;
  for (std::size_t i = 0; i < file.launches().size(); ++i) {
    const TraceFile::Launch& launch = file.launches()[i];
    if (!launch.complete) continue;
    Work& work = works[launch.info.work];
    switch (launch.info.role) {
      case LaunchInfo::Role::kKernel: work.kernel = i; break;
      case LaunchInfo::Role::kProfiler: work.profilers[launch.info.ranges] = i; break;
      case LaunchInfo::Role::kReleasing: work.releasing[launch.info.ranges] = i; break;
    }
  }
  return works;
}

void WriteWithout(const FilePtr& file, const std::string& path) {
  auto writer = TraceWriter::Create(path, file->info());
  if (!writer) Fail(writer.error().message);
  for (const KernelCode& code : file->kernels()) (*writer)->AddKernel(code);
  for (const HostAction& action : file->actions()) (*writer)->Add(action);
  for (std::size_t i = 0; i < file->launches().size(); ++i) {
    const TraceFile::Launch& launch = file->launches()[i];
    if (!launch.info.of_program() || !launch.complete) continue;
    const auto source = TraceFile::Source(file, i);
    auto written = (*writer)->BeginLaunch(launch.info, source->code());
    for (const std::uint64_t cta : launch.KeptCtas()) {
      auto loaded = source->Load(cta);
      if (!loaded) Fail(loaded.error().message);
      written->Add(cta, *loaded);
    }
    written->End(launch.left_out);
  }
  if (const Status status = (*writer)->Close(); !status) Fail(status.error().message);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) Fail("usage: range_trace TRACE [WITHOUT]");
  auto opened = TraceFile::Open(arguments[1]);
  if (!opened) Fail(opened.error().message);
  const FilePtr file = *opened;
  if (!file->problem().empty()) Fail(file->problem());
  std::uint64_t launches = 0, with = 0, ranges = 0;
  const std::map<std::uint64_t, Work> works = WorksOf(*file);
  std::set<LaunchInfo::Ranges> forms;
  for (const auto& [number, work] : works) {
    for (const auto& [form, launch] : work.profilers) forms.insert(form);
  }
  for (const auto& [number, work] : works) {
    if (work.kernel >= file->launches().size()) continue;  // it ended in a fault
    ++launches;
    const LaunchInfo& info = file->launches()[work.kernel].info;
    if (!info.no_ranges.empty()) continue;
    ++with;
    if (forms.empty()) Fail("work " + std::to_string(number) + " has no ranges, and does not say why");
    for (const auto form : forms) {
      if (!work.profilers.contains(form) || !work.releasing.contains(form))
        Fail("work " + std::to_string(number) + " has no " + std::string(NameOf(form)) +
             " ranges, and does not say why");
      ranges += CheckForm(file, work, form);
    }
  }
  if (count > 2) WriteWithout(file, arguments[2]);
  std::printf("%llu of %llu launches with ranges, %llu set\n", static_cast<unsigned long long>(with),
              static_cast<unsigned long long>(launches), static_cast<unsigned long long>(ranges));
  return 0;
}
