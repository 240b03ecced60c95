// An engine that interprets kernels until their machine code is there, with a cache directory of its own, and launches
// of a kernel `k` on it.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {

/// So many operations of different kinds on %r6 and %f1, with %r4 and %r5; %r7 and %p1 are theirs.
inline std::string MixedSteps(unsigned steps) {
  std::string text;
  for (unsigned i = 0; i < steps; ++i) {
    switch (i % 5) {
      case 0: text += "  mad.lo.u32 %r6, %r6, " + std::to_string(1664525 + 2 * i) + ", %r5;\n"; break;
      case 1: text += "  shf.l.wrap.b32 %r6, %r6, %r6, " + std::to_string(i % 31 + 1) + ";\n"; break;
      case 2:
        text += "  setp.gt.u32 %p1, %r6, " + std::to_string(i * 40503) + ";\n  @%p1 xor.b32 %r6, %r6, %r4;\n";
        break;
      case 3: text += "  fma.rn.f32 %f1, %f1, 0f3F7FFFFE, 0f3E800000;\n"; break;
      default: text += "  cvt.rzi.u32.f32 %r7, %f1;\n  add.u32 %r6, %r6, %r7;\n";
    }
  }
  return text;
}

/// Without printing all of them.
inline bool Same(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) { return a == b; }

struct Outcome {
  std::vector<std::uint32_t> values;
  exec::LaunchStats stats;
};

class Tiers {
 public:
  explicit Tiers(const std::string& tiers, const std::string& cache = "", bool memcheck = false)
      : executor_(Options(tiers, cache, memcheck)) {}

  /// The kernel's parameters are an array of a word for each thread, at first multiples of `initial`, and `rounds`.
  Outcome Run(const std::string& ptx, unsigned ctas, std::uint32_t rounds, bool cooperative = false,
              std::uint32_t initial = 0) {
    Outcome outcome;
    outcome.values.resize(std::size_t{ctas} * kThreads);
    for (std::size_t i = 0; i < outcome.values.size(); ++i)
      outcome.values[i] = static_cast<std::uint32_t>(i + 1) * initial;
    const std::uint64_t out =
        executor_.memory().Allocate(outcome.values.size() * sizeof outcome.values[0], 256, array_kind);
    std::memcpy(reinterpret_cast<void*>(out), outcome.values.data(), outcome.values.size() * sizeof outcome.values[0]);
    const ParamBlock params = ParamBlock().Add(out).Add(rounds);
    exec::LaunchParams launch;
    launch.grid = {ctas, 1, 1};
    launch.block = {kThreads, 1, 1};
    launch.params = params.bytes();
    launch.cooperative = cooperative;
    const exec::LaunchFault fault = executor_.Launch(ptx, "k", std::move(launch), &outcome.stats);
    INFO(fault.text);
    CHECK(fault.kind == exec::FaultKind::kNone);
    executor_.Download(out, outcome.values);
    executor_.Free(out);
    return outcome;
  }

  std::vector<std::string> said;
  exec::MemoryKind array_kind = exec::MemoryKind::kDevice;  ///< of the array
  Executor& executor() { return executor_; }

 private:
  static constexpr unsigned kThreads = 96;
  exec::Engine::Options Options(const std::string& tiers, const std::string& cache, bool memcheck) {
    exec::Engine::Options options;
    options.memcheck = memcheck;
    options.threads = 2;
    options.tiers = tiers;
    options.cache_dir = cache;
    options.log = [this](std::string_view text) { said.emplace_back(text); };
    return options;
  }
  Executor executor_;
};

/// Processes that run the compile service for a cache directory.
inline std::vector<pid_t> Services(const std::string& cache) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid == 0) continue;
    std::ifstream file(entry.path() / "cmdline");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.find("gridloom-compile") != std::string::npos && line.find(cache) != std::string::npos)
      found.push_back(pid);
  }
  return found;
}

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/gridloom-tiers-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() {
    for (const pid_t pid : Services(path_)) kill(pid, SIGKILL);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gridloom::test
