// Soundness of profiled ranges on random kernels. More of them: GRIDLOOM_RANDOM_KERNELS=5000
// build/tests/range_passes_test "Random*"
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/sim/exec/random_address.h"
#include "tests/sim/exec/range_check.h"

using namespace gridloom;

TEST_CASE("RandomAddresses_RangesHoldEveryPage") {
  const char* wanted = std::getenv("GRIDLOOM_RANDOM_KERNELS");
  const char* first = std::getenv("GRIDLOOM_RANDOM_FIRST");
  const std::uint64_t begin = first == nullptr ? 0 : std::strtoull(first, nullptr, 10);
  const std::uint64_t count = wanted == nullptr ? 25 : std::strtoull(wanted, nullptr, 10);
  using test::RandomAddressKernel;
  std::uint64_t near = 0, regular = 0;
  for (std::uint64_t seed = begin; seed < begin + count; ++seed) {
    const RandomAddressKernel kernel(seed);
    test::Executor executor;
    const std::vector<std::uint32_t> zeros(2 * RandomAddressKernel::kReach / 4, 0);
    const std::uint64_t a = executor.Upload(zeros), b = executor.Upload(zeros);
    const auto small = [&](std::uint64_t salt) {
      return static_cast<std::uint32_t>((seed * 7 + salt) * 2654435761u % (RandomAddressKernel::kMostParam + 1));
    };
    const auto params = test::ParamBlock()
                            .Add(a + RandomAddressKernel::kReach)
                            .Add(b + RandomAddressKernel::kReach)
                            .Add(small(1))
                            .Add(small(2));
    exec::LaunchParams launch;
    launch.grid = {1 + small(3) % 16, 1 + small(4) % 4, 1};
    launch.block = {1 + small(5) * 3 % 64, 1 + small(6) % 8, 1};
    launch.params = params.bytes();
    const auto form = seed % 2 == 0 ? passes::RangeForm::kInterval : passes::RangeForm::kStrided;
    const auto check = test::CheckRanges(executor, kernel.ptx(), "k", launch, {}, form);
    INFO("seed " << seed << "\n" << kernel.ptx());
    CHECK(check.fault == "");
    CHECK(check.missed == "");
    CHECK(check.unbalanced == "");
    CHECK(check.reason == "");
    near += check.touched > 0 && check.reported < 8 * check.touched;
    regular += check.regular;
    if (!check.sound()) break;
  }
  CHECK(regular == count);
  WARN(near << " of " << count << " kernels report less than 8 pages per page they touch");
}
