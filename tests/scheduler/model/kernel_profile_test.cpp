#include "scheduler/model/kernel_profile.h"

#include <catch2/catch.hpp>
#include <limits>

namespace gridloom::model {
namespace {

KernelProfile Good() { return {.kernel = "k", .needs = {.warps = 4}, .max_resident_ctas = 8, .memory_ratio = 0.1}; }

TEST_CASE("Validate_Profile_NamesTheKernelAndTheValue") {
  CHECK(Validate(Good()).ok());
  KernelProfile profile = Good();
  profile.memory_ratio = 1.5;
  const Status status = Validate(profile);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("kernel k") != std::string::npos);
  CHECK(status.error().message.find("memory_ratio") != std::string::npos);
  profile = Good();
  profile.refinement.dependency_cycles = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(Validate(profile).ok());
  profile = Good();
  profile.needs.warps = 0;
  CHECK_FALSE(Validate(profile).ok());
}

TEST_CASE("Validate_SmModel_WantsLatencyAndBandwidth") {
  SmModel sm{.sms = 14, .empty = {.free_ctas = 8, .free_warps = 48}, .latency_cycles = 300, .requests_per_cycle = 0.1};
  CHECK(Validate(sm).ok());
  sm.requests_per_cycle = 0;
  CHECK_FALSE(Validate(sm).ok());
}

TEST_CASE("ResidentCtas_IsTheTightestLimit") {
  const policy::SmView sm{.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152};
  CHECK(ResidentCtas(sm, {.warps = 1}) == 8);
  CHECK(ResidentCtas(sm, {.warps = 8}) == 6);
  CHECK(ResidentCtas(sm, {.warps = 8, .registers = 8192}) == 4);
  CHECK(ResidentCtas(sm, {.warps = 8, .registers = 8192, .shared_bytes = 16384}) == 3);
  CHECK(ResidentCtas(sm, {.warps = 64}) == 0);
}

}  // namespace
}  // namespace gridloom::model
