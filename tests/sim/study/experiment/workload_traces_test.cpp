#include "sim/study/experiment/workload_traces.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

TEST_CASE("EnsureTrace_WithoutProgram_TakesWhatCanBeRead") {
  char name[] = "/tmp/gridloom-traces-test.XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const fs::path folder = name, program = folder / "no-program", trace = folder / "bs.gltrace";
  const fs::path kept = fs::absolute("configs/experiments/traces/kernelet-bs.gltrace");
  REQUIRE(fs::exists(kept));

  CHECK(*EnsureTrace(program, "", trace, kept) == kept);
  fs::copy_file(kept, trace);
  CHECK(*EnsureTrace(program, "", trace, kept) == trace);
  std::ofstream(trace, std::ios::trunc) << "of an earlier version";
  CHECK(*EnsureTrace(program, "", trace, kept) == kept);
  CHECK(!EnsureTrace(program, "", trace, folder / "nothing").ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace gridloom::study
