// What trace files say of the memory that works touch: ranges that were told for launches, spans of copies and fills.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>

#include "sim/trace/range_forms.h"
#include "sim/trace/trace_file.h"
#include "sim/trace/trace_records.h"

using namespace gridloom;
using namespace gridloom::trace;

namespace {

HostAction SomeCopy() {
  HostAction action;
  action.kind = HostAction::Kind::kCopyToDevice;
  action.work = 7;
  action.address = 0x7000000000;
  action.bytes = 5 * HostAction::kRankedPage + 1;
  action.span = 9 * HostAction::kRankedPage;
  action.special = true;
  action.like = 5;
  action.ranks = {5, 0, 3, 2, 90, 7};
  return action;
}

/// The action as it is read again; nothing when it is refused.
std::optional<HostAction> Again(const HostAction& action) {
  ByteWriter out;
  PutAction(action, out);
  ByteReader in(out.bytes());
  HostAction again = GetAction(in);
  if (in.failed() || in.left() != 0) return std::nullopt;
  return again;
}

std::optional<LaunchInfo> Again(const LaunchInfo& info) {
  ByteWriter out;
  PutInfo(info, out);
  ByteReader in(out.bytes());
  LaunchInfo again = GetInfo(in);
  if (in.failed() || in.left() != 0) return std::nullopt;
  return again;
}

bool IsRead(const std::function<void(HostAction&)>& change) {
  HostAction action = SomeCopy();
  change(action);
  return Again(action).has_value();
}

bool IsRead(LaunchInfo::Role role, LaunchInfo::Ranges ranges, std::string no_ranges = "") {
  LaunchInfo info;
  info.role = role;
  info.ranges = ranges;
  info.no_ranges = std::move(no_ranges);
  const auto again = Again(info);
  return again && again->role == role && again->ranges == ranges && again->no_ranges == info.no_ranges;
}

}  // namespace

TEST_CASE("GetAction_Memory_IsReadAsItWasWritten") {
  const HostAction copy = SomeCopy();
  const auto again = Again(copy);
  REQUIRE(again);
  CHECK(again->span == copy.span);
  CHECK(again->special);
  CHECK(!again->sees);
  CHECK(again->like == 5);
  CHECK(again->ranks == copy.ranks);
  HostAction on_device = SomeCopy();
  on_device.kind = HostAction::Kind::kCopyOnDevice;
  on_device.like = 0;
  on_device.ranks.clear();
  on_device.source = 77;
  on_device.source_span = 12345;
  const auto other = Again(on_device);
  REQUIRE(other);
  CHECK(other->source == 77);
  CHECK(other->source_span == 12345);
  HostAction wait;
  wait.kind = HostAction::Kind::kWait;
  wait.sees = true;
  CHECK(Again(wait).value().sees);
}

TEST_CASE("GetAction_MemoryThatCannotBe_IsRefused") {
  CHECK(IsRead([](HostAction&) {}));
  CHECK(!IsRead([](HostAction& a) { a.span = ~a.address + 1; }));
  CHECK(IsRead([](HostAction& a) { a.span = ~a.address; }));
  CHECK(!IsRead([](HostAction& a) { a.bytes = ~std::uint64_t{0}; }));
  CHECK(!IsRead([](HostAction& a) { a.source = 1, a.source_span = ~std::uint64_t{0}; }));
  CHECK(!IsRead([](HostAction& a) { a.ranks.push_back(6); }));  // of a page behind the last one
  CHECK(!IsRead([](HostAction& a) { a.ranks.pop_back(); }));
  CHECK(IsRead([](HostAction& a) { a.ranks.clear(); }));
  CHECK(IsRead([](HostAction& a) { a.ranks.back() = ~0u; }));
  CHECK(!IsRead([](HostAction& a) { a.like = 7; }));  // itself
  CHECK(!IsRead([](HostAction& a) { a.kind = HostAction::Kind::kCopyToHost; }));
  CHECK(!IsRead([](HostAction& a) { a.bytes = 0; }));
  // Bytes that PutAction does not write: flags that nobody knows, steps that no page is away from another, more pages
  // than there are bytes.
  const auto refused = [](std::uint8_t flags, std::uint64_t pages, std::int64_t step) {
    ByteWriter out;
    HostAction action = SomeCopy();
    action.bytes = action.span = 1;
    action.ranks.clear();
    PutAction(action, out);
    out.TakeBack(5);
    out.Fixed(flags);
    out.Varint(action.like);
    out.Varint(pages);
    out.Signed(step);
    out.Varint(action.host_span);
    out.Varint(action.reuses.size());
    ByteReader in(out.bytes());
    static_cast<void>(GetAction(in));
    return in.failed();
  };
  CHECK(!refused(3, 1, 2));
  CHECK(refused(4, 1, 2));
  CHECK(refused(3, 1, -1));
  CHECK(refused(3, 1, INT64_MIN));
  CHECK(refused(3, 1, INT64_MAX));
  CHECK(refused(3, ~std::uint64_t{0}, 1));
}

