#include "tests/sim/trace/captured.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"

namespace gridloom::test {

Captured Run(Executor& executor, const std::string& ptx, const std::string& kernel, exec::LaunchParams launch,
             std::optional<exec::CountedClocks> clocks) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  REQUIRE(!sink.has_errors());
  Captured captured{trace::BuildCodeTable(*module, *module->FindFunction(kernel)), {}};
  const trace::LaunchShape shape{.ctas = launch.grid.count(),
                                 .threads_per_cta = static_cast<std::uint32_t>(launch.block.count())};
  trace::CtaChecks checks;
  const auto take = [&](const trace::CtaRun& run) {
    run.ForEach([&](std::uint64_t cta, const trace::LoadedCta& trace) {
      CHECK(checks.Check(captured.table.code, shape, trace).ok());
      captured.shared += trace.shifts.empty() ? 0 : 1;
      CHECK(captured.ctas.emplace(cta, trace::Flatten(captured.table.code, trace)).second);
    });
  };
  trace::Capture capture(captured.table, shape, take, clocks);
  launch.records = &capture;
  const exec::LaunchFault fault = executor.Launch(ptx, kernel, launch);
  INFO(fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  captured.dropped = capture.dropped();
  CHECK(captured.ctas.size() == shape.ctas);
  const Status code = trace::ValidateCode(captured.table.code);
  CHECK(code.ok());
  for (const auto& [cta, trace] : captured.ctas) {
    const Status valid = trace::ValidateCta(captured.table.code, shape, trace);
    INFO("CTA " << cta << ": " << (valid.ok() ? "" : valid.error().message));
    CHECK(valid.ok());
  }
  return captured;
}

std::vector<LanePath> PathsOf(const trace::KernelCode& code, const trace::CtaTrace& cta, const trace::WarpTrace& warp,
                              const std::map<std::uint32_t, unsigned>& labels) {
  std::vector<LanePath> lanes(32);
  std::uint32_t next = warp.first_access;
  for (std::uint32_t v = 0; v < warp.visit_count; ++v) {
    const trace::BlockVisit& visit = cta.visits[warp.first_visit + v];
    const trace::BasicBlock& block = code.blocks[visit.block];
    const auto label = labels.find(code.instructions[block.first].line);
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((visit.mask >> lane & 1) != 0 && label != labels.end()) lanes[lane].blocks.push_back(label->second);
    }
    for (std::uint32_t i = 0; i < block.count; ++i) {
      const trace::Instruction& instruction = code.instructions[block.first + i];
      if (!instruction.has_access()) continue;
      const trace::MemoryAccess& access = cta.accesses[next++];
      CHECK((access.mask & ~visit.mask) == 0);
      std::array<std::uint64_t, 32> addresses{};
      trace::LaneAddresses(cta, access, addresses);
      for (unsigned lane = 0; lane < 32; ++lane) {
        if (access.mask >> lane & 1)
          lanes[lane].accesses.emplace_back((instruction.flags & trace::kStore) != 0, addresses[lane]);
      }
    }
  }
  CHECK(next == warp.first_access + warp.access_count);
  return lanes;
}

}  // namespace gridloom::test
