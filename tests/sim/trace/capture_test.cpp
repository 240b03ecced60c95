// Captured traces against what a host interpreter says each thread did, and against their own code tables.
#include "sim/trace/capture.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>

#include "rewriter/ptx/parser.h"
#include "sim/exec/runtime/record_patterns.h"
#include "sim/exec/texture.h"
#include "tests/sim/exec/executor_fixture.h"
#include "tests/sim/exec/random_kernel.h"

using namespace gridloom;
using trace::CtaTrace;

namespace {

struct Captured {
  trace::CodeTable table;
  std::map<std::uint64_t, CtaTrace> ctas;
  std::uint64_t dropped = 0;
  std::uint64_t shared = 0;  ///< CTAs whose trace is another's, shifted
};

Captured Run(test::Executor& executor, const std::string& ptx, const std::string& kernel, exec::LaunchParams launch,
             std::optional<exec::CountedClocks> clocks = std::nullopt) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  REQUIRE(!sink.has_errors());
  Captured captured{trace::BuildCodeTable(*module, *module->FindFunction(kernel)), {}};
  const trace::LaunchShape shape{.ctas = launch.grid.count(), .threads_per_cta = static_cast<std::uint32_t>(launch.block.count())};
  const auto take = [&](std::uint64_t cta, const trace::LoadedCta& trace) {
    CHECK(trace::ValidateShifts(captured.table.code, trace.shifts).ok());
    captured.shared += trace.shifts.empty() ? 0 : 1;
    CHECK(captured.ctas.emplace(cta, trace::Flatten(captured.table.code, trace)).second);
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

/// What one lane did, read from the trace.
struct LanePath {
  std::vector<unsigned> blocks;
  std::vector<std::pair<bool, std::uint64_t>> accesses;  ///< store, address
};

std::vector<LanePath> PathsOf(const trace::KernelCode& code, const CtaTrace& cta, const trace::WarpTrace& warp,
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
        if (access.mask >> lane & 1) lanes[lane].accesses.emplace_back((instruction.flags & trace::kStore) != 0, addresses[lane]);
      }
    }
  }
  CHECK(next == warp.first_access + warp.access_count);
  return lanes;
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
        for (const auto& access : log.accesses) accesses.emplace_back(access.store, (access.input ? d_in : mine) + access.offset);
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
  for (std::uint64_t seed = 1; seed <= 40; ++seed) CheckSeed(executor, seed, shapes[seed % 5]);
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
  constexpr std::uint64_t kRounds = (1000 + exec::CountedClocks::kCyclesPerRead - 1) / exec::CountedClocks::kCyclesPerRead;
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

// A two-dimensional grid: each CTA copies a tile of a pitched image through shared memory; those of the last column add a column.
// All but a few are like another one, shifted by one distance per instruction.
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
          const std::uint64_t expected[] = {in + (y * kPitch + x) * 4, w * 128 + lane * 4, w * 128 + lane * 4, transposed,
                                            transposed + 4096};
          REQUIRE(addresses[lane] == expected[a]);
        }
      }
    }
  }
}

