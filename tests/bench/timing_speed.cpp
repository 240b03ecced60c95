// Measures the speed of the timing model.
//   usage: build/timing_speed [--device NAME]... [--threads N,N] [--ctas N] [--only TEXT] [--seconds S] [--plain]
// Prints, for each device, kernel and number of host threads: simulated cycles, million warp-instructions and thousand
// simulated cycles a second of CPU time of the slowest thread (so that other programs on the machine matter less), line
// requests to L2 per warp-instruction, the aim for one thread, and how well the threads share the work (WorkShared).
// Runs with several numbers of threads must give the same cycles.
#include <sys/resource.h>
#include <sys/time.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/device/device_files.h"
#include "tests/bench/timing_kernels.h"
#include "tests/bench/timing_measure.h"

namespace gridloom::timing {
namespace {

struct Options {
  std::vector<std::string> devices;
  std::vector<unsigned> threads;
  std::uint64_t ctas = 320;
  std::string only;
  double seconds = 0.3;
  bool plain = false;
};

void Bench(const std::string& name, const Options& options) {
  auto device = sim::LoadDevice(name, "configs/devices");
  if (!device.ok()) {
    std::fprintf(stderr, "timing_speed: %s\n", device.error().message.c_str());
    std::exit(2);
  }
  std::printf(
      "\n### %s, %u SMs\n\n| kernel | threads | warp-instructions | cycles | M instructions/s | K cycles/s | L2 "
      "requests/instruction | aim "
      "| work shared |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
      name.c_str(), device->sm.count);
  for (const BenchKernel& kernel : BenchKernels(options.ctas)) {
    if (kernel.name.find(options.only) == std::string::npos) continue;
    const auto source = Loaded(*kernel.source);
    Cycle cycles = 0;
    for (const unsigned threads : options.threads) {
      EngineOptions engine_options;
      engine_options.threads = threads;
      engine_options.plain = options.plain;
      const Measurement m = Measure(*device, {source}, engine_options, options.seconds);
      const auto instructions = static_cast<double>(m.counters.sm.warp_instructions);
      const auto requests =
          static_cast<double>(m.counters.memory.l2_reads + m.counters.memory.l2_writes + m.counters.memory.l2_atomics);
      std::printf("| %s | %u | %.0f | %llu | %.3f | %.0f | %.2f | %g | %.2f |\n", kernel.name.c_str(), threads,
                  instructions, static_cast<unsigned long long>(m.cycles), instructions / m.seconds * 1e-6,
                  static_cast<double>(m.cycles) / m.seconds * 1e-3, requests / instructions, kernel.aim,
                  threads == 1 ? 1 : WorkShared(*device, {source}, engine_options));
      std::fflush(stdout);
      if (cycles != 0 && cycles != m.cycles) {
        std::fprintf(stderr, "timing_speed: %s: the number of threads changed the cycles\n", kernel.name.c_str());
        std::exit(1);
      }
      cycles = m.cycles;
    }
  }
}

std::vector<unsigned> Numbers(const char* text) {
  std::vector<unsigned> numbers;
  for (char* rest = nullptr; *text != '\0'; text = *rest == ',' ? rest + 1 : rest) {
    numbers.push_back(static_cast<unsigned>(std::strtoul(text, &rest, 10)));
    if (rest == text) std::exit(2);
  }
  return numbers;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--plain") {
      options.plain = true;
      continue;
    }
    if (i + 1 == argc) {
      std::fprintf(
          stderr,
          "usage: timing_speed [--device NAME]... [--threads N,N] [--ctas N] [--only TEXT] [--seconds S] [--plain]\n");
      return 2;
    }
    const char* value = argv[++i];
    if (key == "--device") options.devices.push_back(value);
    else if (key == "--threads") options.threads = Numbers(value);
    else if (key == "--ctas") options.ctas = std::strtoull(value, nullptr, 10);
    else if (key == "--only") options.only = value;
    else if (key == "--seconds") options.seconds = std::strtod(value, nullptr);
  }
  if (options.devices.empty()) options.devices = {"k20c", "v100"};
  if (options.threads.empty()) options.threads = {1, 2};
  for (const std::string& device : options.devices) Bench(device, options);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("\nlargest memory in use: %ld MiB\n", usage.ru_maxrss / 1024);
  return 0;
}

}  // namespace
}  // namespace gridloom::timing

int main(int argc, char** argv) { return gridloom::timing::Main(argc, argv); }
