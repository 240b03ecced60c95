// Kernels of the committed PTX corpus with made-up launches, for tests that run each of them as it is and rewritten.
// CTAs run one after the other, so that kernels whose CTAs race give the same both times.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

namespace gridloom::test {

inline constexpr std::size_t kCorpusBufferBytes = 1 << 16;

/// A buffer per 64-bit parameter, filled with small numbers, so that indices found in them lead somewhere.
class CorpusParameters {
 public:
  CorpusParameters(Executor& executor, const exec::KernelInfo& kernel)
      : executor_(executor), block_(kernel.params.bytes) {
    for (std::size_t i = 0; i < kernel.param_bytes.size(); ++i) {
      std::byte* const at = block_.data() + kernel.params.offsets[i];
      if (kernel.param_bytes[i] == 8) {
        buffers_.push_back(executor.Upload(std::vector<std::uint8_t>(kCorpusBufferBytes)));
        std::memcpy(at, &buffers_.back(), 8);
      } else if (kernel.param_bytes[i] <= 4) {
        const std::uint32_t number = 5 + static_cast<std::uint32_t>(i);
        std::memcpy(at, &number, kernel.param_bytes[i]);
      }
    }
  }
  ~CorpusParameters() {
    for (const std::uint64_t buffer : buffers_) executor_.Free(buffer);
  }
  CorpusParameters(const CorpusParameters&) = delete;
  CorpusParameters& operator=(const CorpusParameters&) = delete;

  void Reset() {
    for (const std::uint64_t buffer : buffers_) {
      auto* const words = reinterpret_cast<std::uint32_t*>(buffer);
      for (std::size_t i = 0; i < kCorpusBufferBytes / 4; ++i) words[i] = static_cast<std::uint32_t>(i * 7 % 61);
    }
  }
  std::vector<std::uint8_t> Memory() const {
    std::vector<std::uint8_t> memory;
    for (const std::uint64_t buffer : buffers_) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(buffer);
      memory.insert(memory.end(), bytes, bytes + kCorpusBufferBytes);
    }
    return memory;
  }
  const std::vector<std::byte>& block() const { return block_; }

 private:
  Executor& executor_;
  std::vector<std::byte> block_;
  std::vector<std::uint64_t> buffers_;
};

inline exec::Dim3 BlockFor(const exec::KernelInfo& kernel) {
  if (kernel.required_block[0] != 0)
    return {kernel.required_block[0], std::max(kernel.required_block[1], 1u), std::max(kernel.required_block[2], 1u)};
  return {std::min(kernel.max_threads, 64u), 1, 1};
}

/// Twelve CTAs in three dimensions. `parameters` outlives the result.
inline exec::LaunchParams CorpusLaunch(const std::shared_ptr<exec::Program>& program, const exec::KernelInfo& kernel,
                                       const CorpusParameters& parameters) {
  exec::LaunchParams whole;
  whole.program = program;
  whole.kernel = &kernel;
  whole.grid = {3, 2, 2};
  whole.block = BlockFor(kernel);
  whole.params = parameters.block();
  whole.dynamic_shared_bytes = 8192;
  return whole;
}

/// A kernel's run as it is, which runs of rewritten forms are compared with.
struct CorpusReference {
  CorpusReference(Executor& executor, const std::shared_ptr<exec::Program>& program, const exec::KernelInfo& kernel)
      : parameters(executor, kernel), whole(CorpusLaunch(program, kernel, parameters)) {
    parameters.Reset();
    fault = executor.engine().Run(whole);
    memory = parameters.Memory();
  }
  bool Ran() const { return fault.kind != exec::FaultKind::kCompile && fault.kind != exec::FaultKind::kOutOfMemory; }
  bool Faulted() const { return fault.kind != exec::FaultKind::kNone; }
  /// Another run leaves the same memory: it reads neither clocks nor memory that nobody wrote.
  bool Repeats(Executor& executor) {
    parameters.Reset();
    executor.engine().Run(whole);
    return parameters.Memory() == memory;
  }

  CorpusParameters parameters;
  exec::LaunchParams whole;
  exec::LaunchFault fault;
  std::vector<std::uint8_t> memory;
};

struct CorpusTally {
  unsigned same = 0, faulted = 0, not_rewritten = 0, not_run = 0, moody = 0;
  /// Kernels by name and length: the corpus has them for many targets.
  std::set<std::pair<std::string, std::size_t>> seen;

  bool IsNew(const exec::KernelInfo& kernel) {
    return seen.emplace(kernel.name, kernel.function->body->statements.size()).second;
  }
};

inline exec::Engine::Options CorpusEngine() {
  exec::Engine::Options options;
  options.threads = 1;
  options.watchdog_seconds = 1;
  return options;
}

}  // namespace gridloom::test