// Generic addresses in shared, local and global memory by one device function; local memory of each warp is its own.
TEST_CASE("Capture_GenericAccesses_GoWhereTheyPoint") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in)
{
  .shared .align 4 .b8 tile[256];
  .local .align 4 .b8 stack[8];
  .reg .b32 %r<10>; .reg .b64 %rd<9>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  mov.u64 %rd3, tile;
  cvta.shared.u64 %rd4, %rd3;
  add.u64 %rd4, %rd4, %rd2;
  st.u32 [%rd4], %r1;
  mov.u64 %rd5, stack;
  cvta.local.u64 %rd6, %rd5;
  st.u32 [%rd6+4], %r1;
  add.u64 %rd7, %rd1, %rd2;
  ld.u32 %r2, [%rd7];
  st.local.u32 [%rd5+4], %r2;
  setp.lt.u32 %p1, %r1, 40;
  selp.b64 %rd8, %rd4, %rd7, %p1;
  ld.u32 %r3, [%rd8];
  ret;
}
)";
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(1024, 3));
  exec::LaunchParams launch;
  launch.grid = {3, 1, 1};
  launch.block = {64, 1, 1};
  const test::ParamBlock block = test::ParamBlock().Add(in);
  launch.params = block.bytes();
  const Captured captured = Run(executor, ptx, "k", launch);
  using enum trace::Space;
  std::map<std::uint64_t, unsigned> local;  // address -> how often it is written
  for (const auto& [number, cta] : captured.ctas) {
    std::uint64_t w = 0;
    for (const trace::WarpTrace& warp : cta.warps) {
      REQUIRE(warp.access_count == 5);
      // The last one's second warp has lanes in shared and lanes in global memory: global.
      const trace::Space expected[] = {kShared, kLocal, kGlobal, kLocal, w == 0 ? kShared : kGlobal};
      for (std::uint32_t a = 0; a < 5; ++a) {
        const trace::MemoryAccess& access = cta.accesses[warp.first_access + a];
        const bool generic = a != 3;
        const trace::AccessWindow window = trace::WindowOf(generic ? kGlobal : kLocal, generic ? trace::kGeneric : 0, cta, access);
        CHECK(window.space == expected[a]);
        std::array<std::uint64_t, 32> addresses{};
        trace::LaneAddresses(cta, access, addresses);
        for (std::uint64_t lane = 0; lane < 32; ++lane) {
          const std::uint64_t offset = addresses[lane] - window.added, own = (w * 32 + lane) * 4;
          if (expected[a] == kShared) CHECK(offset == own);
          if (a == 2) CHECK(offset == in + own);
          if (expected[a] == kLocal) ++local[offset];
        }
      }
      ++w;
    }
  }
  // 3 CTAs of 64 threads, each of which writes its word twice.
  CHECK(local.size() == 192);
  for (const auto& [address, count] : local) CHECK(count == 2);
}

TEST_CASE("Capture_TexturesAndSurfaces_HaveAddresses") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 texture, .param .u64 surface)
{
  .reg .b32 %r<10>; .reg .b64 %rd<4>; .reg .f32 %f<8>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [texture];
  ld.param.u64 %rd2, [surface];
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  mov.f32 %f2, 0f40000000;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, 1;
  suld.b.2d.b32.zero {%r4}, [%rd2, {%r2, %r3}];
  setp.lt.u32 %p1, %r1, 7;
  @%p1 sust.b.2d.b32.zero [%rd2, {%r2, %r3}], {%r4};
  ret;
}
)";
  test::Executor executor;
  constexpr std::uint32_t kPitch = 256;
  exec::ImageResource image;
  image.kind = exec::ImageResource::Kind::kPitch2D;
  image.levels[0] = {.base = executor.Upload(std::vector<float>(4 * kPitch / 4)), .width = 32, .height = 4, .row_bytes = kPitch};
  exec::TextureObject texture;
  texture.image = image;
  const std::uint64_t texture_handle = exec::ImageTable::Get().Add(texture);
  const std::uint64_t surface_handle = exec::ImageTable::Get().Add(exec::SurfaceObject{image});
  exec::LaunchParams launch;
  launch.block = {32, 1, 1};
  const test::ParamBlock block = test::ParamBlock().Add(texture_handle).Add(surface_handle);
  launch.params = block.bytes();
  const Captured captured = Run(executor, ptx, "k", launch);
  const CtaTrace& cta = captured.ctas.at(0);
  REQUIRE(cta.accesses.size() == 3);
  const std::uint64_t base = image.levels[0].base;
  CHECK((cta.accesses[0].mask == ~0u && cta.accesses[0].base == base + 2 * kPitch && cta.accesses[0].stride == 4));
  CHECK((cta.accesses[1].mask == ~0u && cta.accesses[1].base == base + kPitch && cta.accesses[1].stride == 4));
  CHECK((cta.accesses[2].mask == 127 && cta.accesses[2].base == base + kPitch && cta.accesses[2].stride == 4));
  std::vector<trace::Space> spaces;
  for (const trace::Instruction& instruction : captured.table.code.instructions) {
    if (instruction.has_access()) spaces.push_back(instruction.space);
  }
  CHECK(spaces == std::vector{trace::Space::kTexture, trace::Space::kGlobal, trace::Space::kGlobal});
  exec::ImageTable::Get().RemoveTexture(texture_handle);
  exec::ImageTable::Get().RemoveSurface(surface_handle);
}

