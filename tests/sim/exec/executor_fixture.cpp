#include "tests/sim/exec/executor_fixture.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "sim/device/device_files.h"

namespace gridloom::test {
namespace {

template <typename T>
T Take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

}  // namespace

Executor::Executor(exec::Engine::Options options) {
  // The same tests with less of the processor: avx2 or baseline (see CMakeLists.txt).
  if (const char* features = std::getenv("GRIDLOOM_TEST_CPU"); features && options.cpu_features.empty())
    options.cpu_features = features;
  if (const char* tiers = std::getenv("GRIDLOOM_TEST_TIERS"); tiers && options.tiers.empty()) {
    options.tiers = tiers;
    if (!options.log)
      options.log = [](std::string_view text) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
      };
  }
  exec::DeviceMemory::Options memory;
  memory.limit_bytes = std::uint64_t{2} << 30;
  memory.remember_freed = options.memcheck;
  memory_ = Take(exec::DeviceMemory::Create(memory));
  engine_ = Take(exec::Engine::Create(options, Take(sim::LoadDevice("h200")), *memory_));
}

Executor::~Executor() = default;

exec::LaunchFault Executor::Launch(const std::string& ptx, const std::string& kernel, exec::Dim3 grid, exec::Dim3 block,
                                   const ParamBlock& params, std::uint32_t dynamic_shared_bytes) {
  exec::LaunchParams launch;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared_bytes = dynamic_shared_bytes;
  launch.params = params.bytes();
  return Launch(ptx, kernel, std::move(launch));
}

exec::LaunchFault Executor::Launch(const std::string& ptx, const std::string& kernel, exec::LaunchParams launch,
                                   exec::LaunchStats* stats) {
  std::shared_ptr<exec::Program>& program = programs_[ptx];
  if (!program) {
    DiagnosticSink sink;
    auto module = ptx::ParseModule(ptx, sink);
    if (sink.has_errors()) throw std::runtime_error(FormatDiagnostics(sink, "test.ptx", ptx));
    program = Take(exec::Program::Load(std::move(module), ptx, *memory_));
  }
  launch.program = program;
  launch.kernel = program->FindKernel(kernel);
  if (!launch.kernel) throw std::runtime_error("no kernel " + kernel);
  return engine_->Run(launch, stats);
}

}  // namespace gridloom::test
