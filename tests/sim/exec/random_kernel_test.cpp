// Random control flow through the whole executor against the same program run thread by thread on the host.
#include "tests/sim/exec/random_kernel.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "rewriter/ptx/parser.h"
#include "sim/exec/engine.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

void CheckSeed(Executor& executor, std::uint64_t seed, std::uint32_t threads, std::uint32_t ctas) {
  RandomKernelOptions options;
  options.blocks = 3 + static_cast<unsigned>(seed % 23);
  options.uniform_bias = seed % 3 != 0;
  const RandomKernel kernel(seed, options);
  const std::string ptx = kernel.Ptx();
  std::vector<std::uint32_t> input(RandomKernel::kInputs), out(std::size_t{threads} * ctas * RandomKernel::kRegisters);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::uint32_t>(i * 2246822519u + seed);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint32_t>(i * 40503u);
  const std::vector<std::uint32_t> before = out;
  const std::uint32_t parameter = static_cast<std::uint32_t>(seed * 7919 + 1);
  const auto d_in = executor.Upload(input);
  const auto d_out = executor.Upload(out);
  ParamBlock params;
  params.Add(d_in).Add(d_out).Add(parameter);
  const exec::LaunchFault fault = executor.Launch(ptx, "random_kernel", {ctas, 1, 1}, {threads, 1, 1}, params);
  INFO("seed " << seed << " threads " << threads << " fault: " << fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  executor.Download(d_out, out);
  executor.Free(d_in);
  executor.Free(d_out);
  for (std::uint32_t cta = 0; cta < ctas; ++cta) {
    for (std::uint32_t tid = 0; tid < threads; ++tid) {
      const std::size_t base = (std::size_t{cta} * threads + tid) * RandomKernel::kRegisters;
      const std::vector<std::uint32_t> mine(before.begin() + base, before.begin() + base + RandomKernel::kRegisters);
      const auto want = kernel.Run(tid, cta, threads, parameter, input, mine);
      const std::vector<std::uint32_t> got(out.begin() + base, out.begin() + base + RandomKernel::kRegisters);
      if (got != want) {
        INFO("cta " << cta << " thread " << tid << "\n" << ptx);
        REQUIRE(got == want);
      }
    }
  }
}

}  // namespace

TEST_CASE("RandomControlFlow_EveryThread_EqualsHost") {
  Executor executor;
  for (std::uint64_t seed = 1; seed <= RandomKernels(25); ++seed) {  // of all numbers of blocks
    const std::uint32_t shapes[] = {32, 64, 45, 7, 96};
    CheckSeed(executor, seed, shapes[seed % 5], 3);
  }
}

TEST_CASE("RandomControlFlow_ManyBlocks_EqualsHost") {
  Executor executor;
  for (std::uint64_t seed = 1000; seed < 1000 + RandomKernels(2); ++seed) {
    RandomKernelOptions options;
    options.blocks = 150;
    CheckSeed(executor, seed, 64, 2);
  }
}

}  // namespace gridloom::test
