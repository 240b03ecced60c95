// What kernels print. Text is kept until its grid ends or launches another one, or until the buffer is full, and is
// then written in the order of the CTAs that printed it: the same order for any number of host threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/exec/runtime/fork_guard.h"

namespace gridloom::exec {

class PrintfOutput {
 public:
  using Sink = std::function<void(std::string_view)>;
  PrintfOutput(std::uint64_t buffer_bytes, Sink sink) : buffer_bytes_(buffer_bytes), sink_(std::move(sink)) {}

  /// `cta` is the CTA's number in its grid, `grid` the launch's serial number. Thread-safe.
  void Append(std::uint64_t grid, std::uint64_t cta, std::string text);
  /// Writes what this grid has printed; on return it is written, whichever thread took it. Cheap when nothing was.
  void Flush(std::uint64_t grid);

 private:
  struct Record {
    std::uint64_t grid, cta;
    std::string text;
  };
  template <typename Chosen>
  void WriteWhere(Chosen chosen);
  void Write(std::vector<Record> records);

  const std::uint64_t buffer_bytes_;
  const Sink sink_;
  ForkSafeMutex mutex_;  ///< for what follows
  std::vector<Record> records_;
  std::uint64_t bytes_ = 0;
  std::atomic<bool> any_{false};
  ForkSafeMutex writing_;  ///< held from taking records until they are written; taken before mutex_
};

}  // namespace gridloom::exec
