// What is measured about the processor, what is chosen by it, and what is kept of it
// (sim/exec/runtime/processor_choices.h). That code is right whatever is chosen is proven where the loops are tested
// (lane_loop_test.cpp).
#include "sim/exec/runtime/processor_choices.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/exec/runtime/code_cache.h"
#include "sim/exec/simd.h"

using namespace gridloom;
using namespace gridloom::exec;
namespace fs = std::filesystem;

namespace {

struct ChoicesFolder {
  ChoicesFolder() {
    char name[] = "/tmp/gridloom-processor-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~ChoicesFolder() { fs::remove_all(path); }
  /// The only file; empty when there is none.
  std::string file() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(path)) {
      CHECK(found.empty());
      found = entry.path().string();
    }
    return found;
  }
  std::string path;
};

}  // namespace

TEST_CASE("processor: what is measured is a ratio, and chooses what is clearly faster") {
  const ProcessorTimes times = MeasureProcessor();
  INFO(times.Text());
  CHECK(ProcessorTimes::Parse(times.Text()).has_value());
  if (UsableSimd() == SimdLevel::kBaseline) CHECK(ChoicesOf(times) == ProcessorChoices{});
  CHECK(ChoicesOf({.ahead_gain = 1.05, .few_gain = 0.5}) == ProcessorChoices{.fetch_ahead = false, .few_lanes = 8});
  CHECK(ChoicesOf({.ahead_gain = 2.7, .few_gain = 1.05}) == ProcessorChoices{.fetch_ahead = true, .few_lanes = 8});
  CHECK(ChoicesOf({.ahead_gain = 0.9, .few_gain = 1.6}) == ProcessorChoices{.fetch_ahead = false, .few_lanes = 16});
  CHECK(ChoicesOf({.few_gain = 3, .all_gain = 2}) == ProcessorChoices{.fetch_ahead = false, .few_lanes = 32});
  CHECK(ChoicesOf({.few_gain = 3, .all_gain = 2, .halves = true}) ==
        ProcessorChoices{.fetch_ahead = false, .few_lanes = 16});
}

TEST_CASE("processor: nothing else passes for what was measured") {
  const ProcessorTimes times{.ahead_gain = 1.25, .few_gain = 0.75, .all_gain = 0.5, .halves = true};
  const auto read = ProcessorTimes::Parse(times.Text());
  REQUIRE(read.has_value());
  CHECK(read->ahead_gain == 1.25);
  CHECK(read->few_gain == 0.75);
  CHECK(read->all_gain == 0.5);
  CHECK(read->halves);
  for (const char* const text :
       {"", "ahead", "ahead 1500\n", "ahead 1500 few 0 all 1000 halves 0\n", "ahead nan few 1000 all 1000 halves 0\n",
        "ahead 1.5 few 1000 all 1000 halves 0\n", "ahead -2000 few 1000 all 1000 halves 0\n",
        "ahead 1000 few 1000 all 1000 halves 0\nand more", "ahead 1000000000 few 1000 all 1000 halves 0\n",
        "ahead 1000 few 1000 all 1000 halves 7\n"}) {
    INFO(text);
    CHECK_FALSE(ProcessorTimes::Parse(text).has_value());
  }
}

TEST_CASE("processor: measured once, then read; a damaged file is made anew") {
  const ChoicesFolder directory;
  {
    CodeCache cache(directory.path, 1 << 20, {});
    CHECK(KnowProcessor(cache).measured_now);
  }
  const std::string file = directory.file();
  REQUIRE_FALSE(file.empty());
  CodeCache cache(directory.path, 1 << 20, {});
  const KnownProcessor known = KnowProcessor(cache);
  CHECK_FALSE(known.measured_now);
  std::ofstream(file) << "ahead 3000 few 500 all 500 halves 0\n";
  CHECK(KnowProcessor(cache).times.ahead_gain == 3);
  for (const std::string& text : {std::string("ahead "), std::string(8192, 'x'), std::string()}) {
    std::ofstream(file) << text;
    CHECK(KnowProcessor(cache).measured_now);
    CHECK_FALSE(KnowProcessor(cache).measured_now);
  }
  // Others may have written it: not believed.
  fs::permissions(file, fs::perms::all);
  CHECK(KnowProcessor(cache).measured_now);
  CodeCache none("", 0, {});
  CHECK(KnowProcessor(none).measured_now);
}

TEST_CASE("processor: what a user says instead") {
  ProcessorChoices choices{.fetch_ahead = false, .few_lanes = 8};
  CHECK(ApplyChoices("", choices).ok());
  CHECK(ApplyChoices("few-lanes=16", choices).ok());
  CHECK(choices == ProcessorChoices{.fetch_ahead = false, .few_lanes = 16});
  CHECK(ApplyChoices("fetch-ahead=yes,few-lanes=8", choices).ok());
  CHECK(choices == ProcessorChoices{.fetch_ahead = true, .few_lanes = 8});
  for (const char* const text : {"few-lanes=12", "fetch-ahead", "fast", "few-lanes=8;fetch-ahead=no"}) {
    const Status status = ApplyChoices(text, choices);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().message.find("GRIDLOOM_CODE") != std::string::npos);
    CHECK(status.error().message.find("fetch-ahead=yes") != std::string::npos);
  }
}
