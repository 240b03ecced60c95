// The example of a stage in docs/extending.md.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "interpose/base/at_end.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

/// Before main, hence before the settings are read.
const std::string g_log = [] {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("gridloom-stage-" + std::to_string(getpid()))).string();
  setenv("GRIDLOOM_LOG_FILE", path.c_str(), 1);
  return path;
}();

std::string ReadLog() {
  std::stringstream text;
  text << std::ifstream(g_log).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("GridSizes_AreCountedAndPrintedAtTheEnd") {
  const Fixture fixture;
  CUfunction const nothing = fixture.Function("nothing");
  for (const unsigned ctas : {4u, 4u, 24u, 4u})
    CU_OK(cuLaunchKernel(nothing, ctas, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  CU_OK(cuCtxSynchronize());
  session::RunAtEnd();
  CHECK(ReadLog() == "grids of 4 CTAs: 3\ngrids of 24 CTAs: 1\n");
  std::filesystem::remove(g_log);
}
