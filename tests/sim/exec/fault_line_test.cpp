// Faults found by the processor inside generated code: the message names the PTX line, and the source line where .loc
// has it.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "sim/exec/memcheck.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

const char* const kStores = R"(.version 7.8
.target sm_75
.address_size 64
.file 1 "/home/user/kernel.cu"
.func store(.reg .b64 p, .reg .b32 v)
{
  .loc 1 30 1
  st.global.u32 [p], v;
  ret;
}
.visible .entry stores(.param .u64 good, .param .u64 bad, .param .u32 which)
{
  .reg .b64 %rd<6>;
  .reg .b32 %r<3>;
  .reg .pred %p<2>;
  .loc 1 17 3
  ld.param.u64 %rd1, [good];
  ld.param.u64 %rd2, [bad];
  ld.param.u32 %r2, [which];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd4], %r1;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra DIRECT;
  call store, (%rd5, %r1);
  ret;
DIRECT:
  .loc 1 19 5
  st.global.u32 [%rd5], %r1;
  st.global.u32 [%rd4], %r2;
  ret;
}
)";

}  // namespace

TEST_CASE("Fault_InGeneratedCode_NamesPtxLineAndSourceLine") {
  Executor executor;
  const std::uint64_t good = executor.Upload(std::vector<std::uint32_t>(64));
  const std::uint64_t bad = executor.Upload(std::vector<std::uint32_t>(1 << 20));
  executor.Free(bad);
  for (const std::uint32_t which : {0u, 1u}) {
    const exec::LaunchFault fault =
        executor.Launch(kStores, "stores", {2, 1, 1}, {64, 1, 1}, ParamBlock().Add(good).Add(bad + 4096).Add(which));
    INFO(fault.text);
    CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
    CHECK(fault.ptx_line == (which == 0 ? 31 : 8));
    CHECK(fault.text.find(which == 0 ? "PTX line 31 (/home/user/kernel.cu:19)"
                                     : "PTX line 8 (/home/user/kernel.cu:30)") != std::string::npos);
  }
}

