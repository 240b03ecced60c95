// Measures the speed of the timing model.
//   usage: build/timing_speed [--device NAME]... [--threads N,N] [--ctas N] [--only TEXT] [--seconds S] [--plain]
//                             [--lowering none,full] [--trace FILE]...
// Prints, for each device, kernel, lowering and number of host threads: simulated cycles, million warp-instructions of
// PTX and thousand simulated cycles a second of CPU time of the slowest thread (so that other programs on the machine
// matter less), line requests to L2 per warp-instruction, the aim for one thread, and how well the threads share the
// work (WorkShared). Lowerings are measured in turns; without --lowering there is the device's. With traces (gridloom
// run --trace FILE) their launches are the kernels, and the last line has how many times the speed of the first
// lowering the last one has in the geometric mean. Runs with several numbers of threads must give the same cycles.
#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "sim/device/device_files.h"
#include "sim/trace/trace_file.h"
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
  std::vector<sim::Lowering> lowerings;
  std::vector<std::string> traces;
};

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "timing_speed: %s\n", message.c_str());
  std::exit(2);
}

struct Launch {
  std::string name;
  double aim = 0;  ///< 0: none
  std::shared_ptr<trace::CtaSource> source;
};

/// The made ones, or the launches that programs have made according to their traces.
std::vector<Launch> LaunchesOf(const Options& options) {
  std::vector<Launch> launches;
  for (const std::string& path : options.traces) {
    const auto file = trace::TraceFile::Open(path);
    if (!file.ok()) Die(file.error().message);
    for (std::size_t i = 0; i < (*file)->launches().size(); ++i) {
      if (!(*file)->launches()[i].info.of_program()) continue;
      std::shared_ptr<trace::CtaSource> source = trace::TraceFile::Source(*file, i);
      const std::string name = source->code().name + " " + std::to_string(i);
      if (name.find(options.only) != std::string::npos) launches.push_back({name, 0, std::move(source)});
    }
  }
  if (!options.traces.empty()) return launches;
  for (const BenchKernel& kernel : BenchKernels(options.ctas)) {
    if (kernel.name.find(options.only) != std::string::npos)
      launches.push_back({kernel.name, kernel.aim, kernel.source});
  }
  return launches;
}

using Sources = std::vector<std::shared_ptr<trace::CtaSource>>;

/// The best of each lowering, in turns.
std::vector<Measurement> MeasureInTurns(sim::DeviceSpec device, const Sources& sources, const Options& options,
                                        const EngineOptions& engine_options) {
  constexpr int kRounds = 3;
  std::vector<Measurement> best(options.lowerings.size());
  for (int round = 0; round < (best.size() == 1 ? 1 : kRounds); ++round) {
    for (std::size_t i = 0; i < best.size(); ++i) {
      device.timing.lowering = options.lowerings[i];
      const Measurement one = Measure(device, sources, engine_options, options.seconds);
      if (one.seconds < best[i].seconds) best[i] = one;
    }
  }
  return best;
}

double PtxInstructions(sim::DeviceSpec device, const Sources& sources) {
  device.timing.lowering = sim::Lowering::kNone;
  return static_cast<double>(Measure(device, sources, {}, 0).counters.sm.warp_instructions);
}

void Print(const Launch& launch, const char* lowering, unsigned threads, double ptx, const Measurement& measured,
           double shared) {
  const MemoryCounters& memory = measured.counters.memory;
  const auto instructions = static_cast<double>(measured.counters.sm.warp_instructions);
  const auto requests = static_cast<double>(memory.l2_reads + memory.l2_writes + memory.l2_atomics);
  std::printf("| %s | %s | %u | %.0f | %llu | %.3f | %.0f | %.2f | %g | %.2f |\n", launch.name.c_str(), lowering,
              threads, instructions, static_cast<unsigned long long>(measured.cycles), ptx / measured.seconds * 1e-6,
              static_cast<double>(measured.cycles) / measured.seconds * 1e-3, requests / instructions, launch.aim,
              shared);
  std::fflush(stdout);
}

/// All lowerings and numbers of threads of a launch. Returns the last lowering's speed by the first one's, on one
/// thread.
double BenchLaunch(const sim::DeviceSpec& device, const Launch& launch, const Options& options) {
  const Sources sources{Loaded(*launch.source)};
  const double ptx = PtxInstructions(device, sources);
  std::vector<Cycle> cycles(options.lowerings.size());
  double faster = 1;
  for (const unsigned threads : options.threads) {
    EngineOptions engine_options;
    engine_options.threads = threads;
    engine_options.plain = options.plain;
    const std::vector<Measurement> best = MeasureInTurns(device, sources, options, engine_options);
    if (threads == 1) faster = best.front().seconds / best.back().seconds;
    for (std::size_t i = 0; i < best.size(); ++i) {
      sim::DeviceSpec lowered = device;
      lowered.timing.lowering = options.lowerings[i];
      Print(launch, sim::kLoweringNames[static_cast<std::size_t>(options.lowerings[i])], threads, ptx, best[i],
            threads == 1 ? 1 : WorkShared(lowered, sources, engine_options));
      if (cycles[i] != 0 && cycles[i] != best[i].cycles) Die(launch.name + ": threads changed the cycles");
      cycles[i] = best[i].cycles;
    }
  }
  return faster;
}

void Bench(const std::string& name, Options options) {
  auto device = sim::LoadDevice(name, "configs/devices");
  if (!device.ok()) Die(device.error().message);
  if (options.lowerings.empty()) options.lowerings = {device->timing.lowering};
  std::printf(
      "\n### %s, %u SMs\n\n| kernel | lowering | threads | warp-instructions | cycles | M instructions/s | K cycles/s "
      "| L2 requests/instruction | aim | work shared |\n"
      "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
      name.c_str(), device->sm.count);
  double logs = 0;
  const std::vector<Launch> launches = LaunchesOf(options);
  for (const Launch& launch : launches) logs += std::log(BenchLaunch(*device, launch, options));
  if (options.lowerings.size() > 1 && !launches.empty())
    std::printf("the last lowering's speed by the first one's: %.2f\n",
                std::exp(logs / static_cast<double>(launches.size())));
}

std::vector<sim::Lowering> Lowerings(const std::string& text) {
  std::vector<sim::Lowering> lowerings;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto name = std::ranges::find(sim::kLoweringNames, word);
    if (name == sim::kLoweringNames.end()) Die("--lowering knows none and full, not '" + word + "'");
    lowerings.push_back(static_cast<sim::Lowering>(name - sim::kLoweringNames.begin()));
  }
  return lowerings;
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
          "usage: timing_speed [--device NAME]... [--threads N,N] [--ctas N] [--only TEXT] [--seconds S] [--plain] "
          "[--lowering none,full] [--trace FILE]...\n");
      return 2;
    }
    const char* value = argv[++i];
    if (key == "--device") options.devices.push_back(value);
    else if (key == "--threads") options.threads = Numbers(value);
    else if (key == "--ctas") options.ctas = std::strtoull(value, nullptr, 10);
    else if (key == "--only") options.only = value;
    else if (key == "--seconds") options.seconds = std::strtod(value, nullptr);
    else if (key == "--lowering") options.lowerings = Lowerings(value);
    else if (key == "--trace") options.traces.push_back(value);
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
