// Which launches of a program whose parts are to overlap do so, and why others do not.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace gridloom::timing {

/// The launches of one program. Not thread-safe.
class OverlapOutcome {
 public:
  /// A launch that the device knows the ranges of.
  void AddTracked() { ++tracked_; }
  /// One that runs as a kernel of which nothing is known, and why, as the end of a sentence. Whether that was not known
  /// of the kernel.
  bool AddUntracked(const std::string& kernel, const std::string& why);

  /// Where there are launches and none is tracked: a sentence that says so, with the first kernels and their reasons.
  /// Why nothing of the program overlaps; empty if something does. `program`: what to call it.
  std::string WhyNothingOverlaps(const std::string& program) const;

 private:
  std::uint64_t tracked_ = 0;
  std::set<std::pair<std::string, std::string>> why_not_;  ///< kernels and their reasons
};

/// The sentence about one of them.
std::string WhyItDoesNotOverlap(const std::string& kernel, const std::string& why);

}  // namespace gridloom::timing
