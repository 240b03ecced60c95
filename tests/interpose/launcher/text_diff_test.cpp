#include "interpose/launcher/rewrite/text_diff.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace gridloom::launcher {
namespace {

TEST_CASE("UnifiedDiff_EqualTexts_IsEmpty") {
  CHECK(UnifiedDiff("a\nb\n", "a\nb\n", "x", "y").empty());
  CHECK(UnifiedDiff("", "", "x", "y").empty());
}

TEST_CASE("UnifiedDiff_LineReplaced_HasThreeLinesAroundIt") {
  CHECK(UnifiedDiff("1\n2\n3\n4\nold\n6\n7\n8\n9\n", "1\n2\n3\n4\nnew\nnewer\n6\n7\n8\n9\n", "x", "y") ==
        "--- x\n+++ y\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-old\n+new\n+newer\n 6\n 7\n 8\n");
}

TEST_CASE("UnifiedDiff_AtTheEnds_CountsAsDiffDoes") {
  CHECK(UnifiedDiff("", "a\n", "x", "y") == "--- x\n+++ y\n@@ -0,0 +1 @@\n+a\n");
  CHECK(UnifiedDiff("a\n", "", "x", "y") == "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n");
}

// What `patch` makes of it is the new text.
TEST_CASE("UnifiedDiff_RandomEdits_PatchGivesTheNewText") {
  if (std::system("patch --version >/dev/null 2>&1") != 0) {
    WARN("skipped: no patch");
    return;
  }
  std::mt19937 random(7);
  std::string folder = "/tmp/gridloom_diff_XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder + "/" + name) << text; };
  for (int round = 0; round < 40; ++round) {
    std::string before, after;
    for (int line = 0; line < 60; ++line) {
      const std::string text = std::to_string(random() % 9) + "\n";
      before += text;
      if (random() % 10 != 0) after += text;
      if (random() % 8 == 0) after += "new " + std::to_string(random() % 5) + "\n";
    }
    write("a", before);
    write("diff", UnifiedDiff(before, after, "a", "a"));
    INFO(before << "---\n" << after);
    REQUIRE((before == after || std::system(("cd " + folder + " && patch -s a diff").c_str()) == 0));
    std::ifstream in(folder + "/a");
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == after);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gridloom::launcher
