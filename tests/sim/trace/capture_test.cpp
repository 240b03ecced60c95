// Captured traces against what a host interpreter says each thread did, and against their own code tables.
#include <catch2/catch.hpp>

#include "tests/sim/exec/random_kernel.h"
#include "tests/sim/trace/captured.h"

using namespace gridloom;
using test::Captured, test::LanePath, test::PathsOf, test::Run;

namespace {

/// Line of PTX -> number of the block whose label stands before it.
std::map<std::uint32_t, unsigned> LabelledLines(const std::string& ptx, unsigned blocks) {
  std::map<std::uint32_t, unsigned> lines;
  std::uint32_t line = 1;
  std::size_t at = 0;
  while (at < ptx.size()) {
    const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
    const std::string text = ptx.substr(at, end - at);
    for (unsigned block = 0; block < blocks; ++block) {
      if (text == "B" + std::to_string(block) + ":") lines[line + 1] = block;
    }
    at = end + 1;
    ++line;
  }
  return lines;
}

void CheckSeed(test::Executor& executor, std::uint64_t seed, std::uint32_t threads) {
  test::RandomKernelOptions options;
  options.blocks = 3 + static_cast<unsigned>(seed % 17);
  options.uniform_bias = seed % 3 != 0;
  const test::RandomKernel kernel(seed, options);
  const std::string ptx = kernel.Ptx();
  const std::uint32_t ctas = 2, parameter = static_cast<std::uint32_t>(seed * 7919 + 1);
  std::vector<std::uint32_t> input(test::RandomKernel::kInputs);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::uint32_t>(i * 2246822519u + seed);
  std::vector<std::uint32_t> out(std::size_t{threads} * ctas * test::RandomKernel::kRegisters, 5);
  const std::uint64_t d_in = executor.Upload(input), d_out = executor.Upload(out);
  test::ParamBlock block;
  block.Add(d_in).Add(d_out).Add(parameter);
  exec::LaunchParams launch;
  launch.grid = {ctas, 1, 1};
  launch.block = {threads, 1, 1};
  launch.params = block.bytes();
  INFO("seed " << seed << ", " << threads << " threads");
  const Captured captured = Run(executor, ptx, "random_kernel", launch);
  CHECK(captured.dropped == 0);
  const auto labels = LabelledLines(ptx, kernel.block_count());
  for (const auto& [cta, trace] : captured.ctas) {
    for (std::uint32_t w = 0; w < trace.warps.size(); ++w) {
      const std::vector<LanePath> lanes = PathsOf(captured.table.code, trace, trace.warps[w], labels);
      for (std::uint32_t lane = 0; lane < 32 && w * 32 + lane < threads; ++lane) {
        test::RandomKernel::Log log;
        const std::uint32_t tid = w * 32 + lane;
        kernel.Run(tid, static_cast<std::uint32_t>(cta), threads, parameter, input,
                   std::vector<std::uint32_t>(test::RandomKernel::kRegisters, 5), &log);
        const std::uint64_t mine = d_out + (cta * threads + tid) * test::RandomKernel::kRegisters * 4;
        std::vector<std::pair<bool, std::uint64_t>> accesses;
        for (const auto& access : log.accesses)
          accesses.emplace_back(access.store, (access.input ? d_in : mine) + access.offset);
        REQUIRE(lanes[lane].blocks == log.blocks);
        REQUIRE(lanes[lane].accesses == accesses);
      }
    }
  }
  executor.Free(d_in);
  executor.Free(d_out);
}

}  // namespace

TEST_CASE("Capture_RandomControlFlow_IsWhatEachThreadDid") {
  test::Executor executor;
  const std::uint32_t shapes[] = {32, 64, 45, 7, 96};
  for (std::uint64_t seed = 1; seed <= test::RandomKernels(20); ++seed) CheckSeed(executor, seed, shapes[seed % 5]);
}

