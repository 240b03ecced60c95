// GRIDLOOM_SUMMARY=1: which kernels ran, as a table on stderr at exit.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "sim/exec/engine.h"

namespace gridloom::session {

/// A kernel's name as a person knows it: no result, no parameters, template arguments as <>. Of a long one, the end.
std::string ShortKernelName(const std::string& name, std::size_t width);

class Summary {
 public:
  /// Prints itself when the program ends, where that is wanted.
  Summary();
  /// One grid has run; `slices` is 0 when it ran whole.
  void Add(const std::string& kernel, const exec::LaunchStats& stats, std::uint64_t slices);
  /// Why grids of this kernel run whole although they were to be sliced.
  void NoteWhole(const std::string& kernel, const std::string& why);
  /// What became of a launch by a kernel, or by a function that it calls, that was to become a group of thread blocks
  /// or part of another.
  void NoteLaunch(const std::string& function, std::uint32_t line, const std::string& what);
  /// A launch that became a task of the MasterKernel's, or why it did not.
  void NoteTask(const std::string& kernel, const std::string& why_not);
  std::string Text() const;

 private:
  struct Line {
    std::uint64_t launches = 0, ctas = 0, slices = 0, interpreted_ctas = 0, begun_again_ctas = 0;
    double seconds = 0, compile_seconds = 0;
  };
  const bool wanted_;
  mutable std::mutex mutex_;
  std::map<std::string, Line> lines_;
  std::map<std::string, std::string> whole_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> tasks_;  ///< launches, by kernel and why they are none
  /// What was said of launches, by function and line of its PTX.
  std::map<std::pair<std::string, std::uint32_t>, std::set<std::string>> launches_;
};

}  // namespace gridloom::session
