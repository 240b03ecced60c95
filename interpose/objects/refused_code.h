// Device code that was loaded and cannot run, as it has no PTX for the device: whose it is, and what to tell of it when
// it is used.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/base/log.h"
#include "rewriter/image/image_set.h"
#include "rewriter/support/compute_capability.h"

namespace gridloom::session {

/// A program may load it, as it would with a driver, which runs the machine code. It is refused, and told of, when it
/// is used.
class RefusedCode {
 public:
  /// `data`: where the program has it; `why`: the sentence about what it holds instead.
  RefusedCode(const void* data, const image::ImageSet& images, ComputeCapability device, std::string why);

  /// There is machine code that a real device of this kind would run. A driver does not load a module without.
  bool has_machine_code() const { return has_machine_code_; }
  /// Kernels by the names that its machine code has for them; empty: they are not known.
  const std::vector<std::string>& kernels() const { return kernels_; }
  /// What there is instead of PTX, where the code lies, and what can be done.
  const std::string& message() const { return message_; }
  /// Says in the log, the first time, that `kernel` (empty: something else of it) cannot be had. Libraries that try one
  /// kernel after the other until one runs, as cuDNN does, would fill the screen: of each file the first three refusals
  /// are errors, and the last one of these says where the rest is told.
  void Tell(std::string_view kernel) const;

 private:
  std::string file_;  ///< the shared library or program that it lies in; empty when it was made or read at run time
  std::vector<std::string> kernels_;
  bool has_machine_code_;
  std::string message_;
  mutable std::atomic<bool> told_{false};
};

/// How loudly the next refusal of code in `file` is told, and what to append to its `message`.
LogLevel LevelOfRefusal(const std::string& file, std::string* message);

/// File name of the shared object or program that the place lies in; empty when it was made or read at run time.
std::string FileOf(const void* place);

}  // namespace gridloom::session
