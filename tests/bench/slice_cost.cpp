// slice_cost: what running in slices costs each benchmark on the executor, by slice size, and the smallest size that
// costs no more than p % (docs/passes.md; Kernelet, section 4.1 and Fig. 6). Results are compared with those of plain
// C++.
//   build/slice_cost [--percent 2] [--threads N] [--scale X] [--seconds S] [--only NAME]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <ranges>

#include "sim/exec/slices/slices.h"
#include "tests/apps/driver/host.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/engine_device.h"
#include "tests/bench/options.h"
#include "tests/bench/smallest_slice.h"

EMBED(kPtx, BENCH_PTX);

namespace {

using namespace gridloom;

/// Runs grids whole or in slices.
class SlicingDevice final : public bench::EngineDevice {
 public:
  SlicingDevice(const char* ptx, unsigned threads)
      : EngineDevice("slice_cost", ptx, threads),
        sliced_(std::make_unique<exec::SlicedProgram>(program(), memory(), rewrites_)) {}

  void set_slice_size(std::uint64_t size) { size_ = size; }
  /// CTAs of the largest grid since the last call; and why a kernel among them cannot be sliced.
  std::uint64_t TakeCtas() { return std::exchange(ctas_, 0); }
  const std::string& why_whole() const { return why_whole_; }

 private:
  exec::LaunchFault Run(exec::LaunchParams& launch, const char* kernel) override {
    ctas_ = std::max(ctas_, launch.grid.count());
    return size_ == 0 ? engine().Run(launch) : RunSliced(launch, kernel);
  }
  exec::LaunchFault RunSliced(const exec::LaunchParams& launch, const char* kernel) {
    auto& sliced = kernels_[kernel];
    if (sliced == nullptr) sliced = sliced_->Find(kernel);
    if (sliced->program == nullptr) {
      why_whole_ = sliced->why_whole;
      return engine().Run(launch);
    }
    return exec::RunInSlices(engine(), launch, *sliced, size_).fault;
  }

  passes::RewriteCache rewrites_{1};
  std::unique_ptr<exec::SlicedProgram> sliced_;
  std::map<std::string, std::shared_ptr<const exec::SlicedKernel>> kernels_;
  std::uint64_t size_ = 0, ctas_ = 0;
  std::string why_whole_;
};

struct Options {
  double percent = 2, scale = 1, seconds = 0.05;
  unsigned threads = 1;
  std::string only;
};

Options Parse(int argc, char** argv) {
  Options options;
  const bench::Option known[] = {{"--percent", &options.percent},
                                 {"--threads", &options.threads},
                                 {"--scale", &options.scale},
                                 {"--seconds", &options.seconds},
                                 {"--only", &options.only}};
  bench::ParseOptions(argc, argv, known);
  return options;
}

/// Best of at least five runs of each size and as many as fit into the time. The sizes take turns, so that a busy
/// machine does not slow one of them down and leave the other.
std::vector<double> BestTimes(const Options& options, const bench::Benchmark& benchmark, SlicingDevice& device,
                              const std::vector<std::uint64_t>& sizes) {
  const auto seconds = [&](std::uint64_t size) {
    device.set_slice_size(size);
    const double start = bench::CpuTime();
    benchmark.run(device);
    return bench::CpuTime() - start;
  };
  for (const std::uint64_t size : sizes) seconds(size);  // compiles
  std::vector<double> best(sizes.size(), 1e30);
  const double begin = bench::CpuTime();
  for (int run = 0;
       run < 5 || (run < 1000 && bench::CpuTime() - begin < options.seconds * static_cast<double>(sizes.size()));
       ++run) {
    for (std::size_t i = 0; i < sizes.size(); ++i) best[i] = std::min(best[i], seconds(sizes[i]));
  }
  return best;
}

/// One row of the table; false when a result is wrong.
bool Row(const Options& options, const bench::Benchmark& benchmark, SlicingDevice& device) {
  static constexpr std::uint64_t kSizes[] = {1, 4, 16, 64, 256, 1024};
  benchmark.run_native(1);
  benchmark.upload(device);
  device.set_slice_size(0);
  device.TakeCtas();
  benchmark.run(device);
  const std::uint64_t ctas = device.TakeCtas();
  std::vector<std::uint64_t> sizes = {0};
  std::ranges::copy_if(kSizes, std::back_inserter(sizes), [&](std::uint64_t size) { return size <= ctas; });
  sizes.push_back(ctas);
  const std::vector<double> times = BestTimes(options, benchmark, device, sizes);
  std::printf("| %s | %llu | %.3f |", benchmark.name.c_str(), static_cast<unsigned long long>(ctas), times[0] * 1e3);
  const auto print = [&](double time) { std::printf(" %.1f |", 100 * (time / times[0] - 1)); };
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) print(times[i]);
  for (std::size_t i = sizes.size() - 2; i < std::size(kSizes); ++i) std::printf(" |");
  print(times.back());
  // In units of the whole grid, which is measured anew beside each size.
  const auto found = bench::FindSmallestSlice(
      ctas,
      [&](std::uint64_t size) {
        const std::vector<double> pair = BestTimes(options, benchmark, device, {0, size == 0 ? ctas : size});
        return pair[1] / pair[0];
      },
      options.percent);
  const bool right =
      bench::Differences(benchmark.download(device), benchmark.native_result(), benchmark.tolerance) == 0;
  std::printf(" %llu |%s%s\n", static_cast<unsigned long long>(found.size),
              device.why_whole().empty() ? "" : " runs whole: ", device.why_whole().c_str());
  if (!right) std::printf("WRONG RESULTS: %s\n", benchmark.name.c_str());
  std::fflush(stdout);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  SlicingDevice device(kPtx, options.threads);
  std::printf(
      "Cost of slices in %% of the time of the whole grid, by CTAs per slice; %u thread%s, CPU time, best of several "
      "runs.\n\n",
      options.threads, options.threads == 1 ? "" : "s");
  std::printf(
      "| kernel | CTAs | whole ms | 1 | 4 | 16 | 64 | 256 | 1024 | one slice | smallest within %g %% "
      "|\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
      options.percent);
  bool right = true;
  for (const bench::NamedBenchmark& named : bench::AllBenchmarks()) {
    if (!options.only.empty() && named.name != options.only) continue;
    right &= Row(options, named.make(options.scale), device);
  }
  return right ? 0 : 1;
}
