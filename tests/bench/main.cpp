// Runs every benchmark on the CUDA driver it sees, on OpenCL and as plain C++, in one process and on the same input,
// compares the results and prints one JSON line per benchmark. tests/bench/run starts it under Gridloom and makes the
// table.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tests/apps/driver/host.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/options.h"

EMBED(kPtx, BENCH_PTX);
EMBED(kSource, BENCH_CL);

namespace {

struct Options {
  int threads = 1;
  double scale = 1, seconds = 0.5;
  std::string only;
  bool cuda = true, cpu_time = false;
};
Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (option == "--threads") options.threads = bench::Number<int>(argv[0], option, value());
    else if (option == "--scale") options.scale = bench::Number<double>(argv[0], option, value());
    else if (option == "--seconds") options.seconds = bench::Number<double>(argv[0], option, value());
    else if (option == "--only") options.only = value();
    else if (option == "--no-cuda") options.cuda = false;  // OpenCL and C++ alone, to check those
    else if (option == "--cpu-time") options.cpu_time = true;
    else {
      std::fprintf(stderr, "usage: %s [--threads N] [--scale X] [--seconds S] [--only NAME] [--no-cuda] [--cpu-time]\n",
                   argv[0]);
      std::exit(2);
    }
  }
  return options;
}

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// CPU time of all threads: what a run on one core would take if nobody else used that core.
double CpuTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Timing {
  double first = 0, best = 0;  ///< seconds; the first run includes compilation
  double until_final = 0;      ///< seconds that passed until all code was final; negative: it never was
};
/// Seconds for final code. Who spends no time on measurements wants the results alone, and does not wait for long.
double MostWait(const Options& options) { return options.seconds > 0 ? 60 : 5; }

/// `has_final_code`: whether what runs next is as fast as it will be. What ran before that is not measured.
template <class Run, class HasFinalCode>
Timing Measure(const Options& options, Run run, HasFinalCode has_final_code) {
  const auto clock = options.cpu_time ? &CpuTime : &Now;
  const double first_begin = clock(), wait_begin = Now();
  run();
  Timing timing{clock() - first_begin, 1e30};
  run();  // the second run of a kernel asks for its code, however short the first was
  while (!has_final_code() && Now() - wait_begin < MostWait(options)) run();
  timing.until_final = has_final_code() ? Now() - wait_begin : -1;
  const double begin = clock();
  for (int repeat = 0; repeat < 5 || (clock() - begin < options.seconds && repeat < 2000); ++repeat) {
    const double start = clock();
    run();
    timing.best = std::min(timing.best, clock() - start);
  }
  return timing;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  const auto cuda = options.cuda ? bench::OpenCuda(kPtx) : nullptr;
  std::string reason;
  const auto opencl = bench::OpenOpenCl(kSource, &reason);
  std::printf("{\"cuda\": \"%s\", \"opencl\": \"%s\", \"opencl_missing\": \"%s\", \"threads\": %d}\n",
              cuda ? cuda->name().c_str() : "", opencl ? opencl->name().c_str() : "", reason.c_str(), options.threads);
  long failures = 0;
  for (const bench::NamedBenchmark& named : bench::AllBenchmarks()) {
    if (!options.only.empty() && named.name != options.only) continue;
    const bench::Benchmark b = named.make(options.scale);
    const Timing native = Measure(
        options, [&] { b.run_native(options.threads); }, [] { return true; });
    const auto want = b.native_result();
    Timing timings[2];
    long bad[2] = {0, 0};
    bench::Device* devices[2] = {cuda.get(), opencl.get()};
    for (int k = 0; k < 2; ++k) {
      if (!devices[k]) continue;
      b.upload(*devices[k]);
      timings[k] = Measure(
          options, [&] { b.run(*devices[k]), devices[k]->Finish(); }, [&] { return devices[k]->HasFinalCode(); });
      bad[k] = bench::Differences(b.download(*devices[k]), want, b.tolerance);
      failures += bad[k] != 0;
    }
    std::printf(
        "{\"name\": \"%s\", \"shape\": \"%s\", \"native\": %.9f, \"cuda\": %.9f, \"cuda_first\": %.9f, \"cuda_final\": "
        "%.9f, \"cuda_wrong\": %ld, "
        "\"opencl\": %.9f, \"opencl_first\": %.9f, \"opencl_wrong\": %ld}\n",
        b.name.c_str(), b.shape.c_str(), native.best, timings[0].best, timings[0].first, timings[0].until_final, bad[0],
        timings[1].best, timings[1].first, bad[1]);
    std::fflush(stdout);
  }
  return failures != 0;
}
