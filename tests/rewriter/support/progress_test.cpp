#include "rewriter/support/progress.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace gridloom {
namespace {

TEST_CASE("Progress_IsPlainLinesInAFile_AndABarOnATerminal") {
  const auto run = [&](bool bar) {
    FILE* out = std::tmpfile();
    REQUIRE(out != nullptr);
    {
      Progress progress(2, {.out = out, .bar = bar, .quiet = false, .running = [] { return 0.5; }});
      progress.Done("first");
      progress.Note("look");
      progress.Done("second");
    }
    std::string text(static_cast<std::size_t>(std::ftell(out)), '\0');
    std::rewind(out);
    REQUIRE(std::fread(text.data(), 1, text.size(), out) == text.size());
    std::fclose(out);
    return text;
  };
  CHECK(run(false) == "gridloom: 1 of 2: first\ngridloom: look\ngridloom: 2 of 2: second\n");
  const std::string bar = run(true);
  CHECK(bar.find("[######################........]  75 %  1 of 2") != std::string::npos);
  CHECK(bar.find("gridloom: look\n") != std::string::npos);
  CHECK(bar.ends_with("\r\033[K"));
}

}  // namespace
}  // namespace gridloom
