#include "scheduler/protocol/message.h"

#include <catch2/catch.hpp>

#include "scheduler/protocol/socket.h"

namespace gridloom::protocol {
namespace {

TEST_CASE("ParseMessage_WhatFormatMade_ComesBack") {
  const auto hello = ParseMessage(Format(Hello{"alice", "secret", "app"}));
  REQUIRE(hello.ok());
  CHECK(std::get<Hello>(*hello).tenant == "alice");
  CHECK(std::get<Hello>(*hello).token == "secret");
  const auto welcome = ParseMessage(Format(Welcome{3, 20, true, 1u << 30, "alice", "h200", "fair"}));
  REQUIRE(welcome.ok());
  CHECK(std::get<Welcome>(*welcome).session == 3);
  CHECK(std::get<Welcome>(*welcome).memory_bytes == 1u << 30);
  CHECK(std::get<Welcome>(*welcome).policy == "fair");
  const auto text = ParseMessage(Format(Text{MessageType::kReply, 1, true, "no"}));
  REQUIRE(text.ok());
  CHECK(std::get<Text>(*text).more);
  CHECK(std::get<Text>(*text).text == "no");
  const auto request =
      ParseMessage(Format(Request{.verb = Verb::kLimits, .target = "bob", .fields = kFieldWeight, .weight = 2.5}));
  REQUIRE(request.ok());
  CHECK(std::get<Request>(*request).target == "bob");
  CHECK(std::get<Request>(*request).weight == 2.5);
}

TEST_CASE("ParseMessage_ShortenedOrLengthened_IsAnError") {
  for (const auto& whole : {Format(Hello{"a", "b", "c"}), Format(Request{}), Format(Welcome{}), Format(Text{})}) {
    for (std::size_t size = 0; size < whole.size(); ++size)
      CHECK_FALSE(ParseMessage(std::span(whole).first(size)).ok());
    auto longer = whole;
    longer.push_back(std::byte{0});
    CHECK_FALSE(ParseMessage(longer).ok());
  }
}

TEST_CASE("ParseMessage_OtherVersionOrKind_IsAnError") {
  auto bytes = Format(Hello{});
  bytes[4] = std::byte{kVersion + 1};
  CHECK(ParseMessage(bytes).error().message.find("version " + std::to_string(kVersion + 1)) != std::string::npos);
  bytes = Format(Hello{});
  bytes[6] = std::byte{77};
  CHECK_FALSE(ParseMessage(bytes).ok());
  CHECK_FALSE(ParseMessage(Format(Request{.target = "", .weight = 1.0 / 0.0 - 1.0 / 0.0})).ok());
}

TEST_CASE("ParseMessage_TextsWithControlCharacters_AreTamed") {
  const auto hello = ParseMessage(Format(Hello{"al\x1b[2Jice\n", "", ""}));
  REQUIRE(hello.ok());
  CHECK(std::get<Hello>(*hello).tenant == "al?[2Jice?");
}

TEST_CASE("ParseMessage_Secret_KeepsEveryByte") {
  std::string secret;
  for (int byte = 1; byte < 256; ++byte) secret += static_cast<char>(byte);
  const auto hello = ParseMessage(Format(Hello{"alice", secret, "app"}));
  REQUIRE(hello.ok());
  CHECK(std::get<Hello>(*hello).token == secret);
}

TEST_CASE("IsOneUser_NumberOfThoseWithoutANumber_IsNobodysWhereSomeHaveNone") {
  constexpr std::string_view kAll = "         0          0 4294967295\n", kTwo = "0 1000 1\n1 100000 65536\n";
  CHECK(IsOneUser(65534, kAll, 65534));
  CHECK(IsOneUser(1000, kTwo, 65534));
  CHECK_FALSE(IsOneUser(65534, kTwo, 65534));  // one of the namespace's own, or any of those outside
  CHECK_FALSE(IsOneUser(65534, "0 1000 1\n", 65534));
  CHECK_FALSE(IsOneUser(65534, "", 65534));
  CHECK_FALSE(IsOneUser(65534, "rubbish", 65534));
  CHECK(IsOneUser(65534, "0 0 2000000000\n2000000000 2000000000 2294967295\n", 65534));
}

TEST_CASE("Format_TextsThatDoNotFit_AreCut") {
  const auto hello = ParseMessage(Format(Hello{std::string(1000, 'x'), "", ""}));
  REQUIRE(hello.ok());
  CHECK(std::get<Hello>(*hello).tenant == std::string(63, 'x'));
}

}  // namespace
}  // namespace gridloom::protocol