TEST_CASE("RecordPatterns_LanesThatLieAlike_BecomeShortRecords") {
  using exec::RecordHeader, exec::RecordKind;
  exec::RecordPatterns patterns;
  patterns.Reset();
  // The group of one access, and its record: of all lanes, two words less than here.
  const struct {
    exec::RecordGroup group;
    exec::RecordAccess access;
    exec::RecordSlot slot;
  } code{.group = {.access_count = 1, .slot_count = 1},
         .access = {.header = RecordHeader{.kind = RecordKind::kLanes, .bytes = 4, .instruction = 7}.Pack()},
         .slot = {.form = exec::RecordSlot::kFound}};
  std::array<std::uint64_t, 1 + exec::RecordSlot::kMaxWords> record{reinterpret_cast<std::uint64_t>(&code)};
  std::uint64_t* const slot = record.data() + 1;
  // Two rows of 16 words, so far apart; lanes that are off hold 0.
  const auto write = [&](std::uint64_t base, std::uint64_t pitch, std::uint32_t mask) {
    slot[0] = 0;
    for (std::uint64_t lane = 0; lane < 32; ++lane) slot[1 + lane] = mask >> lane & 1 ? base + lane % 16 * 4 + lane / 16 * pitch : 0;
  };
  const auto learn = [&](exec::RecordSite& site, std::uint32_t mask) { return patterns.Learn(site, mask, slot) - slot; };
  exec::RecordSite &site = patterns.sites()[7], &other = patterns.sites()[8];
  const std::int64_t* const nothing = site.pattern;
  write(5000, 640, 0x00ff00f0u);  // nothing is known yet, and lanes that are off cannot tell
  CHECK((learn(site, 0x00ff00f0u) == exec::RecordSlot::kMaxWords && site.pattern == nothing));
  write(1000, 640, ~0u);
  REQUIRE(learn(site, ~0u) == 2);
  exec::RecordReader reader(std::span<const std::uint64_t>(record.data(), 3));
  REQUIRE(reader.Next());
  CHECK((reader.header().kind == RecordKind::kPattern && reader.header().mask == ~0u && reader.header().instruction == 7));
  CHECK((reader.pattern() == site.pattern && reader.addresses()[17] == 1000 + 4 + 640));
  CHECK((!reader.in_group() && !reader.Next()));
  // Another site, other lanes, the same pattern.
  write(9000, 640, 0x00ff00f0u);
  REQUIRE(learn(other, 0x00ff00f0u) == 2);
  CHECK((other.pattern == site.pattern && slot[1] == 9000));
  // Lanes that lie in another way each time are given up.
  std::uint64_t pitch = 1000;
  while (site.tries > 0) {
    write(1000, ++pitch, ~0u);
    learn(site, ~0u);
    REQUIRE(pitch < 2000);
  }
  CHECK(pitch < 1020);
}

