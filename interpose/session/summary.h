// GRIDLOOM_SUMMARY=1: which kernels ran, as a table on stderr at exit.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "sim/exec/engine.h"

namespace gridloom::session {

class Summary {
 public:
  static Summary& Get();
  void Add(const std::string& kernel, const exec::LaunchStats& stats);
  std::string Text() const;

 private:
  Summary();
  struct Line {
    std::uint64_t launches = 0, ctas = 0;
    double seconds = 0, compile_seconds = 0;
  };
  const bool wanted_;
  mutable std::mutex mutex_;
  std::map<std::string, Line> lines_;
};

}  // namespace gridloom::session
