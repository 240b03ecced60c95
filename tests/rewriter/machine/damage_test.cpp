// Damaged cubins: each is an error by name, or its kernels stay whole by name, or the forms are right, and what the
// file had is there as it was.
#include "tests/rewriter/machine/damage.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/proof.h"
#include "rewriter/machine/slice/slice_cubin.h"

namespace gridloom::machine {
namespace {

constexpr std::pair<unsigned, unsigned> kArchitectures[] = {{75, 75}, {80, 80}, {86, 80}, {89, 80}, {90, 90}};

DamagedBytes CubinOf(unsigned sm, unsigned file_sm) {
  std::ifstream file("tests/rewriter/machine/slices.sm_" + std::to_string(file_sm) + ".cubin", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = image::AsBytes(text);
  return ForArchitecture({bytes.begin(), bytes.end()}, sm);
}

struct Tally {
  unsigned errors = 0, whole = 0, sliced = 0;
};

void CheckOne(const DamagedBytes& damaged, Tally& tally) {
  const auto sliced = SliceCubin(damaged);
  if (!sliced.ok()) {
    CHECK_FALSE(sliced.error().message.empty());
    ++tally.errors;
    return;
  }
  const auto before = CubinFile::Read(damaged), after = CubinFile::Read(sliced->bytes);
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  CHECK(ProveFile(*before, *after, sliced->kernels).ok());
  for (const SlicedKernel& kernel : sliced->kernels) {
    if (!kernel.why_whole.empty()) {
      ++tally.whole;
      continue;
    }
    ++tally.sliced;
    CHECK(ProveKernel(*before, *after, kernel).ok());
  }
}

TEST_CASE("SliceCubin_DamagedCubins_LoseNothing") {
  constexpr unsigned kRounds = 25;
  for (const std::string_view kind : Damage::kKinds) {
    Tally tally, intact;
    for (const auto& [sm, file_sm] : kArchitectures) {
      const DamagedBytes cubin = CubinOf(sm, file_sm);
      CheckOne(cubin, intact);
      Damage damage(sm);
      for (unsigned round = 0; round < kRounds; ++round) {
        INFO("sm_" << sm << " " << kind << " " << round);
        CheckOne(damage.Make(cubin, kind), tally);
      }
    }
    INFO(kind << ": " << tally.errors << " errors, " << tally.whole << " whole, " << tally.sliced << " sliced");
    CHECK(intact.errors == 0);
    // What is damaged is seen: some files are errors, or more kernels in proportion stay whole.
    CHECK((tally.errors != 0 || tally.whole > intact.whole * kRounds));
  }
}

}  // namespace
}  // namespace gridloom::machine
