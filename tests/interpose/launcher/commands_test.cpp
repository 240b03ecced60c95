// The table of commands is complete: one line, a usage, examples that begin with the command, and a place in
// docs/commands.md.
#include "interpose/launcher/commands.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

namespace gridloom::launcher {
namespace {

TEST_CASE("Commands_HaveAllThatHelpAndDocsNeed") {
  std::ifstream file("docs/commands.md");
  const std::string docs(std::istreambuf_iterator<char>(file), {});
  REQUIRE(!docs.empty());
  std::set<std::string_view> names;
  for (const CommandRow& row : Commands()) {
    const std::string name(row.name);
    INFO(name);
    CHECK(names.insert(row.name).second);
    CHECK(row.summary.ends_with('.'));
    CHECK(!row.usage.empty());
    std::istringstream examples{std::string(row.examples)};
    bool shown = false;
    for (std::string line; std::getline(examples, line);) {
      CHECK(line.starts_with("  gridloom "));
      shown |= line.starts_with("  gridloom " + name);
    }
    CHECK(shown);
    CHECK((docs.find("## gridloom " + name) != std::string::npos || docs.find("| `" + name) != std::string::npos));
    CHECK(row.make() != nullptr);
  }
}

}  // namespace
}  // namespace gridloom::launcher
