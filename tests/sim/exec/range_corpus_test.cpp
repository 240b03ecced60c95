// Every kernel of the committed PTX corpus that can run and be profiled, as it is and with release code: the same
// memory and the same faults, no page missed, all counts back to zero.
#include <catch2/catch.hpp>
#include <cstdio>

#include "rewriter/ptx/parser.h"
#include "sim/exec/ranges/range_checks.h"
#include "tests/rewriter/ptx/corpus.h"
#include "tests/sim/exec/corpus_launch.h"

namespace gridloom::test {
namespace {

void CheckKernel(Executor& executor, exec::RangedProgram& rewritten, const std::shared_ptr<exec::Program>& program,
                 const exec::KernelInfo& kernel, CorpusTally& tally) {
  if (!tally.IsNew(kernel)) return;
  const exec::RangedKernel ranged = rewritten.Find(std::string(kernel.name));
  if (ranged.program == nullptr) {
    ++tally.not_rewritten;
    return;
  }
  CorpusReference reference(executor, program, kernel);
  const exec::LaunchFault& fault = reference.fault;
  if (!reference.Ran()) {
    ++tally.not_run;
    return;
  }
  reference.parameters.Reset();
  exec::RangeFindings findings;
  const exec::LaunchFault now =
      exec::RunWithRanges(executor.engine(), executor.memory(), reference.whole, ranged, 4096, 1000, findings);
  INFO("kernel " << kernel.name << ", as it is: " << fault.text << ", with release code: " << now.text);
  CHECK(now.kind == fault.kind);
  if (reference.Faulted()) {
    ++tally.faulted;
    return;
  }
  CHECK(findings.missed == "");
  CHECK(findings.unbalanced == "");
  if (reference.parameters.Memory() != reference.memory) {
    CHECK(!reference.Repeats(executor));
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
    CorpusTally tally;
    for (const auto& file : ptx::testing::LoadCorpus()) {
      INFO(file.path);
      DiagnosticSink sink;
      auto program = exec::Program::Load(ptx::ParseModule(file.text, sink), file.text, executor.memory());
      if (!program.ok()) continue;
      exec::RangedProgram rewritten(*program, executor.memory(), rewrites, form);
      for (const exec::KernelInfo& kernel : (*program)->kernels())
        CheckKernel(executor, rewritten, *program, kernel, tally);
    }
    std::printf(
        "corpus, %s: %u kernels the same with release code, %u fault as without, %u irregular, %u cannot run, %u do "
        "not repeat "
        "themselves\n",
        form == passes::RangeForm::kInterval ? "intervals" : "strided", tally.same, tally.faulted, tally.not_rewritten,
        tally.not_run, tally.moody);
    CHECK(tally.same > 30);
  }
}

}  // namespace gridloom::test
