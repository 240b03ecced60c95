#include "rewriter/support/suggest.h"

#include <catch2/catch.hpp>

namespace gridloom {
namespace {

constexpr std::string_view kNames[] = {"kernelet", "crcs", "pagoda"};

TEST_CASE("DidYouMean_NamesTheNearest_OrSaysTheOther") {
  CHECK(DidYouMean("kernlet", kNames, "; there is none") == "; did you mean 'kernelet'?");
  CHECK(DidYouMean("somethingelse", kNames, "; there is none") == "; there is none");
  CHECK(DidYouMean("somethingelse", kNames).empty());
}

}  // namespace
}  // namespace gridloom
