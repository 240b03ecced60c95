// A Fermi of Kernelet's kind, to plan for.
#pragma once

#include "scheduler/model/plan.h"

namespace gridloom::model {

inline SmModel Fermi() {
  return {.sms = 14,
          .schedulers = 2,
          .empty = {.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152},
          .latency_cycles = 300,
          .requests_per_cycle = 0.2};
}

}  // namespace gridloom::model