TEST_CASE("Capture_CallsBarriersAndWideAccesses") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.func (.param .b32 o) twice(.param .b32 i)
{
  .reg .b32 %a;
  ld.param.b32 %a, [i];
  add.u32 %a, %a, %a;
  st.param.b32 [o], %a;
  ret;
}
.visible .entry k(.param .u64 in)
{
  .shared .align 16 .b8 tile[2048];
  .local .align 8 .b8 stack[16];
  .reg .b32 %r<10>; .reg .b64 %rd<6>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 16;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 4;
  add.u32 %r4, %r2, %r3;
  cp.async.cg.shared.global [%r4], [%rd3], 16;
  cp.async.commit_group;
  cp.async.wait_all;
  bar.sync 0;
  ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];
  st.local.u32 [stack+4], %r5;
  setp.eq.u32 %p1, %r1, 5;
  @%p1 atom.global.add.u32 %r9, [%rd1], 1;
  {
    .param .b32 x; .param .b32 y;
    st.param.b32 [x], %r6;
    call.uni (y), twice, (x);
    ld.param.b32 %r6, [y];
  }
  st.global.u32 [%rd3], %r6;
  ret;
}
)";
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(1024, 3));
  test::ParamBlock block;
  block.Add(in);
  exec::LaunchParams launch;
  launch.grid = {4, 1, 1};
  launch.block = {64, 1, 1};
  launch.params = block.bytes();
  const Captured captured = Run(executor, ptx, "k", launch);
  CHECK(captured.dropped == 0);
  const trace::KernelCode& code = captured.table.code;
  CHECK(code.register_count < 20);
  for (const auto& [cta, trace] : captured.ctas) {
    for (const trace::WarpTrace& warp : trace.warps) {
      // Kernel before the call, the function, the kernel after it.
      REQUIRE(warp.visit_count == 3);
      std::vector<trace::MemoryAccess> accesses(trace.accesses.begin() + warp.first_access,
                                                trace.accesses.begin() + warp.first_access + warp.access_count);
      REQUIRE(accesses.size() == 6);
      const bool first = &warp == &trace.warps[0];
      const std::uint64_t at = first ? 0 : 512;
      CHECK((accesses[0].base == in + at && accesses[0].stride == 16));  // cp.async: load
      CHECK((accesses[1].base == at && accesses[1].stride == 16));       // and store to shared
      CHECK((accesses[2].base == at && accesses[2].stride == 16));       // ld.shared.v4
      CHECK(accesses[3].mask == ~0u);                                    // st.local
      CHECK(accesses[4].mask == (first ? 1u << 5 : 0u));                 // atom
      CHECK((accesses[5].base == in + at && accesses[5].stride == 16));
      std::array<std::uint64_t, 32> local{};
      trace::LaneAddresses(trace, accesses[3], local);
      for (unsigned lane = 1; lane < 32; ++lane) CHECK(local[lane] - local[lane - 1] == 4);
    }
    CHECK(trace::InstructionCount(code, trace) == 2 * (18 + 4 + 3));
  }
}

// A kernel that waits until a clock says so: with counted clocks it does the same in every run, in every warp.
TEST_CASE("Capture_CountedClocks_MakeWaitingLoopsRepeatable") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<5>; .reg .b64 %rd<9>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, %clock64;
LOOP:
  mov.u64 %rd3, %clock64;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p, %rd4, 1000;
  @%p bra LOOP;
  nanosleep.u32 4000;
  mov.u64 %rd5, %globaltimer;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd6, %r4, 16;
  add.u64 %rd7, %rd1, %rd6;
  st.global.v2.u64 [%rd7], {%rd4, %rd5};
  ret;
}
)";
  constexpr std::uint32_t kCtas = 5, kThreads = 48;
  constexpr std::uint64_t kTimer = 1'000'000;
  test::Executor executor;
  const std::uint64_t out = executor.Upload(std::vector<std::uint64_t>(2 * kCtas * kThreads));
  test::ParamBlock block;
  block.Add(out);
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  const Captured captured = Run(executor, ptx, "k", launch, exec::CountedClocks{.clock_ns = 5000, .timer_ns = kTimer});
  constexpr std::uint64_t kRounds =
      (1000 + exec::CountedClocks::kCyclesPerRead - 1) / exec::CountedClocks::kCyclesPerRead;
  for (const auto& [cta, trace] : captured.ctas) {
    for (const trace::WarpTrace& warp : trace.warps) CHECK(warp.visit_count == kRounds + 2);
  }
  std::vector<std::uint64_t> times(2 * kCtas * kThreads);
  executor.Download(out, times);
  for (std::size_t i = 0; i < times.size(); i += 2) {
    CHECK(times[i] == kRounds * exec::CountedClocks::kCyclesPerRead);
    CHECK((times[i + 1] == times[1] && times[1] >= kTimer + 3999 && times[1] < kTimer + 4000 + 2 * times[0]));
  }
  executor.Free(out);
}

