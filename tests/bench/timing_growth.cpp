// How the timing model's speed changes with the number of SMs, the size of the grid and the number of tenants.
//   usage: build/timing_growth [--device NAME] [--seconds S] [--threads N]
// SMs: the device with another number of them, four CTAs for each. Grid: the device as it is. Tenants: as many streams,
// which share one amount of work. Prints million warp-instructions and thousand simulated cycles a second of one
// thread's CPU time (of several threads: of the time that passes).
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/device/device_files.h"
#include "tests/bench/timing_kernels.h"
#include "tests/bench/timing_measure.h"

namespace gridloom::timing {
namespace {

constexpr const char* kKernels[] = {"compute", "tiled", "streaming", "gather4"};

struct Options {
  std::string device = "v100";
  double seconds = 0.2;
  unsigned threads = 1;
};

std::shared_ptr<trace::CtaSource> Kernel(const std::string& name, std::uint64_t ctas) {
  for (const BenchKernel& kernel : BenchKernels(ctas)) {
    if (kernel.name == name) return Loaded(*kernel.source);
  }
  std::exit(2);
}

/// One row: a cell for each kernel. `grid` CTAs for each of the tenants.
void Row(unsigned number, const sim::DeviceSpec& device, std::uint64_t grid, unsigned tenants, const Options& options) {
  std::printf("| %u |", number);
  for (const char* name : kKernels) {
    const std::vector<std::shared_ptr<trace::CtaSource>> sources(tenants, Kernel(name, grid));
    EngineOptions engine_options;
    engine_options.threads = options.threads;
    const Measurement m = Measure(device, sources, engine_options, options.seconds);
    const auto instructions = static_cast<double>(m.counters.sm.warp_instructions);
    std::printf(" %.2f, %.0f |", instructions / m.seconds * 1e-6, static_cast<double>(m.cycles) / m.seconds * 1e-3);
    std::fflush(stdout);
  }
  std::printf("\n");
}

void Head(const char* what) {
  std::printf("\n| %s |", what);
  for (const char* name : kKernels) std::printf(" %s |", name);
  std::printf("\n|--:|");
  for (std::size_t i = 0; i < std::size(kKernels); ++i) std::printf("--:|");
  std::printf("\n");
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--device") options.device = argv[i + 1];
    else if (key == "--seconds") options.seconds = std::strtod(argv[i + 1], nullptr);
    else if (key == "--threads") options.threads = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    else return 2;
  }
  const auto device = sim::LoadDevice(options.device, "configs/devices");
  if (!device.ok()) {
    std::fprintf(stderr, "timing_growth: %s\n", device.error().message.c_str());
    return 2;
  }
  std::printf("%s: million warp-instructions, thousand cycles a second\n", options.device.c_str());
  Head("SMs");
  for (const unsigned sms : {5u, 20u, 80u, 160u}) {
    sim::DeviceSpec changed = *device;
    changed.sm.count = sms;
    Row(sms, changed, std::uint64_t{sms} * 4, 1, options);
  }
  Head("CTAs");
  for (const unsigned ctas : {20u, 80u, 320u, 1280u}) Row(ctas, *device, ctas, 1, options);
  Head("tenants");
  for (const unsigned tenants : {1u, 4u, 16u, 64u}) Row(tenants, *device, 320 / tenants, tenants, options);
  return 0;
}

}  // namespace
}  // namespace gridloom::timing

int main(int argc, char** argv) { return gridloom::timing::Main(argc, argv); }
