// capture_cost: what capturing traces costs each benchmark on the executor, as multiples of the plain run's CPU time
// (docs/measurements/trace-format.md). Every run's results are compared with those of plain C++.
//   build/capture_cost [--threads N] [--scale X] [--seconds S] [--only NAME] [--mode N]
// Columns: `records`: what compiled kernels write is thrown away. `live`: the CTAs' traces are made and freed, as the
// timing model wants them. `encoded`: they are encoded in batches. `file`: and compressed and written, to /dev/null.
// --mode N, for a profiler: after a first run of all, only column N (0: plain) is run again.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "sim/trace/capture.h"
#include "sim/trace/code_table.h"
#include "sim/trace/trace_file.h"
#include "tests/apps/driver/host.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/engine_device.h"
#include "tests/bench/options.h"

EMBED(kPtx, BENCH_PTX);

namespace {

using namespace gridloom;

enum class Mode { kPlain, kRecords, kLive, kEncoded, kFile };

class Ignore final : public exec::RecordSink, public exec::RecordStream {
 public:
  exec::RecordStream& Open() override { return *this; }
  void OnRecords(const exec::RecordPlace&, std::span<const std::uint64_t> words, std::uint32_t) override {
    words_ += words.size();
  }
  std::uint64_t words() const { return words_; }

 private:
  std::uint64_t words_ = 0;  // of one host thread, or about
};

/// Captures launches as its mode says.
class CapturingDevice final : public bench::EngineDevice {
 public:
  CapturingDevice(const char* ptx, unsigned threads) : EngineDevice("capture_cost", ptx, threads) {}

  void set_mode(Mode mode) { mode_ = mode; }
  /// Of the launches since the last call: warp instructions, words of their records, and bytes of the encoded CTAs.
  std::uint64_t TakeInstructions() { return std::exchange(instructions_, 0); }
  std::uint64_t TakeWords() { return std::exchange(words_, 0); }
  std::uint64_t TakeBytes() { return std::exchange(bytes_, 0); }

 private:
  exec::LaunchFault Run(exec::LaunchParams& launch, const char* kernel) override {
    if (mode_ == Mode::kPlain) return engine().Run(launch);
    if (mode_ == Mode::kRecords) {
      Ignore ignore;
      launch.records = &ignore;
      const exec::LaunchFault fault = engine().Run(launch);
      if (count_) words_ += ignore.words();
      return fault;
    }
    auto& table = tables_[kernel];
    if (!table) {
      table = std::make_unique<trace::CodeTable>(trace::BuildCodeTable(program()->module(), *launch.kernel->function));
      file_->AddKernel(table->code);
    }
    const trace::LaunchShape shape{.ctas = launch.grid.count(),
                                   .threads_per_cta = static_cast<std::uint32_t>(launch.block.count())};
    trace::CtaEncoder encoder(table->code);
    trace::ByteWriter bytes;
    std::unique_ptr<trace::LaunchWriter> writer;
    if (mode_ == Mode::kFile) {
      trace::LaunchInfo info;
      info.shape = shape;
      writer = file_->BeginLaunch(info, table->code);
    }
    trace::Capture capture(
        *table, shape,
        [&](trace::CtaRun&& run) {
          if (mode_ == Mode::kLive) {
            if (count_) instructions_ += trace::InstructionCount(table->code, *run.first.trace) * run.count;
            return;
          }
          run.ForEach([&](std::uint64_t cta, const trace::LoadedCta& trace) {
            if (writer) return writer->Add(cta, trace);
            encoder.Encode(trace, bytes);
            if (bytes.size() < 1u << 20) return;
            bytes_ += bytes.size();
            bytes.Clear();
          });
        },
        std::nullopt, &streams_);
    launch.records = &capture;
    const exec::LaunchFault fault = engine().Run(launch);
    bytes_ += bytes.size();
    if (writer) writer->End(0);
    return fault;
  }

 public:
  bool count_ = false;  ///< instructions are counted

