// Runs the lifter's output directly, one thread at a time: the SPMD form with a trivial body for every marker, through
// LLVM's JIT. Tests of instruction semantics need no vectoriser and no runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/exec/compiler/compiler.h"

namespace gridloom::exec {

class SpmdRunner {
 public:
  /// Parses `ptx` and lifts the kernel of that name; on failure `error` says why.
  SpmdRunner(std::string_view ptx, std::string_view kernel, const CompileOptions& options = {});
  ~SpmdRunner();

  const std::string& error() const { return error_; }
  std::uint32_t error_line() const { return error_line_; }
  std::uint32_t local_bytes() const { return local_bytes_; }
  bool recursive() const { return recursive_; }
  const std::string& ir() const { return ir_; }

  /// Runs thread `tid` of a block of `ntid` threads: addresses are host addresses, lane 0 stands for all lanes.
  void Run(const void* params, std::uint32_t tid = 0, std::uint32_t ntid = 1);

  std::vector<std::uint8_t> shared = std::vector<std::uint8_t>(1 << 16);
  std::vector<std::uint8_t> local = std::vector<std::uint8_t>(1 << 20);
  std::vector<std::uint64_t> symbols;  ///< device addresses of module variables

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string error_;
  std::string ir_;
  std::uint32_t error_line_ = 0;
  std::uint32_t local_bytes_ = 0;
  bool recursive_ = false;
};

}  // namespace gridloom::exec
