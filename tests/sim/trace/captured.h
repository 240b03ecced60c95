// Launches whose traces are captured, and what each lane did according to them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/capture.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {

/// All CTAs of a launch, by number, each a valid trace.
struct Captured {
  trace::CodeTable table;
  std::map<std::uint64_t, trace::CtaTrace> ctas;
  std::uint64_t dropped = 0;
  std::uint64_t shared = 0;  ///< CTAs whose trace is another's, shifted
};

Captured Run(Executor& executor, const std::string& ptx, const std::string& kernel, exec::LaunchParams launch,
             std::optional<exec::CountedClocks> clocks = std::nullopt);

/// What one lane did, read from the trace.
struct LanePath {
  std::vector<unsigned> blocks;
  std::vector<std::pair<bool, std::uint64_t>> accesses;  ///< store, address
};

/// `labels`: the lines of PTX that begin blocks which are to be told, and what they are called.
std::vector<LanePath> PathsOf(const trace::KernelCode& code, const trace::CtaTrace& cta, const trace::WarpTrace& warp,
                              const std::map<std::uint32_t, unsigned>& labels);

}  // namespace gridloom::test
