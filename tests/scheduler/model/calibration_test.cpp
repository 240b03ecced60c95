#include "scheduler/model/calibration.h"

#include <catch2/catch.hpp>

#include "scheduler/model/sm_chain.h"

namespace gridloom::model {
namespace {

SmModel Sm() {
  return {.sms = 14,
          .schedulers = 2,
          .peak_ipc = 2,
          .empty = {.free_ctas = 8, .free_warps = 48},
          .latency_cycles = 300,
          .requests_per_cycle = 0.3};
}

KernelProfile Kernel(double memory_ratio) {
  return {.kernel = "k",
          .needs = {.warps = 6},
          .max_resident_ctas = 8,
          .instructions_per_cta = 1000,
          .memory_ratio = memory_ratio};
}

TEST_CASE("FitToLoneBlock_GivesOneBlockTheIpcMeasured") {
  for (const double ratio : {0.01, 0.2}) {
    for (const double ipc : {0.05, 0.3}) {
      KernelProfile kernel = Kernel(ratio);
      const double before = PredictIpc(Sm(), {&kernel, 1});
      FitToLoneBlock(Sm(), ipc, kernel);
      CHECK(PredictIpc(Sm(), {&kernel, 1}) == Approx(ipc).epsilon(1e-4));
      CHECK((kernel.refinement.latency_cycles > 300) == (before > ipc));
    }
  }
}

TEST_CASE("FitToLoneBlock_WithoutMemoryAccesses_IsDependency") {
  KernelProfile kernel = Kernel(0);
  FitToLoneBlock(Sm(), 0.6, kernel);
  CHECK(kernel.refinement.dependency_cycles == Approx(10));
  CHECK(PredictIpc(Sm(), {&kernel, 1}) == Approx(0.6));
}

TEST_CASE("FitToLoneBlock_LeavesWhatNoLatencyExplains") {
  for (const double ipc : {0.0, -1.0, 1.9}) {
    KernelProfile kernel = Kernel(0.3);
    kernel.refinement.latency_cycles = 123;
    FitToLoneBlock(Sm(), ipc, kernel);
    CHECK(kernel.refinement.latency_cycles == 123);
  }
}

}  // namespace
}  // namespace gridloom::model
