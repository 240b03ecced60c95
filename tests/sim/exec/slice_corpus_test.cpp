// Every kernel of the committed PTX corpus that can run, whole and in slices: the same memory and the same faults. The kernels get
// made-up parameters, a buffer for every 64-bit one. CTAs run one after the other, so that kernels whose CTAs race give the same
// whole and in slices, too.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <set>

#include "rewriter/ptx/parser.h"
#include "sim/exec/slices.h"
#include "tests/rewriter/ptx/corpus.h"
#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

/// A buffer per 64-bit parameter, filled with small numbers, so that indices found in them lead somewhere.
class Parameters {
 public:
  Parameters(Executor& executor, const exec::KernelInfo& kernel) : executor_(executor), block_(kernel.params.bytes) {
    for (std::size_t i = 0; i < kernel.param_bytes.size(); ++i) {
      std::byte* const at = block_.data() + kernel.params.offsets[i];
      if (kernel.param_bytes[i] == 8) {
        buffers_.push_back(executor.Upload(std::vector<std::uint8_t>(kBufferBytes)));
        std::memcpy(at, &buffers_.back(), 8);
      } else if (kernel.param_bytes[i] <= 4) {
        const std::uint32_t number = 5 + static_cast<std::uint32_t>(i);
        std::memcpy(at, &number, kernel.param_bytes[i]);
      }
    }
  }
  ~Parameters() {
    for (const std::uint64_t buffer : buffers_) executor_.Free(buffer);
  }
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  void Reset() {
    for (const std::uint64_t buffer : buffers_) {
      auto* const words = reinterpret_cast<std::uint32_t*>(buffer);
      for (std::size_t i = 0; i < kBufferBytes / 4; ++i) words[i] = static_cast<std::uint32_t>(i * 7 % 61);
    }
  }
  std::vector<std::uint8_t> Memory() const {
    std::vector<std::uint8_t> memory;
    for (const std::uint64_t buffer : buffers_) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(buffer);
      memory.insert(memory.end(), bytes, bytes + kBufferBytes);
    }
    return memory;
  }
  const std::vector<std::byte>& block() const { return block_; }

 private:
  Executor& executor_;
  std::vector<std::byte> block_;
  std::vector<std::uint64_t> buffers_;
};

struct Tally {
  unsigned same = 0, faulted = 0, refused = 0, not_run = 0, moody = 0;
  std::set<std::pair<std::string, std::size_t>> seen;  ///< kernels by name and length: the corpus has them for many targets
};

exec::Dim3 BlockFor(const exec::KernelInfo& kernel) {
  if (kernel.required_block[0] != 0)
    return {kernel.required_block[0], std::max(kernel.required_block[1], 1u), std::max(kernel.required_block[2], 1u)};
  return {std::min(kernel.max_threads, 64u), 1, 1};
}

void CheckKernel(Executor& executor, exec::SlicedProgram& rewritten, const std::shared_ptr<exec::Program>& program,
                 const exec::KernelInfo& kernel, Tally& tally) {
  if (!tally.seen.emplace(kernel.name, kernel.function->body->statements.size()).second) return;
  const auto sliced = rewritten.Find(kernel.name);
  if (sliced->program == nullptr) {
    ++tally.refused;
    return;
  }
  Parameters parameters(executor, kernel);
  exec::LaunchParams whole;
  whole.program = program;
  whole.kernel = &kernel;
  whole.grid = {3, 2, 2};
  whole.block = BlockFor(kernel);
  whole.params = parameters.block();
  whole.dynamic_shared_bytes = 8192;
  parameters.Reset();
  const exec::LaunchFault fault = executor.engine().Run(whole);
  const auto memory = parameters.Memory();
  if (fault.kind == exec::FaultKind::kCompile || fault.kind == exec::FaultKind::kOutOfMemory) {
    ++tally.not_run;
    return;
  }
  parameters.Reset();
  executor.engine().Run(whole);
  if (fault.kind == exec::FaultKind::kNone && parameters.Memory() != memory) {  // it reads clocks or memory that nobody wrote
    ++tally.moody;
    return;
  }
  for (const std::uint64_t size : {1, 5, 64}) {
    parameters.Reset();
    const exec::SlicedRun run = exec::RunInSlices(executor.engine(), whole, *sliced, size);
    INFO("kernel " << kernel.name << " in slices of " << size << ", whole: " << fault.text << ", sliced: " << run.fault.text);
    CHECK(run.fault.kind == fault.kind);
    CHECK(run.fault.cta.x == fault.cta.x);
    CHECK(run.fault.cta.y == fault.cta.y);
    CHECK(run.fault.cta.z == fault.cta.z);
    CHECK((run.fault.ptx_line == fault.ptx_line));
    const bool same = fault.kind != exec::FaultKind::kNone || parameters.Memory() == memory;
    CHECK(same);
  }
  ++(fault.kind == exec::FaultKind::kNone ? tally.same : tally.faulted);
}

}  // namespace

TEST_CASE("CorpusKernelsInSlices_SameMemoryAndFaults") {
  exec::Engine::Options options;
  options.threads = 1;
  options.watchdog_seconds = 1;
  Executor executor(options);
  passes::RewriteCache rewrites(4);
  Tally tally;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    INFO(file.path);
    DiagnosticSink sink;
    auto program = exec::Program::Load(ptx::ParseModule(file.text, sink), file.text, executor.memory());
    if (!program.ok()) continue;
    exec::SlicedProgram rewritten(*program, executor.memory(), rewrites);
    for (const exec::KernelInfo& kernel : (*program)->kernels()) CheckKernel(executor, rewritten, *program, kernel, tally);
  }
  std::printf(
      "corpus: %u kernels the same in slices, %u fault in the same place, %u refused by the pass, %u cannot run, %u do not repeat "
      "themselves\n",
      tally.same, tally.faulted, tally.refused, tally.not_run, tally.moody);
  CHECK(tally.same > 50);
}

}  // namespace gridloom::test
