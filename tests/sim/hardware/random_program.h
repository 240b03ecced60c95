// Random programs of dependent works for the proposed hardware that follows memory: kernels with the ranges of their
// CTAs, copies, fills, storage, markers, in several streams.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {

/// Works as an engine gets them; their numbers are their places.
struct Program {
  using Work = std::variant<KernelWork, CopyWork, MarkerWork>;
  std::vector<Work> works;
  /// A work that fills all of the host's memory that an earlier one uses: it ends behind that.
  std::vector<std::pair<WorkId, WorkId>> refills;

  WorkId Add(Work work) {
    works.push_back(std::move(work));
    return static_cast<WorkId>(works.size() - 1);
  }
};

/// Bytes that a CTA touches: pieces of `bytes` at equal distances.
struct TouchedRange {
  std::uint64_t first = 0, bytes = 0, distance = 0, pieces = 1;
  std::uint8_t flags = 0;  ///< trace::RangeFlag
};
/// By CTA.
using Touched = std::vector<std::vector<TouchedRange>>;

/// The profiler that says so, and a kernel of such CTAs with release code: each warp makes `visits` accesses in the
/// ranges of its CTA, chosen by `seed`.
std::shared_ptr<trace::CtaSource> ProfilerOf(const Touched& touched);
std::shared_ptr<trace::CtaSource> ReleasingOf(const Touched& touched, const trace::LaunchShape& shape,
                                              std::uint32_t visits, std::uint64_t seed,
                                              const std::string& name = "kernel");

/// Adds both, the profiler in a stream of its own. Returns the kernel.
WorkId AddTracked(Program& program, WorkOrder order, const Touched& touched, const trace::LaunchShape& shape,
                  std::uint32_t visits, std::uint64_t seed, const std::string& name = "kernel");

Program RandomProgram(std::mt19937_64& random);

/// The keys of the part at random, and storage and links of a device on which programs take not too long.
std::string RandomCrcsKeys(std::mt19937_64& random);

struct ProgramRun {
  Status status;
  Outcome outcome;
  sim::DeviceSpec device;
  /// Of a part.
  std::uint64_t Count(std::string_view counter) const;
};
/// On a device with its proposed parts, and those of `options`.
ProgramRun RunProgram(const sim::DeviceSpec& device, const Program& program, const RunOptions& options = {});

}  // namespace gridloom::timing
