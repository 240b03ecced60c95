// lowering_speed: how long it takes to make what a GPU executes of the kernels of a module (docs/lowering.md), in
// processor time of the best of several runs, and which passes take it.
//   build/lowering_speed [--kernels N] [--device NAME] [--runs N] [--ptx FILE]
// The kernels are those of the committed PTX, or of FILE, again and again with other constants until there are N.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "sim/device/device_files.h"
#include "sim/lowering/lower.h"
#include "sim/trace/code_table.h"
#include "tests/bench/options.h"

namespace gridloom {
namespace {

struct Options {
  unsigned kernels = 1000, runs = 3;
  std::string device = "h200", ptx;
};

double CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "lowering_speed: %s\n", message.c_str());
  std::exit(1);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> FilesOf(const std::string& path) {
  if (!path.empty()) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/data/ptx")) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<trace::KernelCode> KernelsOf(const std::string& path) {
  std::vector<trace::KernelCode> kernels;
  for (const std::string& file : FilesOf(path)) {
    DiagnosticSink sink;
    const std::string text = ReadFile(file);
    const auto module = ptx::ParseModule(text, sink);
    if (sink.has_errors()) Die(file + " is no PTX");
    for (const ptx::Function& function : module->functions) {
      if (function.is_entry && function.body) kernels.push_back(trace::BuildCodeTable(*module, function).code);
    }
  }
  if (kernels.empty()) Die("there is no kernel");
  return kernels;
}

/// `count` kernels, no two of them alike: those that come again have larger constants.
std::vector<trace::KernelCode> ModuleOf(const std::vector<trace::KernelCode>& kernels, unsigned count) {
  std::vector<trace::KernelCode> module;
  for (unsigned i = 0; i < count; ++i) {
    trace::KernelCode& kernel = module.emplace_back(kernels[i % kernels.size()]);
    const std::uint64_t copy = i / kernels.size();
    kernel.name += "_" + std::to_string(copy);
    for (trace::Term& term : kernel.meanings.terms) {
      if (term.kind == trace::Term::Kind::kNumber && term.value > 1) term.value += 16 * copy;
    }
  }
  return module;
}

struct Cost {
  double ms = std::numeric_limits<double>::max();
  std::size_t executed = 0;  ///< instructions
  std::string slowest;
  double slowest_ms = 0;
};

Cost LowerAll(const std::vector<trace::KernelCode>& module, const sim::DeviceSpec& device) {
  Cost cost{.ms = 0, .slowest = {}};
  for (const trace::KernelCode& code : module) {
    const double before = CpuMs();
    const auto lowered = lowering::Lower(code, device);
    const double ms = CpuMs() - before;
    if (!lowered.ok()) Die(code.name + ": " + lowered.error().message);
    cost.ms += ms;
    cost.executed += lowered->code.instructions.size();
    if (ms > cost.slowest_ms) cost.slowest = code.name, cost.slowest_ms = ms;
  }
  return cost;
}

/// What each pass takes of all kernels, one after the other.
std::vector<double> PassTimes(const std::vector<trace::KernelCode>& module, const sim::DeviceSpec& device) {
  const auto passes = lowering::Passes();
  std::vector<double> times(passes.size());
  for (const trace::KernelCode& code : module) {
    lowering::Kernel kernel = lowering::KernelOf(code);
    const lowering::Target target{.device = device, .budget = std::max(32u, code.register_count)};
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (!kernel.has_meanings && passes[i].needs_meanings) continue;
      const double before = CpuMs();
      passes[i].run(kernel, target);
      times[i] += CpuMs() - before;
    }
  }
  return times;
}

void Bench(const Options& options) {
  auto device = sim::LoadDevice(options.device, "configs/devices");
  if (!device.ok()) Die(device.error().message);
  device->timing.lowering = sim::Lowering::kFull;
  const std::vector<trace::KernelCode> kernels = KernelsOf(options.ptx), module = ModuleOf(kernels, options.kernels);
  Cost best;
  for (unsigned run = 0; run < std::max(1u, options.runs); ++run) {
    Cost cost = LowerAll(module, *device);
    if (cost.ms < best.ms) best = std::move(cost);
  }
  std::size_t instructions = 0;
  for (const trace::KernelCode& code : module) instructions += code.instructions.size();
  std::printf("%u kernels (%zu without those that come again), %zu instructions of PTX, %zu executed on %s\n",
              options.kernels, kernels.size(), instructions, best.executed, options.device.c_str());
  std::printf("%.1f ms, of which %s %.2f ms\n\n| pass | ms |\n|---|--:|\n", best.ms, best.slowest.c_str(),
              best.slowest_ms);
  const std::vector<double> times = PassTimes(module, *device);
  double sum = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::printf("| %s | %.1f |\n", lowering::Passes()[i].name, times[i]);
    sum += times[i];
  }
  std::printf("| all passes | %.1f |\n", sum);
}

}  // namespace
}  // namespace gridloom

int main(int argc, char** argv) {
  gridloom::Options options;
  const bench::Option known[] = {{"--kernels", &options.kernels},
                                 {"--device", &options.device},
                                 {"--runs", &options.runs},
                                 {"--ptx", &options.ptx}};
  bench::ParseOptions(argc, argv, known);
  gridloom::Bench(options);
}
