// How fast the timing model is while kernels overlap, beside the same traces under leftover on the device without that
// hardware.
//   usage: build/overlap_speed [--device NAME] [--traces FOLDER] [--rounds N]
// FOLDER: traces with ranges (gridloom run --trace FILE --ranges interval -- PROGRAM); default: those of the study of
// CRCS. Prints million warp instructions that were simulated in a second of one thread's CPU time, best of the rounds,
// and the ratio to leftover's.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/replay/job.h"
#include "tests/bench/options.h"

namespace gridloom {
namespace {

constexpr const char* kPolicies[] = {"leftover", "crcs-fifo", "crcs-ppcs", "crcs-ready"};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

struct Speed {
  double seconds = INFINITY, instructions = 0;
  double rate() const { return instructions / seconds * 1e-6; }
};

Status Measure(const std::string& path, const std::string& policy, const sim::DeviceSpec& device, Speed& best) {
  GL_TRY(file, trace::TraceFile::Open(path));
  const double begin = CpuSeconds();
  GL_TRY(result, study::Replay(hardware::WithPartsFor(device, policy), policy, {file}, 1));
  best.seconds = std::min(best.seconds, CpuSeconds() - begin);
  best.instructions = static_cast<double>(result.counters.sm.warp_instructions);
  return {};
}

std::vector<std::string> TracesIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("crcs-") && name.ends_with(".gltrace")) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

Status Run(const std::string& device_name, const std::string& folder, unsigned rounds) {
  GL_TRY(device, sim::LoadDevice(device_name, "configs/devices"));
  GL_TRY_STATUS(sim::SetDeviceKey("timing.host.storage_mb_s", "500", "overlap_speed", device));
  const std::vector<std::string> paths = TracesIn(folder);
  if (paths.empty()) return Error{"no crcs-*.gltrace in " + folder + "; --traces names another folder"};
  std::printf("| trace |");
  for (const char* policy : kPolicies) std::printf(" %s |", policy);
  std::printf(" least ratio |\n|---|--:|--:|--:|--:|--:|\n");
  double logs = 0;
  for (const std::string& path : paths) {
    Speed speeds[std::size(kPolicies)];
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < std::size(kPolicies); ++i)
        GL_TRY_STATUS(Measure(path, kPolicies[i], device, speeds[i]));
    }
    double least = INFINITY;
    std::printf("| %s |", std::filesystem::path(path).stem().c_str());
    for (const Speed& speed : speeds) {
      const double ratio = speed.rate() / speeds[0].rate();
      if (&speed == speeds) std::printf(" %.2f |", speed.rate());
      else std::printf(" %.2f (%.2f) |", speed.rate(), ratio), least = std::min(least, ratio);
    }
    std::printf(" %.2f |\n", least);
    std::fflush(stdout);
    logs += std::log(least);
  }
  std::printf("geometric mean of the least ratios: %.2f\n", std::exp(logs / static_cast<double>(paths.size())));
  return {};
}

int Main(int argc, char** argv) {
  std::string device = "crcs", folder = "configs/experiments/traces";
  unsigned rounds = 3;
  const bench::Option options[] = {{"--device", &device}, {"--traces", &folder}, {"--rounds", &rounds}};
  bench::ParseOptions(argc, argv, options);
  const Status status = Run(device, folder, std::max(rounds, 1u));
  if (!status) std::fprintf(stderr, "overlap_speed: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}

}  // namespace
}  // namespace gridloom

int main(int argc, char** argv) { return gridloom::Main(argc, argv); }
