#include "rewriter/support/quantity.h"

#include <catch2/catch.hpp>

namespace gridloom {
namespace {

TEST_CASE("ParseBytes_ReadsUnitsAndShares") {
  CHECK(ParseBytes("1024") == 1024u);
  CHECK(ParseBytes("4G") == std::uint64_t{4} << 30);
  CHECK(ParseBytes("2t") == std::uint64_t{2} << 40);
  CHECK(ParseBytes("1.5MiB") == 3u << 19);
  CHECK(ParseBytes("512kB") == 512u << 10);
  CHECK(ParseBytes("50%", 1000) == 500u);
}

TEST_CASE("ParseBytes_RefusesWhatIsNoAmount") {
  for (const char* text : {"", "G", "much", "4X", "4GG", "-1G", "nan", "inf", "99999999999T", "1e30"}) {
    CAPTURE(text);
    CHECK(!ParseBytes(text));
  }
  CHECK(!ParseBytes("50%"));
}

TEST_CASE("ParseNumberRange_ReadsOneNumberOrTwoEnds") {
  const auto ends = [](const char* text) {
    const auto range = ParseNumberRange(text);
    return range ? std::pair(range->first, range->last) : std::pair(~std::uint64_t{0}, std::uint64_t{0});
  };
  CHECK(ends("7") == std::pair<std::uint64_t, std::uint64_t>(7, 7));
  CHECK(ends("7-") == std::pair<std::uint64_t, std::uint64_t>(7, ~std::uint64_t{0}));
  CHECK(ends("7-20") == std::pair<std::uint64_t, std::uint64_t>(7, 20));
  for (const char* text : {"", "-", "-7", "x", "7x", "7-x", "7-20x", "20-7", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(!ParseNumberRange(text));
  }
}

}  // namespace
TEST_CASE("ParseCudaVersion_ReadsMajorAndMinor") {
  CHECK(ParseCudaVersion("13.0") == 13000);
  CHECK(ParseCudaVersion("12.8") == 12080);
  for (const char* wrong : {"", "13", "13.", ".4", "13.4.1", "-1.0", "0.5", "100.0", "13.100", "x.y", " 13.0"})
    CHECK(!ParseCudaVersion(wrong));
}

}  // namespace gridloom