TEST_CASE("GetAction_MemoryOfTheHosts_IsReadAsItWasWritten_OrRefused") {
  const auto with = [](HostAction::Kind kind, std::vector<HostAction::Reuse> reuses, std::uint64_t host_span = 0,
                       std::uint64_t bytes = 100) {
    HostAction action;
    action.kind = kind;
    action.work = 7;
    action.bytes = bytes;
    action.host_span = host_span;
    action.reuses = std::move(reuses);
    return action;
  };
  constexpr auto kIn = HostAction::Kind::kCopyToDevice, kOut = HostAction::Kind::kCopyToHost;
  constexpr std::int64_t kMost = HostAction::kMostHostBytes;
  const std::vector<HostAction::Reuse> reuses = {{1, 0}, {2, -kMost}, {6, kMost}};
  for (const auto kind : {kIn, kOut}) {
    const auto again = Again(with(kind, reuses, 12345));
    REQUIRE(again);
    CHECK((again->reuses == reuses && again->host_span == 12345));
  }
  CHECK(!Again(with(kIn, {{7, 0}})));  // itself
  CHECK(!Again(with(kIn, {{0, 0}})));
  CHECK(!Again(with(kIn, {{2, 0}, {2, 0}})));
  CHECK(!Again(with(kIn, {{2, 0}, {1, 0}})));
  CHECK(!Again(with(kIn, {{2, kMost + 1}})));
  CHECK(!Again(with(kIn, {{2, -kMost - 1}})));
  CHECK(!Again(with(kIn, {{2, INT64_MIN}})));
  CHECK(!Again(with(kIn, {}, static_cast<std::uint64_t>(kMost) + 1)));
  CHECK(!Again(with(kIn, {{2, 0}}, 0, static_cast<std::uint64_t>(kMost) + 1)));
  CHECK(!Again(with(HostAction::Kind::kFill, {{2, 0}})));
  CHECK(!Again(with(HostAction::Kind::kCopyOnDevice, {}, 5)));
  HostAction like = with(kIn, {{2, 0}});
  like.like = 1;
  CHECK(!Again(like));
}

TEST_CASE("GetAction_CutOffAnywhere_Fails") {
  HostAction back = SomeCopy();
  back.like = 0;
  back.host_span = 1 << 20;
  back.reuses = {{1, -5}, {3, 1000}};
  for (const HostAction& action : {SomeCopy(), back}) {
    ByteWriter out;
    PutAction(action, out);
    for (std::size_t size = 0; size < out.size(); ++size) {
      ByteReader in(out.bytes().first(size));
      static_cast<void>(GetAction(in));
      CHECK(in.failed());
    }
  }
}

TEST_CASE("GetAction_OfVersion8_HasNoMemoryOfTheHosts") {
  ByteWriter out;
  PutAction(SomeCopy(), out);
  out.TakeBack(2);
  ByteReader in(out.bytes());
  const HostAction again = GetAction(in, 8);
  CHECK((!in.failed() && in.left() == 0));
  CHECK((again.like == 5 && again.ranks == SomeCopy().ranks && again.host_span == 0 && again.reuses.empty()));
}

TEST_CASE("GetAction_OfEarlierVersions_HasNoMemory") {
  ByteWriter out;
  HostAction action;
  action.kind = HostAction::Kind::kCopyToHost;
  action.address = 5;
  action.bytes = ~std::uint64_t{0};  // nobody minded
  PutAction(action, out);
  out.TakeBack(8);
  ByteReader in(out.bytes());
  const HostAction again = GetAction(in, 7);
  CHECK(!in.failed());
  CHECK(in.left() == 0);
  CHECK(again.bytes == action.bytes);
  CHECK((again.span == 0 && !again.special && !again.sees && again.ranks.empty() && again.like == 0));
}