 private:
  std::map<std::string, std::unique_ptr<trace::CodeTable>> tables_;
  trace::StreamPool streams_;
  const std::unique_ptr<trace::TraceWriter> file_ = Take(trace::TraceWriter::Create("/dev/null", "capture_cost"));
  Mode mode_ = Mode::kPlain;
  std::uint64_t instructions_ = 0, words_ = 0, bytes_ = 0;
};

struct Options {
  double scale = 1, seconds = 0.05;
  unsigned threads = 1;
  double mode = -1;
  std::string only;
};

Options Parse(int argc, char** argv) {
  Options options;
  const bench::Option known[] = {{"--threads", &options.threads},
                                 {"--scale", &options.scale},
                                 {"--seconds", &options.seconds},
                                 {"--only", &options.only},
                                 {"--mode", &options.mode}};
  bench::ParseOptions(argc, argv, known);
  return options;
}

double TimeOnce(const bench::Benchmark& benchmark, CapturingDevice& device, Mode mode) {
  device.set_mode(mode);
  const double start = bench::CpuTime();
  benchmark.run(device);
  return bench::CpuTime() - start;
}

/// One row of the table; false when a result is wrong.
bool Row(const Options& options, const bench::Benchmark& benchmark, CapturingDevice& device, double& product) {
  static constexpr Mode kModes[] = {Mode::kPlain, Mode::kRecords, Mode::kLive, Mode::kEncoded, Mode::kFile};
  benchmark.run_native(1);
  benchmark.upload(device);
  bool right = true;
  device.count_ = true;
  double best[std::size(kModes)];
  for (const Mode mode : kModes) {  // compiles
    device.TakeBytes();
    TimeOnce(benchmark, device, mode);
    right &= bench::Differences(benchmark.download(device), benchmark.native_result(), benchmark.tolerance) == 0;
    best[static_cast<std::size_t>(mode)] = 1e30;
    if (mode == Mode::kEncoded) break;
  }
  best[static_cast<std::size_t>(Mode::kFile)] = 1e30;
  device.count_ = false;
  const auto instructions = static_cast<double>(device.TakeInstructions());
  const auto words = static_cast<double>(device.TakeWords());
  const auto bytes = static_cast<double>(device.TakeBytes());
  // Turn by turn, so that what else the machine does meets all alike.
  const double begin = bench::CpuTime();
  for (int run = 0; run < 3 || (run < 1000 && bench::CpuTime() - begin < options.seconds * 5); ++run) {
    for (const Mode mode : kModes) {
      if (options.mode >= 0 && options.mode != static_cast<double>(mode)) continue;
      double& slot = best[static_cast<std::size_t>(mode)];
      slot = std::min(slot, TimeOnce(benchmark, device, mode));
    }
  }
  std::printf("| %s | %.2f | %.2f | %.2f |", benchmark.name.c_str(), instructions * 1e-6, best[0] * 1e3,
              best[0] * 1e9 / instructions);
  for (std::size_t i = 1; i < std::size(kModes); ++i) std::printf(" %.2f |", best[i] / best[0]);
  std::printf(" %.2f | %.3f |\n", words / instructions, bytes / instructions);
  if (!right) std::printf("WRONG RESULTS: %s\n", benchmark.name.c_str());
  std::fflush(stdout);
  product += std::log(best[2] / best[0]);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  CapturingDevice device(kPtx, options.threads);
  std::printf("Capture as a multiple of the plain run; %u thread%s, CPU time, best of several runs.\n\n",
              options.threads, options.threads == 1 ? "" : "s");
  std::printf(
      "| kernel | M warp instr | plain ms | ns per warp instr | records | live | encoded | file | words per warp instr "
      "| bytes per warp "
      "instr "
      "|\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  bool right = true;
  double product = 0;
  int rows = 0;
  for (const bench::NamedBenchmark& named : bench::AllBenchmarks()) {
    if (!options.only.empty() && named.name != options.only) continue;
    right &= Row(options, named.make(options.scale), device, product);
    ++rows;
  }
  if (rows > 0) std::printf("\nlive, geometric mean: %.2f\n", std::exp(product / rows));
  return right ? 0 : 1;
}
