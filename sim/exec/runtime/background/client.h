// Machine code of kernels that are being interpreted, made by a process beside the program (service.cpp).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "rewriter/support/result.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/runtime/code_cache.h"
#include "sim/exec/runtime/fork_guard.h"

namespace gridloom::exec {

class BackgroundCompiler final : ForkAware {
 public:
  struct Options {
    std::string service, library;  ///< paths of the program and of the compiler library
    std::string cache_directory;
    std::uint64_t cache_bytes = 0;
    unsigned threads = 1;
    /// Processor time, in seconds: after the program's end, so long the service begins what it has been asked for. What
    /// it has begun by then it brings to an end.
    unsigned begins_for = 20;
  };
  struct Job {
    std::shared_ptr<const ptx::Module> module;  ///< not the program, whose device memory is free when it is unloaded
    std::string kernel;
    CompileOptions options;
    CacheKey key{};
    /// Asked when `delay` has passed: is the code still wanted?
    std::function<bool()> wanted;
    /// Told once, on another thread; not when nobody wanted it, or when this object ends first.
    std::function<void(Result<CompiledKernel>)> done;
  };

  explicit BackgroundCompiler(Options options);
  ~BackgroundCompiler();
  BackgroundCompiler(const BackgroundCompiler&) = delete;
  BackgroundCompiler& operator=(const BackgroundCompiler&) = delete;

  /// Whether there is a service to ask, as far as is known.
  bool available() const { return available_.load(std::memory_order_relaxed); }
  void Ask(Job job, std::uint64_t delay_ns);

 private:
  struct Link;
  void BeforeFork() override;
  void AfterForkInParent() override;
  void AfterForkInChild() override;

  const Options options_;
  std::atomic<bool> available_;
  std::mutex mutex_;  // of link_
  std::shared_ptr<Link> link_;
};

}  // namespace gridloom::exec