namespace {

class CacheFolder {
 public:
  CacheFolder() {
    char name[] = "/tmp/gridloom-lines-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~CacheFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// kStores as another run of the same client writes it: the same lines, but others of their sources.
std::string StoresOf(const std::string& run, const std::string& source_line) {
  std::string text = kStores;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace(".target sm_75", ".target sm_75 // of /tmp/" + run);
  replace("/home/user/kernel.cu", "/tmp/" + run + ".cu");
  replace(".loc 1 19 5", ".loc 1 " + source_line + " 5");
  return text;
}

struct FoundFault {
  exec::LaunchFault fault;
  bool cache_hit = false;
  std::string memcheck;
};

FoundFault RunStores(const std::string& text, const std::string& cache, bool memcheck, std::uint32_t which = 0) {
  FoundFault found;
  exec::Engine::Options options;
  options.cache_dir = cache;
  options.memcheck = memcheck;
  options.tiers = "off";
  options.on_memcheck = [&](const exec::MemcheckReport& report) { found.memcheck += exec::FormatMemcheck(report); };
  Executor executor(options);
  const std::uint64_t good = executor.Upload(std::vector<std::uint32_t>(64));
  const std::uint64_t bad = executor.Upload(std::vector<std::uint32_t>(1 << 20));
  executor.Free(bad);
  const ParamBlock params = ParamBlock().Add(good).Add(bad + 4096).Add(which);
  exec::LaunchParams launch;
  launch.grid = {2, 1, 1};
  launch.block = {64, 1, 1};
  launch.params = params.bytes();
  exec::LaunchStats stats;
  found.fault = executor.Launch(text, "stores", std::move(launch), &stats);
  found.cache_hit = stats.cache_hit;
  return found;
}

}  // namespace

TEST_CASE("Fault_InCachedCodeOfATextWithOtherSources_NamesThese") {
  const CacheFolder cache;
  const bool memcheck = GENERATE(false, true);
  const auto said = [&](const FoundFault& found) { return memcheck ? found.memcheck : found.fault.text; };
  const auto names = [&](const FoundFault& found, const std::string& line, const std::string& source) {
    return said(found).find("PTX line " + line) != std::string::npos && said(found).find(source) != std::string::npos;
  };
  const FoundFault first = RunStores(StoresOf("first", "19"), cache.path(), memcheck);
  INFO(said(first));
  CHECK_FALSE(first.cache_hit);
  CHECK(names(first, "31", "/tmp/first.cu:19"));
  const FoundFault second = RunStores(StoresOf("second", "21"), cache.path(), memcheck);
  INFO(said(second));
  CHECK(second.cache_hit);
  CHECK(names(second, "31", "/tmp/second.cu:21"));
  // Lines more above the functions: the same code, other lines.
  std::string moved = "// a line more\n" + StoresOf("second", "21");
  moved.insert(moved.find(".visible .entry stores"), "// and two\n// more\n");
  const FoundFault third = RunStores(moved, cache.path(), memcheck);
  INFO(said(third));
  CHECK(third.cache_hit);
  CHECK(names(third, "34", "/tmp/second.cu:21"));
  // In the function that is called, which has moved by one line.
  const FoundFault fourth = RunStores(moved, cache.path(), memcheck, 1);
  INFO(said(fourth));
  CHECK(fourth.cache_hit);
  CHECK(names(fourth, "9", "/tmp/second.cu:30"));
  // A line more between instructions: other code.
  moved.insert(moved.find("  setp.eq.u32"), "\n");
  const FoundFault fifth = RunStores(moved, cache.path(), memcheck);
  INFO(said(fifth));
  CHECK_FALSE(fifth.cache_hit);
  CHECK(names(fifth, "35", "/tmp/second.cu:21"));
}

namespace {

// The kernel's warps run in one loop; all but one of them store to memory that is there. With `from` in host memory
// every warp goes through the runtime first.
const char* const kOneWarp = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry one(.param .u64 good, .param .u64 bad, .param .u32 which, .param .u64 from)
{
  .reg .b64 %rd<6>;
  .reg .b32 %r<6>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [good];
  ld.param.u64 %rd2, [bad];
  ld.param.u32 %r2, [which];
  ld.param.u64 %rd5, [from];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r3, %r3, 1024, %r1;
  shr.u32 %r4, %r3, 5;
  setp.eq.u32 %p1, %r4, %r2;
  mul.wide.u32 %rd3, %r1, 4;
  selp.b64 %rd4, %rd2, %rd1, %p1;
  add.s64 %rd4, %rd4, %rd3;
  ld.global.u32 %r5, [%rd5];
  st.global.u32 [%rd4], %r5;
  ret;
}
)";

}  // namespace

TEST_CASE("Fault_InLoopOverWarps_NamesTheWarp") {
  exec::Engine::Options options;
  options.cpu_features = GENERATE("", "avx2", "baseline");
  options.tiers = "off";  // the interpreter would name the thread
  Executor executor(options);
  const std::uint64_t good = executor.Upload(std::vector<std::uint32_t>(1024));
  const std::uint64_t bad = executor.Upload(std::vector<std::uint32_t>(1 << 20));
  executor.Free(bad);
  static std::uint32_t host[1024];
  REQUIRE(executor.memory().RegisterHost(host, sizeof host, false));
  for (const std::uint64_t from : {good, reinterpret_cast<std::uint64_t>(host)}) {
    for (const std::uint32_t which : {0u, 1u, 17u, 31u, 32u, 45u, 95u}) {
      const exec::LaunchFault fault = executor.Launch(kOneWarp, "one", {3, 1, 1}, {1024, 1, 1},
                                                      ParamBlock().Add(good).Add(bad + 4096).Add(which).Add(from));
      INFO(fault.text);
      CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
      CHECK(fault.cta.x == which / 32);
      CHECK(fault.thread.x == which % 32 * 32);
      CHECK(fault.text.find(", warp " + std::to_string(which % 32)) != std::string::npos);
    }
  }
}

namespace {

const char* const kOutside = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry outside(.param .u64 out, .param .u32 offset)
{
  .shared .align 4 .b8 words[64];
  .local .align 4 .b8 mine[32];
  .reg .b64 %rd<4>;
  .reg .b32 %r<5>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [offset];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra LOCAL;
  mov.u32 %r2, words;
  add.u32 %r2, %r2, %r1;
  ld.shared.u32 %r3, [%r2];
  bra END;
LOCAL:
  mov.u32 %r2, mine;
  add.u32 %r2, %r2, 67108864;
  ld.local.u32 %r3, [%r2];
END:
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

}  // namespace

TEST_CASE("Fault_OutsideOfSharedOrLocalMemory_NamesWhatWasMissedAndByHowMuch") {
  struct Row {
    std::uint32_t offset;
    const char* text;
  };
  Executor executor;
  const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(64));
  for (const auto& [offset, text] :
       {Row{1 << 20,
            ": shared load out of bounds: 1,048,512 bytes past the end of the CTA's 64 bytes of shared memory"},
        Row{18, ": misaligned load from 18 bytes into the CTA's 64 bytes of shared memory"},
        Row{0, "of local memory"}}) {
    const exec::LaunchFault fault =
        executor.Launch(kOutside, "outside", {1, 1, 1}, {32, 1, 1}, ParamBlock().Add(out).Add(offset));
    INFO(fault.text);
    CHECK(fault.text.find(text) != std::string::npos);
  }
}

TEST_CASE("Access_PastTheSharedMemoryAskedFor_GoesOnInTheUnitThatAGpuGivesOut") {
  Executor executor;  // its device gives out shared memory in units of 128 bytes
  const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(64));
  for (const auto& [offset, faults] :
       {std::pair{60u, false}, std::pair{64u, false}, std::pair{124u, false}, std::pair{128u, true}}) {
    const exec::LaunchFault fault =
        executor.Launch(kOutside, "outside", {1, 1, 1}, {32, 1, 1}, ParamBlock().Add(out).Add(offset));
    CHECK((fault.kind != exec::FaultKind::kNone) == faults);
    if (faults)
      CHECK(fault.text.find("64 bytes past the end of the CTA's 64 bytes of shared memory") != std::string::npos);
  }
}
