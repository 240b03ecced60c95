// Disk cache of compiled kernels: damage, foreign files, several processes, size.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/exec/runtime/code_cache.h"
#include "tests/file_size_limit.h"
#include "tests/sim/exec/runtime_harness.h"

using namespace gridloom;
using namespace gridloom::test;
namespace fs = std::filesystem;

namespace {

struct Directory {
  Directory() {
    char name[] = "/tmp/gridloom-cache-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
  std::string path;
};

CompiledKernel Kernel(std::size_t bytes, std::uint8_t fill) {
  CompiledKernel kernel;
  kernel.object.assign(bytes, fill);
  kernel.static_shared_bytes = 48;
  kernel.local_bytes = 16;
  kernel.needs_fiber = true;
  return kernel;
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void Write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

constexpr CacheKey kKey{1, 2};

}  // namespace

TEST_CASE("Cache_StoresAndLoadsAKernel") {
  const Directory directory;
  CodeCache cache(directory.path + "/a/b", 1 << 20, {});
  REQUIRE(cache.enabled());
  CHECK_FALSE(cache.Load(kKey).has_value());
  cache.Store(kKey, Kernel(1000, 7));
  const auto loaded = cache.Load(kKey);
  REQUIRE(loaded.has_value());
  CHECK(loaded->object == std::vector<std::uint8_t>(1000, 7));
  CHECK((loaded->static_shared_bytes == 48 && loaded->local_bytes == 16 && loaded->needs_fiber &&
         !loaded->simple_barriers && !loaded->recursive));
  CHECK_FALSE(cache.Load({1, 3}).has_value());
}

TEST_CASE("Cache_DamageAtAnyByteOrTruncation_IsIgnoredAndReplaced") {
  const Directory directory;
  CodeCache cache(directory.path, 1 << 20, {});
  cache.Store(kKey, Kernel(100, 9));
  const std::string good = Read(cache.PathOf(kKey));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    Write(cache.PathOf(kKey), bad);
    CHECK_FALSE(cache.Load(kKey).has_value());
    Write(cache.PathOf(kKey), good.substr(0, i));
    CHECK_FALSE(cache.Load(kKey).has_value());
  }
  Write(cache.PathOf(kKey), good + "x");
  CHECK_FALSE(cache.Load(kKey).has_value());
  cache.Store(kKey, Kernel(100, 9));
  CHECK(cache.Load(kKey).has_value());
  fs::copy_file(cache.PathOf(kKey), cache.PathOf({5, 5}));  // an entry under a wrong name
  CHECK_FALSE(cache.Load({5, 5}).has_value());
}

TEST_CASE("Cache_WhatIsNoFile_IsNotWaitedForAndReplaced") {
  const Directory directory;
  CodeCache cache(directory.path, 1 << 20, {});
  cache.Store(kKey, Kernel(1000, 7));
  const std::string path = std::filesystem::directory_iterator(directory.path)->path().string();
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  REQUIRE(mkfifo((directory.path + "/text").c_str(), 0600) == 0);
  CHECK_FALSE(cache.Load(kKey).has_value());
  CHECK_FALSE(cache.LoadText("text").has_value());
  cache.Store(kKey, Kernel(1000, 7));
  CHECK(cache.Load(kKey).has_value());
}

TEST_CASE("Cache_OnAFullDisk_SaysSoAndLeavesNothing") {
  const Directory directory;
  std::string said;
  CodeCache cache(directory.path, 1 << 20, [&](std::string_view line) { said += line; });
  {
    const test::FileSizeLimit limit(500);
    cache.Store(kKey, Kernel(1000, 7));
  }
  CHECK(said.find("File too large") != std::string::npos);
  CHECK(std::filesystem::is_empty(directory.path));
  CHECK_FALSE(cache.Load(kKey).has_value());
}

TEST_CASE("Cache_OfOthers_IsNotTrusted") {
  const Directory directory;
  std::vector<std::string> log;
  const auto keep = [&](std::string_view line) { log.emplace_back(line); };
  {
    CodeCache cache(directory.path, 1 << 20, keep);
    cache.Store(kKey, Kernel(10, 1));
    chmod(cache.PathOf(kKey).c_str(), 0666);
    CHECK_FALSE(cache.Load(kKey).has_value());
    chmod(cache.PathOf(kKey).c_str(), 0600);
    CHECK(cache.Load(kKey).has_value());
    fs::rename(cache.PathOf(kKey), directory.path + "/elsewhere");
    fs::create_symlink(directory.path + "/elsewhere", cache.PathOf(kKey));
    CHECK_FALSE(cache.Load(kKey).has_value());
  }
  CHECK(log.empty());
  chmod(directory.path.c_str(), 0777);
  const CodeCache open(directory.path, 1 << 20, keep);
  CHECK_FALSE(open.enabled());
  CHECK(log.size() == 1);
  chmod(directory.path.c_str(), 0700);
  Write(directory.path + "/file", "");
  CodeCache file(directory.path + "/file", 1 << 20, keep);
  CHECK_FALSE(file.enabled());
  CHECK(log.size() == 2);
  file.Store(kKey, Kernel(10, 1));
  CHECK_FALSE(file.Load(kKey).has_value());
  CodeCache nowhere("/proc/gridloom", 1 << 20, keep);
  CHECK_FALSE(nowhere.enabled());
  CHECK(log.size() == 3);
  CHECK_FALSE(CodeCache("", 1, keep).enabled());
  CHECK(log.size() == 3);
}

TEST_CASE("Cache_BeyondItsSize_DropsTheLeastRecentlyUsed") {
  const Directory directory;
  CodeCache cache(directory.path, 10'000, {});
  Write(directory.path + "/not-ours", std::string(100'000, 'x'));
  for (std::uint64_t i = 0; i < 9; ++i) {
    cache.Store({i, 0}, Kernel(1000, 1));
    const timespec times[2] = {{static_cast<time_t>(1000 + i), 0}, {static_cast<time_t>(1000 + i), 0}};
    utimensat(AT_FDCWD, cache.PathOf({i, 0}).c_str(), times, 0);
  }
  CHECK(cache.Load({0, 0}).has_value());  // and so it is the most recent one
  cache.Store({9, 0}, Kernel(1000, 1));
  CHECK(cache.Load({0, 0}).has_value());
  CHECK(cache.Load({9, 0}).has_value());
  CHECK_FALSE(cache.Load({1, 0}).has_value());
  CHECK(cache.Load({8, 0}).has_value());
  CHECK(fs::exists(directory.path + "/not-ours"));
}

TEST_CASE("Cache_Bytecode_StandsInForMachineCodeUntilThatIsThere") {
  const Directory directory;
  CodeCache cache(directory.path, 1 << 20, {});
  InterpretedKernel bytecode;
  bytecode.code.functions.resize(1);
  bytecode.code.functions[0].constants.assign(3000, 5);
  bytecode.static_shared_bytes = 77;
  bytecode.needs_fiber = true;
  cache.StoreBytecode(kKey, bytecode);
  CHECK_FALSE(cache.Load(kKey).has_value());  // no machine code
  const CachedKernel found = cache.Find(kKey);
  const auto* const read = std::get_if<InterpretedKernel>(&found);
  REQUIRE(read != nullptr);
  CHECK((read->static_shared_bytes == 77 && read->needs_fiber && !read->recursive));
  CHECK(read->code.functions.at(0).constants == std::vector<std::uint8_t>(3000, 5));
  const std::string good = Read(cache.PathOf(kKey));
  for (std::size_t i = 0; i < good.size(); i += 11) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    Write(cache.PathOf(kKey), bad);
    CHECK(cache.Find(kKey).index() == 0);
    Write(cache.PathOf(kKey), good.substr(0, i));
    CHECK(cache.Find(kKey).index() == 0);
  }
  cache.StoreBytecode(kKey, bytecode);  // in place of what is damaged
  CHECK(Read(cache.PathOf(kKey)) == good);
  cache.Store(kKey, Kernel(1000, 7));
  CHECK(cache.Load(kKey).has_value());
  cache.StoreBytecode(kKey, bytecode);  // of a process that began before
  CHECK(cache.Load(kKey).has_value());
  CHECK(std::distance(fs::directory_iterator(directory.path), {}) == 1);
}

TEST_CASE("Cache_BytecodeBeyondItsSize_DropsTheLeastRecentlyUsed") {
  const Directory directory;
  CodeCache cache(directory.path, 10'000, {});
  InterpretedKernel bytecode;
  bytecode.code.functions.resize(1);
  bytecode.code.functions[0].constants.assign(1000, 5);
  for (std::uint64_t i = 0; i < 40; ++i) cache.StoreBytecode({i, 0}, bytecode);
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory.path)) bytes += entry.file_size();
  CHECK((bytes > 5'000 && bytes <= 10'000));
}

TEST_CASE("Cache_Claim_EndsWithWhoeverHasIt") {
  const Directory directory;
  CodeCache cache(directory.path, 1 << 20, {});
  CHECK_FALSE(cache.ClaimToMake(kKey).is_others());  // nothing to claim
  cache.Store(kKey, Kernel(10, 1));
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const CodeCache::Claim claim = cache.ClaimToMake(kKey);
    const char answer = claim.is_others() ? 'n' : 'y';
    if (write(ready[1], &answer, 1) == 1) pause();
    _exit(1);
  }
  char answer = 0;
  REQUIRE(read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  CHECK(cache.ClaimToMake(kKey).is_others());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK_FALSE(cache.ClaimToMake(kKey).is_others());
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("Cache_ManyProcessesAtOnce_AlwaysSeeWholeEntries") {
  const Directory directory;
  std::vector<pid_t> children;
  for (int c = 0; c < 6; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      CodeCache cache(directory.path, 60'000, {});  // small: entries vanish all the time
      bool right = true;
      for (int i = 0; i < 300; ++i) {
        const CacheKey key{static_cast<std::uint64_t>(i % 10), 7};
        if (i % 3 == c % 3) cache.Store(key, Kernel(8'000, static_cast<std::uint8_t>(i % 10)));
        const auto loaded = cache.Load(key);
        right &= !loaded || loaded->object == std::vector<std::uint8_t>(8'000, static_cast<std::uint8_t>(i % 10));
      }
      _exit(right && cache.enabled() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
  }
  for (const auto& entry : fs::directory_iterator(directory.path)) CHECK(entry.path().extension() == ".glk");
}

TEST_CASE("Run_SecondTimeWithACache_DoesNotCompile") {
  const Directory directory;
  Engine::Options options;
  options.cache_dir = directory.path;
  const NativeKernel kernel{.entry = [](WarpCtx* warp) { ++reinterpret_cast<std::atomic<int>*>(Param(warp, 0))[0]; }};
  for (int run = 0; run < 2; ++run) {
    Harness h(1, options);
    h.Add("cached", kernel);
    auto* const count = h.Allocate<int>(1);
    const int before = Harness::compilations();
    LaunchStats stats;
    for (int i = 0; i < 3; ++i)
      CHECK(
          h.Run("cached", {2, 1, 1}, {32, 1, 1}, {reinterpret_cast<std::uint64_t>(count)}, 0, {}, false, &stats).kind ==
          FaultKind::kNone);
    CHECK(*count == 6);
    CHECK(Harness::compilations() - before == (run == 0 ? 1 : 0));
    CHECK(stats.cache_hit == (run == 1));
  }
}

TEST_CASE("Run_ManyBlockShapes_CompilesAtMostNineTimes") {
  Harness h(1);
  h.Add("shapes", {.entry = [](WarpCtx* warp) { ++reinterpret_cast<std::atomic<int>*>(Param(warp, 0))[0]; }});
  auto* const count = h.Allocate<int>(1);
  const int before = Harness::compilations();
  for (std::uint32_t block = 1; block <= 30; ++block)
    h.Run("shapes", {1, 1, 1}, {block, 1, 1}, {reinterpret_cast<std::uint64_t>(count)});
  CHECK(*count == 30);
  CHECK(Harness::compilations() - before == 9);
}

TEST_CASE("Run_RowsOfWholeWarps_ShareAVersionFromTheThirdOn") {
  Harness h(1);
  h.Add("rows", {.entry = [](WarpCtx* warp) { ++reinterpret_cast<std::atomic<int>*>(Param(warp, 0))[0]; }});
  auto* const count = h.Allocate<int>(1);
  const int before = Harness::compilations();
  const auto run = [&](std::uint32_t x, std::uint32_t y) {
    h.Run("rows", {1, 1, 1}, {x, y, 1}, {reinterpret_cast<std::uint64_t>(count)});
    return Harness::compilations() - before;
  };
  CHECK(run(64, 1) == 1);
  CHECK(run(128, 1) == 2);
  CHECK(run(256, 1) == 3);
  for (std::uint32_t x = 32; x <= 1024; x += 32) CHECK(run(x, 1) == 3);
  CHECK(run(33, 1) == 4);  // no whole warps
  CHECK(run(32, 2) == 5);  // no single row
}

TEST_CASE("Run_KernelThatDoesNotCompile_SaysWhyEveryTime") {
  Harness h(1);
  h.Add("broken", {.error = "broken.ptx:3: wgmma is not supported"});
  for (int i = 0; i < 2; ++i) {
    const LaunchFault fault = h.Run("broken", {1, 1, 1}, {32, 1, 1});
    CHECK(fault.kind == FaultKind::kCompile);
    CHECK(fault.text == "kernel broken: broken.ptx:3: wgmma is not supported");
  }
}
