// Which pages of the host's memory are still used by copies, for whoever writes there after them.
#include "sim/hardware/crcs/host_pages.h"

#include <catch2/catch.hpp>

namespace gridloom::hardware::crcs {
namespace {

constexpr unsigned kShift = 12;
constexpr std::uint64_t kPage = 1 << kShift;
using Page = HostPages::Page;

HostPages::Reuses Of(std::vector<timing::HostReuse> reuses) {
  return std::make_shared<const std::vector<timing::HostReuse>>(std::move(reuses));
}

/// A copy of so many bytes as they lie, to the address on the device.
Extent Dense(std::uint64_t address, std::uint64_t bytes) {
  return {.address = address, .span = bytes, .bytes = bytes, .host_span = bytes};
}

std::vector<std::uint64_t> Numbers(const std::vector<Page>& pages) {
  std::vector<std::uint64_t> numbers;
  for (const Page& page : pages) numbers.push_back(page.number);
  return numbers;
}

}  // namespace

TEST_CASE("Extent_Pages_AreThoseOfTheDevice") {
  const Extent extent = Dense(kPage + 100, 2 * kPage);
  CHECK(extent.Pages(kShift) == 3);
  CHECK((extent.PartIn(0, kShift).begin == 0 && extent.PartIn(0, kShift).end == kPage - 100));
  CHECK((extent.PartIn(2, kShift).begin == 2 * kPage - 100 && extent.PartIn(2, kShift).end == 2 * kPage));
  CHECK(extent.BytesOf(extent.PartIn(1, kShift)) == kPage);
  CHECK(Extent{}.Pages(kShift) == 0);
  const Extent rows = {.address = 0, .span = 4 * kPage, .bytes = 2 * kPage, .host_span = 2 * kPage};
  CHECK(rows.BytesOf(rows.PartIn(0, kShift)) == kPage / 2);
  CHECK((rows.OnHost({kPage, 2 * kPage}, rows.span).begin == kPage / 2 && rows.OnHost({0, 1}, rows.span).end == 1));
}

TEST_CASE("HostPages_WhereNobodyIs_MayBeWritten") {
  HostPages pages(kShift);
  pages.Use(1, Dense(0, 4 * kPage));
  CHECK(!pages.InTheWay(nullptr, {0, kPage}));
  CHECK(!pages.InTheWay(Of({{.earlier = 2, .begin = 0}}), {0, kPage}));  // not there
  CHECK(
      !pages.InTheWay(Of({{.earlier = 1, .begin = static_cast<std::int64_t>(kPage)}}), {0, kPage}));  // in front of it
  CHECK(!pages.InTheWay(Of({{.earlier = 1, .begin = -4 * static_cast<std::int64_t>(kPage)}}), {0, kPage}));
  CHECK(!pages.InTheWay(Of({{.earlier = 1, .begin = -(std::int64_t{1} << 60)}}), {0, kPage}));
  CHECK(pages.Leave({7, 0}).empty());
  pages.Use(3, Extent{});
  CHECK(!pages.InTheWay(Of({{.earlier = 3, .begin = 0}}), {0, kPage}));
}

TEST_CASE("HostPages_UsedPage_IsInTheWay_UntilItIsLeft") {
  HostPages pages(kShift);
  pages.Use(1, Dense(100, 2 * kPage));  // pages of 3996, 4096 and 100 bytes
  const auto reuses = Of({{.earlier = 1, .begin = -50}});
  const auto in_the_way = [&](std::uint64_t begin, std::uint64_t end) { return pages.InTheWay(reuses, {begin, end}); };
  CHECK(in_the_way(0, 10) == Page{1, 0});
  CHECK(in_the_way(3945, 3946) == Page{1, 0});
  CHECK(in_the_way(3946, 5000) == Page{1, 1});
  CHECK(in_the_way(2 * kPage - 51, 2 * kPage + 100) == Page{1, 2});
  CHECK(!in_the_way(2 * kPage - 50, 2 * kPage));
  pages.Wait({1, 1}, {5, 8});
  pages.Wait({1, 1}, {5, 9});
  pages.Wait({1, 2}, {6, 0});
  CHECK(Numbers(pages.Leave({1, 1})) == std::vector<std::uint64_t>{8, 9});
  CHECK(pages.Leave({1, 1}).empty());
  CHECK(!in_the_way(3946, 5000));
  CHECK(in_the_way(0, 5000) == Page{1, 0});
  CHECK(in_the_way(3946, 2 * kPage) == Page{1, 2});
  CHECK(Numbers(pages.LeaveAll(1)) == std::vector<std::uint64_t>{0});
  CHECK(!in_the_way(0, 2 * kPage));
}

TEST_CASE("HostPages_RowsThatLieApart_CountAsSpreadEvenly") {
  HostPages pages(kShift);
  pages.Use(1, {.address = 0, .span = 8 * kPage, .bytes = 2 * kPage, .host_span = 2 * kPage});
  const auto reuses = Of({{.earlier = 1, .begin = 0}});
  CHECK(pages.InTheWay(reuses, {kPage, 2 * kPage}) == Page{1, 4});
  for (std::uint64_t page = 4; page < 8; ++page) pages.Leave({1, page});
  CHECK(!pages.InTheWay(reuses, {kPage, 2 * kPage}));
  CHECK(pages.InTheWay(reuses, {kPage - 1, 2 * kPage}) == Page{1, 3});
}

}  // namespace gridloom::hardware::crcs
