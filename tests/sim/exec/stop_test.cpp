// Engine::Stop: grids end wherever their warps are, and none begins any more.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

using namespace exec;

/// Each CTA counts itself in the first word, and then does `rounds` until %r1 is `end`, which it never is.
std::string EndlessKernel(const std::string& rounds) {
  return R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 end)
{
  .shared .u32 word;
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r2, [end];
  mov.u32 %r3, %tid.x;
  setp.eq.u32 %p2, %r3, 0;
  @%p2 red.global.add.u32 [%rd1], 1;
  mov.u32 %r1, 2;
LOOP:
)" + rounds +
         R"(
  setp.ne.u32 %p1, %r1, %r2;
  @%p1 bra LOOP;
  st.global.u32 [%rd1+4], %r1;
  ret;
}
)";
}

const std::string kCompute = "  mad.lo.u32 %r1, %r1, 4, 2;\n";
const std::string kPoll = "  ld.volatile.global.u32 %r1, [%rd1+4];\n";
const std::string kBarriers =
    "  bar.sync 0;\n  ld.shared.u32 %r4, [word];\n  and.b32 %r4, %r4, 2;\n  mad.lo.u32 %r1, %r1, 4, %r4;\n";

struct Case {
  const char* what;
  const std::string& rounds;
  const char* tiers;
};

TEST_CASE("Stop_EndsGridsWhereverTheyAre_AndRefusesWhatComes") {
  const Case cases[] = {{"without a wait", kCompute, "off"},
                        {"at a word", kPoll, "off"},
                        {"at barriers", kBarriers, "off"},
                        {"interpreted", kCompute, "interpret"},
                        {"interpreted at a word", kPoll, "interpret"}};
  for (const auto& [what, rounds, tiers] : cases) {
    INFO(what);
    constexpr unsigned kGrids = 3, kCtas = 2;  // more than there are processors, on small machines
    Engine::Options options;
    options.tiers = tiers;
    options.watchdog_seconds = 0;
    Executor executor(options);
    const std::string ptx = EndlessKernel(rounds);
    const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(2));
    const ParamBlock params = ParamBlock().Add(out).Add(std::uint32_t{1});
    const auto launch = [&] { return executor.Launch(ptx, "k", {kCtas, 1, 1}, {64, 1, 1}, params); };
    std::vector<LaunchFault> faults(kGrids);
    std::vector<std::thread> threads;
    const std::atomic_ref<std::uint32_t> begun(*reinterpret_cast<std::uint32_t*>(out));
    for (LaunchFault& fault : faults) {
      threads.emplace_back([&] { fault = launch(); });
      for (int ms = 0; begun == 0 && ms < 60'000; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    executor.engine().Stop();
    for (std::thread& thread : threads) thread.join();
    for (const LaunchFault& fault : faults) CHECK(fault.kind == FaultKind::kStopped);
    CHECK(begun > 0);  // what was written stays
    CHECK(launch().kind == FaultKind::kStopped);
  }
}

TEST_CASE("Stop_OfAnEngineThatRunsNothing_ReturnsAtOnce") {
  Executor executor;
  executor.engine().Stop();
  executor.engine().Stop();
  const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(2));
  CHECK(
      executor.Launch(EndlessKernel(kCompute), "k", {1, 1, 1}, {32, 1, 1}, ParamBlock().Add(out).Add(std::uint32_t{1}))
          .kind == FaultKind::kStopped);
}

}  // namespace
}  // namespace gridloom::test
