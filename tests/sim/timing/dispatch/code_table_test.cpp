#include "sim/timing/dispatch/code_table.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

TEST_CASE("CodeTable_OneCode_IsDecodedOnceAsLongAsAWorkHoldsIt") {
  const FrontEnd front;
  CodeTable codes(front.parameters.device);
  const auto source = OneInstruction(1), other = OneInstruction(1);
  const auto first = codes.DecodedOf(source->code()).value();
  CHECK(codes.DecodedOf(source->code()).value() == first);
  CHECK(codes.DecodedOf(other->code()).value() != first);
  CHECK(first->decoded->ops.size() == 1);
}

TEST_CASE("CodeTable_CodesOfWorksThatHaveEnded_AreLetGo") {
  const FrontEnd front;
  CodeTable codes(front.parameters.device);
  std::vector<std::shared_ptr<trace::CtaSource>> sources;
  for (int i = 0; i < 1000; ++i) {
    sources.push_back(OneInstruction(1));
    REQUIRE(codes.DecodedOf(sources.back()->code()).ok());
    CHECK(codes.size() <= 65);
  }
}

TEST_CASE("CodeTable_CodeThatContradictsItself_IsRefused") {
  const FrontEnd front;
  CodeTable codes(front.parameters.device);
  trace::KernelCode broken = OneInstruction(1)->code();
  broken.operands[0] = 9;
  CHECK(codes.DecodedOf(broken).error().message == "kernel one, instruction 0: register 9 beyond register_count");
}

TEST_CASE("IsSame_ComparesWhatTheDeviceExecutes") {
  FrontEnd front;
  const auto a = OneInstruction(1), again = OneInstruction(1), other = OneInstruction(1, "one", 2);
  const auto decoded = [&](const auto& source) { return front.codes.DecodedOf(source->code()).value(); };
  const auto code = decoded(a), same = decoded(again), different = decoded(other);
  CHECK(IsSame(*code->decoded, *code->decoded));
  CHECK(IsSame(*code->decoded, *same->decoded));
  CHECK_FALSE(IsSame(*code->decoded, *different->decoded));
}

TEST_CASE("IdentityOf_FollowsNameAndShape") {
  const auto a = OneInstruction(1), again = OneInstruction(9), other = OneInstruction(1, "two");
  const auto identity = [](const auto& source) { return IdentityOf(source->code(), source->shape()); };
  CHECK(identity(a) == identity(again));
  CHECK(identity(a) != identity(other));
  CHECK(identity(a) != 0);
  trace::LaunchShape wide = a->shape();
  wide.threads_per_cta = 64;
  CHECK(IdentityOf(a->code(), wide) != identity(a));
}

}  // namespace
}  // namespace gridloom::timing
