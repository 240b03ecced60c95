// Which of memcheck's findings a program wants to hear of: kinds (GRIDLOOM_MEMCHECK_CHECKS) and a file of those that
// are known (GRIDLOOM_MEMCHECK_SUPPRESSIONS), a line each: the kind and the kernel's name, and where wanted the library
// that the kernel is from, with * and ? for what differs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::exec {

class MemcheckFilter {
 public:
  /// "race,uninitialised": no others are wanted. An error names a kind that does not exist.
  Status Choose(std::string_view kinds);
  /// The text of a file of suppressions; an error names its first bad line.
  Status Suppress(std::string_view text);

  /// `name` as in the PTX, or of the call; matched as it is and demangled. `library`: file name of the program or
  /// shared object that the kernel is from; empty: it is not known.
  bool Wants(std::string_view kind, std::string_view name, std::string_view library = {}) const;
  bool empty() const { return chosen_.empty() && suppressed_.empty(); }
  /// The line that suppresses a finding.
  static std::string LineFor(std::string_view kind, std::string_view name, std::string_view library);

 private:
  struct Suppression {
    std::string kind, name, library;  ///< library: "*": any, or none
  };
  std::vector<std::string> chosen_;  ///< empty: all
  std::vector<Suppression> suppressed_;
};

}  // namespace gridloom::exec