// A two-dimensional grid: each CTA copies a tile of a pitched image through shared memory; those of the last column add
// a column. All but a few are like another one, shifted by one distance per instruction.
TEST_CASE("Capture_LikeCtas_ShareTracesAndAreWhereTheyWere") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry tiles(.param .u64 in, .param .u64 out, .param .u32 pitch, .param .u32 last)
{
  .shared .align 4 .b8 tile[1024];
  .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [pitch];
  ld.param.u32 %r2, [last];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %tid.y;
  mov.u32 %r5, %ctaid.x;
  mov.u32 %r6, %ctaid.y;
  mad.lo.u32 %r7, %r6, 8, %r4;
  mad.lo.u32 %r8, %r5, 16, %r3;
  mad.lo.u32 %r9, %r7, %r1, %r8;
  mul.wide.u32 %rd3, %r9, 4;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.u32 %r10, [%rd4];
  mad.lo.u32 %r11, %r4, 16, %r3;
  mov.u32 %r12, tile;
  mad.lo.u32 %r13, %r11, 4, %r12;
  st.shared.u32 [%r13], %r10;
  bar.sync 0;
  ld.shared.u32 %r14, [%r13];
  mad.lo.u32 %r15, %r8, %r1, %r7;
  mul.wide.u32 %rd5, %r15, 4;
  add.u64 %rd6, %rd2, %rd5;
  st.global.u32 [%rd6], %r14;
  setp.ne.u32 %p1, %r5, %r2;
  @%p1 bra END;
  st.global.u32 [%rd6+4096], %r14;
END:
  ret;
}
)";
  constexpr std::uint32_t kColumns = 6, kRows = 7, kPitch = 112;
  test::Executor executor;
  const std::vector<std::uint32_t> image(kPitch * kPitch + 2048, 3);
  const std::uint64_t in = executor.Upload(image), out = executor.Upload(image);
  test::ParamBlock block;
  block.Add(in).Add(out).Add(kPitch).Add(kColumns - 1);
  exec::LaunchParams launch;
  launch.grid = {kColumns, kRows, 1};
  launch.block = {16, 8, 1};
  launch.params = block.bytes();
  const Captured captured = Run(executor, ptx, "tiles", launch);
  CHECK(captured.shared > kColumns * kRows / 2);
  for (const auto& [number, cta] : captured.ctas) {
    const std::uint64_t column = number % kColumns, row = number / kColumns;
    REQUIRE(cta.warps.size() == 4);
    for (std::uint64_t w = 0; w < 4; ++w) {
      const trace::WarpTrace& warp = cta.warps[w];
      REQUIRE(warp.access_count == (column + 1 == kColumns ? 5 : 4));
      for (std::uint32_t a = 0; a < warp.access_count; ++a) {
        const trace::MemoryAccess& access = cta.accesses[warp.first_access + a];
        REQUIRE(access.mask == ~0u);
        std::array<std::uint64_t, 32> addresses{};
        trace::LaneAddresses(cta, access, addresses);
        for (std::uint64_t lane = 0; lane < 32; ++lane) {
          const std::uint64_t x = column * 16 + lane % 16, y = row * 8 + w * 2 + lane / 16;
          const std::uint64_t transposed = out + (x * kPitch + y) * 4;
          const std::uint64_t expected[] = {in + (y * kPitch + x) * 4, w * 128 + lane * 4, w * 128 + lane * 4,
                                            transposed, transposed + 4096};
          REQUIRE(addresses[lane] == expected[a]);
        }
      }
    }
  }
}