TEST_CASE("GetInfo_SaysWhetherCtasMayWaitForEachOther_AndKnowsNoOtherFlag") {
  for (const bool together : {false, true}) {
    LaunchInfo info;
    info.shape.together = together;
    const auto again = Again(info);
    REQUIRE(again.has_value());
    CHECK(again->shape.together == together);
  }
  ByteWriter out;
  PutInfo({}, out);
  std::vector<std::uint8_t> bytes(out.bytes().begin(), out.bytes().end());
  bytes.back() = 2;
  ByteReader in(bytes);
  static_cast<void>(GetInfo(in));
  CHECK(in.failed());
}

TEST_CASE("GetInfo_Roles_FitTheirRanges") {
  using Role = LaunchInfo::Role;
  using Ranges = LaunchInfo::Ranges;
  CHECK(IsRead(Role::kKernel, Ranges::kNone));
  CHECK(IsRead(Role::kKernel, Ranges::kNone, "it is irregular"));
  CHECK(IsRead(Role::kProfiler, Ranges::kInterval));
  CHECK(IsRead(Role::kReleasing, Ranges::kStrided));
  CHECK(!IsRead(Role::kKernel, Ranges::kInterval));
  CHECK(!IsRead(Role::kProfiler, Ranges::kNone));
  CHECK(!IsRead(Role::kProfiler, Ranges::kStrided, "it is irregular"));
  CHECK(!IsRead(static_cast<Role>(3), Ranges::kStrided));
  CHECK(!IsRead(Role::kReleasing, static_cast<Ranges>(3)));
}

TEST_CASE("TraceFile_Ranges_BelongToTheirWork") {
  const std::string path =
      std::filesystem::temp_directory_path() / ("gridloom-ranges-" + std::to_string(getpid()) + ".gltrace");
  const KernelCode code{.name = "k", .instructions = {{}}, .operands = {}, .blocks = {{0, 1}}, .register_count = 0};
  {
    auto writer = TraceWriter::Create(path, "a test");
    REQUIRE(writer.ok());
    (*writer)->AddKernel(code);
    const auto launch = [&](LaunchInfo::Role role, LaunchInfo::Ranges ranges, const char* why) {
      LaunchInfo info;
      info.shape = {.ctas = 0, .threads_per_cta = 32};
      info.work = 9;
      info.role = role;
      info.ranges = ranges;
      info.no_ranges = why;
      (*writer)->BeginLaunch(info, code)->End(0);
    };
    launch(LaunchInfo::Role::kProfiler, LaunchInfo::Ranges::kStrided, "");
    launch(LaunchInfo::Role::kReleasing, LaunchInfo::Ranges::kStrided, "");
    launch(LaunchInfo::Role::kKernel, LaunchInfo::Ranges::kNone, "too large");
    REQUIRE((*writer)->Close().ok());
  }
  const auto file = TraceFile::Open(path);
  std::filesystem::remove(path);
  REQUIRE(file.ok());
  CHECK((*file)->problem().empty());
  const auto& launches = (*file)->launches();
  REQUIRE(launches.size() == 3);
  for (const auto& launch : launches) CHECK((launch.complete && launch.info.work == 9));
  CHECK(launches[0].info.role == LaunchInfo::Role::kProfiler);
  CHECK(launches[1].info.role == LaunchInfo::Role::kReleasing);
  CHECK((!launches[0].info.of_program() && !launches[1].info.of_program() && launches[2].info.of_program()));
  CHECK(launches[2].info.no_ranges == "too large");
}

TEST_CASE("ParseRangeForms_NamesThemOnceEach") {
  using Ranges = LaunchInfo::Ranges;
  CHECK(*ParseRangeForms("interval") == std::vector{Ranges::kInterval});
  CHECK(*ParseRangeForms("strided,interval") == std::vector{Ranges::kStrided, Ranges::kInterval});
  for (const char* wrong : {"", ",", "none", "interval,", "interval,interval", "Interval", "interval strided"}) {
    const auto forms = ParseRangeForms(wrong);
    REQUIRE(!forms.ok());
    CHECK(forms.error().message == "'" + std::string(wrong) + "'; expected interval, strided or interval,strided");
  }
}
