// A constant that many threads store to one place is not stored again where it is there already: the place lies in
// memory that cannot be written.
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

constexpr std::uint32_t kFlagThreads = 64, kFlagValue = 17;

/// Thread i goes through its row of places, as a breadth-first search does, and sets the flag for each of value 0. With
/// `always`, every thread sets it once more, whatever it has found.
std::string FlagKernel(const std::string& type, bool always) {
  const std::string found = std::to_string(kFlagValue), store = "st.global." + type + " [%rd4], " + found + ";\n";
  return R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry flags(.param .u64 starts, .param .u64 places, .param .u64 values, .param .u64 flag)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<6>;
  ld.param.u64 %rd1, [starts]; ld.param.u64 %rd2, [places]; ld.param.u64 %rd3, [values]; ld.param.u64 %rd4, [flag];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd5, %r1, 4;
  add.u64 %rd6, %rd1, %rd5;
  ld.global.u32 %r2, [%rd6];
  ld.global.u32 %r3, [%rd6+4];
  setp.ge.s32 %p1, %r2, %r3;
  @%p1 bra DONE;
LOOP:
  mul.wide.s32 %rd7, %r2, 4;
  add.u64 %rd8, %rd2, %rd7;
  ld.global.u32 %r4, [%rd8];
  mul.wide.s32 %rd9, %r4, 4;
  add.u64 %rd10, %rd3, %rd9;
  ld.global.u32 %r5, [%rd10];
  setp.ne.s32 %p2, %r5, 0;
  @%p2 bra NEXT;
  st.global.u32 [%rd10], 1;
  )" + store +
         R"(NEXT:
  add.s32 %r2, %r2, 1;
  setp.lt.s32 %p3, %r2, %r3;
  @%p3 bra LOOP;
DONE:
)" + (always ? store : "") +
         "  ret;\n}\n";
}

struct FlagPlaces {
  std::vector<std::int32_t> starts{0}, places;
  std::vector<std::int32_t> values = std::vector<std::int32_t>(200, 1);

  explicit FlagPlaces(bool some) {
    for (std::uint32_t i = 0; i < kFlagThreads; ++i) {
      for (std::uint32_t k = 0; k < i * 7 % 11; ++k)
        places.push_back(static_cast<std::int32_t>((i * 37 + k * 11) % 200));
      starts.push_back(static_cast<std::int32_t>(places.size()));
    }
    for (std::size_t i = 0; some && i < values.size(); i += 3) values[i] = 0;
  }
};

/// A page of device memory that holds `value` and can be read only, for as long as one lives.
class ReadOnlyPage {
 public:
  ReadOnlyPage(Executor& executor, std::uint64_t value) {
    const std::uint64_t memory = executor.Upload(std::vector<std::uint8_t>(3 * kBytes));
    page = (memory + kBytes - 1) / kBytes * kBytes;
    std::memcpy(reinterpret_cast<void*>(page), &value, sizeof value);
    mprotect(reinterpret_cast<void*>(page), kBytes, PROT_READ);
  }
  ~ReadOnlyPage() { mprotect(reinterpret_cast<void*>(page), kBytes, PROT_READ | PROT_WRITE); }
  ReadOnlyPage(const ReadOnlyPage&) = delete;
  ReadOnlyPage& operator=(const ReadOnlyPage&) = delete;

  std::uint64_t page = 0;

 private:
  static constexpr std::uint64_t kBytes = 4096;
};

exec::Engine::Options FlagMachine(const char* features) {
  exec::Engine::Options options;
  options.cpu_features = features;
  options.tiers = "off";
  return options;
}

exec::LaunchFault LaunchFlags(Executor& executor, const std::string& ptx, const FlagPlaces& in, std::uint64_t flag) {
  return executor.Launch(ptx, "flags", {1, 1, 1}, {kFlagThreads, 1, 1},
                         ParamBlock()
                             .Add(executor.Upload(in.starts))
                             .Add(executor.Upload(in.places))
                             .Add(executor.Upload(in.values))
                             .Add(flag));
}

}  // namespace

TEST_CASE("FlagStore_ThatIsThere_IsNotStoredAgain") {
  Executor executor(FlagMachine(GENERATE("", "avx2", "baseline")));
  const std::string type = GENERATE("u8", "u32", "u64");
  const bool always = GENERATE(false, true);
  const FlagPlaces in(true);
  const std::string ptx = FlagKernel(type, always);
  INFO(type << " always " << always);
  {
    const ReadOnlyPage set(executor, kFlagValue);
    CHECK(LaunchFlags(executor, ptx, in, set.page).kind == exec::FaultKind::kNone);
  }
  const ReadOnlyPage other(executor, kFlagValue + 1);
  CHECK(LaunchFlags(executor, ptx, in, other.page).kind == exec::FaultKind::kIllegalAddress);
}

TEST_CASE("FlagStore_IsStoredWhereAThreadSetsIt") {
  exec::Engine::Options options = FlagMachine(GENERATE("", "avx2", "baseline"));
  options.tiers = GENERATE("off", "on");
  Executor executor(options);
  const std::string type = GENERATE("u8", "u32", "u64");
  const bool always = GENERATE(false, true), some = GENERATE(false, true);
  const std::vector<std::uint64_t> before = {0xfefe'fefe'fefe'fefe};
  const std::uint64_t flag = executor.Upload(before);
  REQUIRE(LaunchFlags(executor, FlagKernel(type, always), FlagPlaces(some), flag).kind == exec::FaultKind::kNone);
  std::vector<std::uint64_t> after = before;
  executor.Download(flag, after);
  const std::uint64_t bits = type == "u8" ? 0xff : type == "u32" ? 0xffff'ffff : ~std::uint64_t{0};
  CHECK(after[0] == (always || some ? (before[0] & ~bits) | kFlagValue : before[0]));
}
