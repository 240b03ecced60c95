#include <catch2/catch.hpp>
#include <set>

#include "interpose/launcher/run/options.h"

namespace gridloom::launcher {
namespace {

using Words = std::vector<std::string>;

void CheckSplit(const Words& arguments, const Words& own, const Words& program) {
  const RunArguments split = SplitRunArguments(arguments);
  CHECK(split.own == own);
  CHECK(split.program == program);
}

const RunOption& Option(std::string_view flag) {
  for (const RunOption& option : RunOptions()) {
    if (option.flags.substr(0, option.flags.find(',')) == flag) return option;
  }
  FAIL("no option " << flag);
  throw 0;
}

std::string ErrorOf(std::string_view flag, const std::string& value) {
  const auto assignments = Assignments(Option(flag), value);
  return assignments.ok() ? "" : assignments.error().message;
}

TEST_CASE("SplitRunArguments_TheProgramsOptionsAreItsOwn") {
  CheckSplit({"--device", "a100", "-s", "--", "./app", "--device", "x", "--"}, {"--device", "a100", "-s"},
             {"./app", "--device", "x", "--"});
  CheckSplit({"-q", "./app", "-q"}, {"-q"}, {"./app", "-q"});
  CheckSplit({"--device=a100", "./app"}, {"--device=a100"}, {"./app"});
  CheckSplit({"-d", "a100", "./app"}, {"-d", "a100"}, {"./app"});
  CheckSplit({"--", "--weird"}, {}, {"--weird"});
  CheckSplit({"--device"}, {"--device"}, {});
  CheckSplit({}, {}, {});
}

TEST_CASE("Assignments_AreWhatTheShimReads") {
  CHECK(*Assignments(Option("--device"), "a100") == std::vector<Assignment>{{"GRIDLOOM_DEVICE", "a100"}});
  CHECK(*Assignments(Option("--device"), "real") == std::vector<Assignment>{{"GRIDLOOM_DEVICE", "real"}});
  CHECK(*Assignments(Option("--memcheck"), "") == std::vector<Assignment>{{"GRIDLOOM_MEMCHECK", "1"}});
  CHECK(*Assignments(Option("--leak-check"), "") ==
        std::vector<Assignment>{{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_LEAK_CHECK", "1"}});
  CHECK(*Assignments(Option("--memcheck-limit"), "7") ==
        std::vector<Assignment>{{"GRIDLOOM_MEMCHECK", "1"}, {"GRIDLOOM_MEMCHECK_LIMIT", "7"}});
  CHECK(Assignments(Option("--memcheck-json"), "x.json")->at(1).second.starts_with("/"));
  CHECK(Assignments(Option("--memcheck-json"), "-")->at(1).second == "-");
  CHECK(*Assignments(Option("--quiet"), "") ==
        std::vector<Assignment>{{"GRIDLOOM_SUMMARY", "0"}, {"GRIDLOOM_LOG", "error"}});
  CHECK(Assignments(Option("--log-file"), "x.log")->at(0).second.starts_with("/"));
  CHECK(*Assignments(Option("--hardware"), "lazy-ctas") ==
        std::vector<Assignment>{{"GRIDLOOM_TIMING", "1"}, {"GRIDLOOM_HARDWARE", "lazy-ctas"}});
  CHECK(Assignments(Option("--cache"), "off")->at(0).second == "off");
}

TEST_CASE("Assignments_WrongValues_AreNamedBeforeAnythingStarts") {
  CHECK(ErrorOf("--device", "h2000").find("did you mean 'h200'?") != std::string::npos);
  CHECK(ErrorOf("--log", "wran") ==
        "--log is 'wran'; expected off, error, warn, info, debug or trace; did you mean 'warn'?");
  CHECK(ErrorOf("--threads", "0") == "--threads is '0'; expected a number from 1 to 1024");
  CHECK(ErrorOf("--threads", "2x") == "--threads is '2x'; expected a number from 1 to 1024");
  CHECK(ErrorOf("--error-exitcode", "256") == "--error-exitcode is '256'; expected a number from 0 to 255");
  CHECK(ErrorOf("--memory", "8X") == "--memory is '8X'; expected a size such as 512M or 8G, or a share such as 50%");
  CHECK(ErrorOf("--memory", "0").starts_with("--memory is '0'"));
  CHECK(ErrorOf("--memory", "50%").empty());
  CHECK(ErrorOf("--driver-version", "13") == "--driver-version is '13'; expected a version such as 13.4");
  CHECK(ErrorOf("--driver-version", "13.4").empty());
  CHECK(ErrorOf("--trace", "/no/such/folder/a.gltrace") ==
        "cannot write /no/such/folder/a.gltrace: no folder /no/such/folder");
  CHECK(ErrorOf("--timing-json", "/tmp") == "cannot write /tmp: it is a folder");
  CHECK(ErrorOf("--trace-launches", "9-7") == "--trace-launches is '9-7'; expected a number or a range: 7, 7- or 7-20");
  CHECK(ErrorOf("--trace-ctas", "0") == "--trace-ctas is '0'; expected a number above 0");
  CHECK(ErrorOf("--ranges", "intervals") == "--ranges is 'intervals'; expected interval, strided or interval,strided");
  CHECK(ErrorOf("--ranges", "strided,interval").empty());
  CHECK(ErrorOf("--reorder", "x") ==
        "--reorder is 'x'; expected a number, alone or with :interval or :strided behind it");
  CHECK(!ErrorOf("--reorder", "1:intervals").empty());
  CHECK(ErrorOf("--reorder", "1:interval").empty());
  CHECK(ErrorOf("--check-range-launches", "2x") ==
        "--check-range-launches is '2x'; expected a number from 0 to 1000000000");
  CHECK(ErrorOf("--memcheck-checks", "race,leak").empty());
  CHECK(ErrorOf("--memcheck-checks", "races")
            .starts_with("--memcheck-checks: 'races' is no kind of finding; there are out-of-bounds, "));
  CHECK(!ErrorOf("--memcheck-suppressions", "/no/such/file").empty());
  CHECK(ErrorOf("--memcheck-limit", "-1") == "--memcheck-limit is '-1'; expected a number from 0 to 1000000");
}

TEST_CASE("RunOptions_SetOnlyVariablesThatTheShimReads") {
  const std::set<std::string> read{
#define GL_SETTING(field, variable, meaning) variable,
#include "interpose/settings/settings.def"
  };
  for (const RunOption& option : RunOptions()) {
    for (const Assignment& assignment : option.set) CHECK(read.contains(assignment.first));
  }
}

TEST_CASE("RunOptions_HelpIsThePagesTextWithoutLinks") {
  for (const RunOption& option : RunOptions()) {
    CHECK(!option.help.empty());
    CHECK(option.help.find("](") == std::string::npos);
    CHECK(option.help.find(".md") == std::string::npos);
  }
  CHECK(Option("--memcheck").help ==
        "check every access of every kernel and name each bad one; exit code 1 when there are any");
  CHECK(Option("--policy").help.find("default: leftover. `pagoda`") != std::string::npos);
  CHECK(Option("--connect").value_optional);
  CHECK(Option("--connect").placeholder == "SOCKET");
}

}  // namespace
}  // namespace gridloom::launcher
