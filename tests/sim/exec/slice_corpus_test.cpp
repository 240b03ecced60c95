// Every kernel of the committed PTX corpus that can run, whole and in slices: the same memory and the same faults. The
// kernels get made-up parameters, a buffer for every 64-bit one. CTAs run one after the other, so that kernels whose
// CTAs race give the same whole and in slices, too.
#include <catch2/catch.hpp>
#include <cstdio>

#include "rewriter/ptx/parser.h"
#include "sim/exec/slices/slices.h"
#include "tests/rewriter/ptx/corpus.h"
#include "tests/sim/exec/corpus_launch.h"

namespace gridloom::test {
namespace {

void CheckKernel(Executor& executor, exec::SlicedProgram& rewritten, const std::shared_ptr<exec::Program>& program,
                 const exec::KernelInfo& kernel, CorpusTally& tally) {
  if (!tally.IsNew(kernel)) return;
  const auto sliced = rewritten.Find(kernel.name);
  if (sliced->program == nullptr) {
    ++tally.not_rewritten;
    return;
  }
  CorpusReference reference(executor, program, kernel);
  const exec::LaunchFault& fault = reference.fault;
  if (!reference.Ran()) {
    ++tally.not_run;
    return;
  }
  if (!reference.Repeats(executor) && !reference.Faulted()) {
    ++tally.moody;
    return;
  }
  for (const std::uint64_t size : {1, 5, 64}) {
    reference.parameters.Reset();
    const exec::SlicedRun run = exec::RunInSlices(executor.engine(), reference.whole, *sliced, size);
    INFO("kernel " << kernel.name << " in slices of " << size << ", whole: " << fault.text
                   << ", sliced: " << run.fault.text);
    CHECK(run.fault.kind == fault.kind);
    CHECK(run.fault.cta.x == fault.cta.x);
    CHECK(run.fault.cta.y == fault.cta.y);
    CHECK(run.fault.cta.z == fault.cta.z);
    CHECK((run.fault.ptx_line == fault.ptx_line));
    const bool same = reference.Faulted() || reference.parameters.Memory() == reference.memory;
    CHECK(same);
  }
  ++(reference.Faulted() ? tally.faulted : tally.same);
}

}  // namespace

TEST_CASE("CorpusKernelsInSlices_SameMemoryAndFaults") {
  Executor executor(CorpusEngine());
  passes::RewriteCache rewrites(4);
  CorpusTally tally;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    DiagnosticSink sink;
    auto program = exec::Program::Load(ptx::ParseModule(file.text, sink), file.text, executor.memory());
    if (!program.ok()) continue;
    exec::SlicedProgram rewritten(*program, executor.memory(), rewrites);
    for (const exec::KernelInfo& kernel : (*program)->kernels())
      CheckKernel(executor, rewritten, *program, kernel, tally);
  }
  std::printf(
      "corpus: %u kernels the same in slices, %u fault in the same place, %u refused by the pass, %u cannot run, %u do "
      "not repeat "
      "themselves\n",
      tally.same, tally.faulted, tally.not_rewritten, tally.not_run, tally.moody);
  CHECK(tally.same > 50);
}

}  // namespace gridloom::test
