// What several runs of parts of a launch, or of several launches, come to together.
#pragma once

#include "sim/exec/engine.h"

namespace gridloom::exec {

inline void AddTo(LaunchStats& sum, const LaunchStats& part) {
  sum.ctas += part.ctas;
  sum.warps += part.warps;
  sum.seconds += part.seconds;
  sum.compile_seconds += part.compile_seconds;
  sum.interpreted_ctas += part.interpreted_ctas;
  sum.begun_again_ctas += part.begun_again_ctas;
  sum.cache_hit |= part.cache_hit;
}

}  // namespace gridloom::exec
