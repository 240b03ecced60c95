// The one main() of all Catch2 programs: Catch2's own, plus --rebase, which rewrites golden files (tests/golden.h).
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/golden.h"

int main(int argc, char** argv) {
  Catch::Session session;
  session.cli(session.cli() |
              Catch::clara::Opt(gridloom::testing::RebaseGoldens())["--rebase"]("rewrite golden files"));
  if (const int error = session.applyCommandLine(argc, argv); error != 0) return error;
  return session.run();
}