namespace {

// Rows of 16 threads whose pitch is a parameter; a loop that all lanes run together, one in which they leave at different times, and one
// with a barrier around a loop.
const char* const kLoops = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry loops(.param .u64 in, .param .u32 pitch, .param .u32 rounds)
{
  .shared .align 4 .b8 s[4096];
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u32 %r2, [pitch];
  ld.param.u32 %r3, [rounds];
  mov.u32 %r1, %tid.x;
  shr.u32 %r4, %r1, 4;
  and.b32 %r5, %r1, 15;
  mad.lo.u32 %r6, %r4, %r2, %r5;
  mul.wide.u32 %rd2, %r6, 4;
  add.u64 %rd3, %rd1, %rd2;
  mul.wide.u32 %rd4, %r2, 4;
  mov.u32 %r7, 0;
  mov.u32 %r8, s;
TOGETHER:
  ld.global.u32 %r9, [%rd3];
  add.u64 %rd5, %rd3, %rd4;
  ld.global.u32 %r10, [%rd5+8];
  ld.shared.u32 %r11, [%r8+16];
  add.u64 %rd3, %rd5, %rd4;
  add.u32 %r8, %r8, 8;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, %r3;
  @%p1 bra TOGETHER;
  rem.u32 %r12, %r1, 5;
  mul.lo.u32 %r13, %r1, %r1;
  mul.wide.u32 %rd6, %r13, 4;
  add.u64 %rd7, %rd1, %rd6;
APART:
  ld.global.u32 %r9, [%rd7+4];
  mad.lo.u32 %r14, %r1, 7919, %r12;
  mul.lo.u32 %r14, %r14, 2654435761;
  shr.u32 %r14, %r14, 20;
  mul.wide.u32 %rd8, %r14, 4;
  add.u64 %rd9, %rd1, %rd8;
  ld.global.u32 %r10, [%rd9];
  setp.eq.u32 %p2, %r12, 0;
  add.u64 %rd7, %rd7, 12;
  sub.u32 %r12, %r12, 1;
  @!%p2 bra APART;
  mov.u32 %r15, 0;
  mul.lo.u32 %r16, %r1, 4;
  mov.u32 %r17, s;
  add.u32 %r17, %r17, %r16;
  mul.wide.u32 %rd10, %r1, 8;
  add.u64 %rd11, %rd1, %rd10;
OUTER:
  st.shared.u32 [%r17+256], %r15;
  ld.global.u32 %r9, [%rd11];
  bar.sync 0;
  mov.u32 %r18, 0;
  mov.u64 %rd12, %rd11;
INNER:
  ld.global.u32 %r10, [%rd12+128];
  add.u64 %rd12, %rd12, 4;
  add.u32 %r18, %r18, 1;
  setp.ne.u32 %p3, %r18, 3;
  @%p3 bra INNER;
  add.u64 %rd11, %rd11, 1024;
  add.u32 %r15, %r15, 1;
  setp.le.u32 %p3, %r15, %r3;
  @%p3 bra OUTER;
  ret;
}
)";

using Accesses = std::vector<std::pair<bool, std::uint64_t>>;

Accesses LoopsOf(std::uint64_t in, std::uint32_t pitch, std::uint32_t rounds, std::uint32_t thread) {
  Accesses accesses;
  for (std::uint64_t k = 0; k < rounds; ++k) {
    const std::uint64_t at = in + (std::uint64_t{thread / 16} * pitch + thread % 16) * 4 + k * 2 * pitch * 4;
    accesses.insert(accesses.end(), {{false, at}, {false, at + std::uint64_t{pitch} * 4 + 8}, {false, 16 + 8 * k}});
  }
  for (std::uint32_t k = 0, n = thread % 5; k <= thread % 5; ++k, --n) {
    accesses.emplace_back(false, in + std::uint64_t{thread} * thread * 4 + 4 + 12 * k);
    accesses.emplace_back(false, in + std::uint64_t{(thread * 7919 + n) * 2654435761u >> 20} * 4);
  }
  for (std::uint64_t k = 0; k <= rounds; ++k) {
    accesses.emplace_back(true, thread * 4 + 256);
    accesses.emplace_back(false, in + thread * 8 + 1024 * k);
    for (std::uint64_t i = 0; i < 3; ++i) accesses.emplace_back(false, in + thread * 8 + 1024 * k + 4 * i + 128);
  }
  return accesses;
}

}  // namespace

TEST_CASE("Capture_LoopsWithSteps_TellEachRound") {
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(1 << 16, 0));
  for (const std::uint32_t threads : {64u, 80u}) {  // the last warp of the second is half
    for (const std::uint32_t rounds : {1u, 2u, 7u, 300u}) {
      const std::uint32_t pitch = 50;
      test::ParamBlock block;
      block.Add(in).Add(pitch).Add(rounds);
      exec::LaunchParams launch;
      launch.grid = {3, 1, 1};
      launch.block = {threads, 1, 1};
      launch.params = block.bytes();
      const Captured captured = Run(executor, kLoops, "loops", launch);
      CHECK(captured.dropped == 0);
      for (const auto& [cta, trace] : captured.ctas) {
        for (std::uint32_t w = 0; w < trace.warps.size(); ++w) {
          const std::vector<LanePath> lanes = PathsOf(captured.table.code, trace, trace.warps[w], {});
          for (std::uint32_t lane = 0; lane < 32 && w * 32 + lane < threads; ++lane) {
            INFO(threads << " threads, " << rounds << " rounds, CTA " << cta << ", thread " << w * 32 + lane);
            REQUIRE(lanes[lane].accesses == LoopsOf(in, pitch, rounds, w * 32 + lane));
          }
        }
      }
    }
  }
}
