// The ranges in a trace file: which launches have them, in which form, what their profilers and release code execute,
// and why others have none.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "sim/trace/trace_file.h"

namespace gridloom::launcher {

class TraceRanges {
 public:
  /// A launch of the file's, and what its CTAs executed and said.
  struct Launch {
    bool complete = false;
    std::uint64_t warp_instructions = 0, set = 0, released = 0;
  };
  /// All launches, in any order.
  void Add(const trace::LaunchInfo& info, const std::string& kernel, const Launch& launch);

  /// A line for each form, and one for each reason that launches have none; empty: nobody wanted ranges.
  std::string Text() const;
  nlohmann::ordered_json FormsJson() const;
  nlohmann::ordered_json ReasonsJson() const;

 private:
  using Form = trace::LaunchInfo::Ranges;
  /// Launches of one form.
  struct Sum {
    std::uint64_t launches = 0, incomplete = 0, set = 0, released = 0;
    std::uint64_t profilers = 0, releasing = 0,
                  kernels = 0;  ///< warp instructions; of kernels only those that have ranges
  };
  std::map<Form, Sum> Sums() const;

  struct Ranged {
    Launch profiler, releasing;
  };
  std::map<Form, std::unordered_map<std::uint64_t, Ranged>> ranged_;  ///< by work
  std::unordered_map<std::uint64_t, std::uint64_t> kernels_;  ///< warp instructions of the program's launches, by work
  std::uint64_t launches_ = 0;
  /// Launches, by kernel and why they have none.
  std::map<std::pair<std::string, std::string>, std::uint64_t> reasons_;
};

}  // namespace gridloom::launcher
