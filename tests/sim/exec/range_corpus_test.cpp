// Every kernel of the committed PTX corpus that can run and be profiled, as it is and with release code: the same memory and the same
// faults, no page missed, all counts back to zero.
#include <catch2/catch.hpp>
#include <cstdio>
#include <set>

#include "rewriter/ptx/parser.h"
#include "sim/exec/range_checks.h"
#include "tests/rewriter/ptx/corpus.h"
#include "tests/sim/exec/corpus_launch.h"

namespace gridloom::test {
namespace {

struct Tally {
  unsigned same = 0, faulted = 0, irregular = 0, not_run = 0, moody = 0;
  std::set<std::pair<std::string, std::size_t>> seen;  ///< kernels by name and length: the corpus has them for many targets
};

void CheckKernel(Executor& executor, exec::RangedProgram& rewritten, const std::shared_ptr<exec::Program>& program,
                 const exec::KernelInfo& kernel, Tally& tally) {
  if (!tally.seen.emplace(kernel.name, kernel.function->body->statements.size()).second) return;
  const exec::RangedKernel ranged = rewritten.Find(std::string(kernel.name));
  if (ranged.program == nullptr) {
    ++tally.irregular;
    return;
  }
  CorpusParameters parameters(executor, kernel);
  const exec::LaunchParams whole = CorpusLaunch(program, kernel, parameters);
  parameters.Reset();
  const exec::LaunchFault fault = executor.engine().Run(whole);
  const auto memory = parameters.Memory();
  if (fault.kind == exec::FaultKind::kCompile || fault.kind == exec::FaultKind::kOutOfMemory) {
    ++tally.not_run;
    return;
  }
  parameters.Reset();
  exec::RangeFindings findings;
  const exec::LaunchFault now = exec::RunWithRanges(executor.engine(), executor.memory(), whole, ranged, 4096, 1000, findings);
  INFO("kernel " << kernel.name << ", as it is: " << fault.text << ", with release code: " << now.text);
  CHECK(now.kind == fault.kind);
  if (fault.kind != exec::FaultKind::kNone) {
    ++tally.faulted;
    return;
  }
  CHECK(findings.missed == "");
  CHECK(findings.unbalanced == "");
  if (parameters.Memory() != memory) {
    parameters.Reset();
    executor.engine().Run(whole);
    CHECK(parameters.Memory() != memory);  // it reads clocks or memory that nobody wrote: it does not repeat itself either
    ++tally.moody;
    return;
  }
  ++tally.same;
}

}  // namespace

TEST_CASE("CorpusKernelsWithReleaseCode_SameMemoryAndFaults") {
  Executor executor(CorpusEngine());
  for (const passes::RangeForm form : {passes::RangeForm::kInterval, passes::RangeForm::kStrided}) {
    passes::RewriteCache rewrites(4);
    Tally tally;
    for (const auto& file : ptx::testing::LoadCorpus()) {
      INFO(file.path);
      DiagnosticSink sink;
      auto program = exec::Program::Load(ptx::ParseModule(file.text, sink), file.text, executor.memory());
      if (!program.ok()) continue;
      exec::RangedProgram rewritten(*program, executor.memory(), rewrites, form);
      for (const exec::KernelInfo& kernel : (*program)->kernels()) CheckKernel(executor, rewritten, *program, kernel, tally);
    }
    std::printf(
        "corpus, %s: %u kernels the same with release code, %u fault as without, %u irregular, %u cannot run, %u do not repeat "
        "themselves\n",
        form == passes::RangeForm::kInterval ? "intervals" : "strided", tally.same, tally.faulted, tally.irregular, tally.not_run,
        tally.moody);
    CHECK(tally.same > 30);
  }
}

}  // namespace gridloom::test
