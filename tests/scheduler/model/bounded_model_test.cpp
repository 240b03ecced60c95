// The chain's answers within what an SM's resources allow.
#include "scheduler/model/bounded_model.h"

#include <catch2/catch.hpp>

namespace gridloom::model {
namespace {

const SmModel kSm{.sms = 14,
                  .schedulers = 2,
                  .peak_ipc = 2,
                  .empty = {.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152},
                  .request_bytes = 64,
                  .latency_cycles = 300,
                  .requests_per_cycle = 0.2};

KernelProfile Kernel(const std::string& name, std::vector<double> demands) {
  return {.kernel = name,
          .needs = {.warps = 6},
          .max_resident_ctas = 8,
          .instructions_per_cta = 1000,
          .memory_ratio = 0.001,
          .demands = std::move(demands)};
}

TEST_CASE("WithinBounds_TakesFromThoseWhoUseTheResource") {
  // Resource 0 is only the first kernel's, and twice too small; resource 1 is shared evenly and large enough.
  const auto ipc = WithinBounds({1, 1}, {2, 0.25}, {0, 0.25});
  CHECK(ipc[0] == Approx(0.5));
  CHECK(ipc[1] == Approx(1));
  const auto shared = WithinBounds({1, 1}, {1}, {1});
  CHECK(shared[0] == Approx(0.5));
  CHECK(shared[1] == Approx(0.5));
  const auto part = WithinBounds({1, 1}, {1}, {}, 0.5);  // the second one demands nothing that is known
  CHECK(part[0] == Approx(0.5));
  CHECK(part[1] == 1);
}

TEST_CASE("BoundedModel_KeepsAKernelWithinItsScarcestResource") {
  const auto chain = MakeCoRunModel(kSm, {}, 0), bounded = MakeCoRunModel(kSm, {}, 0.9);
  const KernelProfile free = Kernel("free", {}), bound = Kernel("bound", {0.1, 0.75});
  CHECK(bounded->Alone(free) == chain->Alone(free));
  REQUIRE(chain->Alone(bound) > 1.3);
  CHECK(bounded->Alone(bound) == Approx(0.9 / 0.75));
  const auto alone = chain->Together(bound, 4, free, 4), within = bounded->Together(bound, 4, free, 4);
  REQUIRE((alone && within));
  CHECK((*within)[1] == (*alone)[1]);
  CHECK((*within)[0] == Approx(std::min((*alone)[0], 0.9 / 0.75)));
}

}  // namespace
}  // namespace gridloom::model
