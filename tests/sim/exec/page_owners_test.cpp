// The rule by which pages have owners, and the lots that are drawn under it, without kernels.
#include "sim/exec/reorder/page_owners.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "sim/exec/reorder/cta_chooser.h"

namespace gridloom::exec {
namespace {

using Kernels = std::vector<PageOwners::Kernel>;

/// A kernel whose CTAs name these pages, from first to last.
PageOwners::Kernel KernelOf(const std::vector<std::vector<PageSet::Range>>& ctas) {
  PageOwners::Kernel kernel;
  kernel.ctas = static_cast<std::uint32_t>(ctas.size());
  for (std::uint32_t cta = 0; cta < kernel.ctas; ++cta) {
    if (ctas[cta].empty()) continue;
    CtaPages& pages = kernel.pages.emplace_back();
    pages.cta = cta;
    for (const PageSet::Range& range : ctas[cta]) pages.pages.Add(range);
    pages.pages.Sort();
  }
  return kernel;
}

/// The rule, page by page.
bool MayRun(const Kernels& kernels, const std::set<std::pair<std::uint32_t, std::uint32_t>>& ended,
            const KernelCta& cta) {
  std::set<std::uint64_t> pages;
  const auto pages_of = [&](std::uint32_t kernel, std::uint32_t number, auto visit) {
    for (const CtaPages& named : kernels[kernel].pages) {
      if (named.cta != number) continue;
      for (const PageSet::Range& range : named.pages.ranges()) {
        for (std::uint64_t page = range.first; page <= range.last; ++page) visit(page);
      }
    }
  };
  pages_of(cta.kernel, cta.cta, [&](std::uint64_t page) { pages.insert(page); });
  bool free = true;
  for (std::uint32_t older = 0; older < cta.kernel; ++older) {
    for (std::uint32_t other = 0; other < kernels[older].ctas; ++other) {
      if (!ended.contains({older, other}))
        pages_of(older, other, [&](std::uint64_t page) { free = free && !pages.contains(page); });
    }
  }
  return free;
}

/// Runs all of it as lots say; whatever is told has to be what the rule says.
void RunAll(const Kernels& kernels, std::uint64_t seed) {
  PageOwners owners(kernels);
  CtaChooser chooser(seed);
  for (const auto& kernel : kernels) chooser.AddKernel(kernel.ctas, false);
  std::set<std::pair<std::uint32_t, std::uint32_t>> ended, told;
  for (;;) {
    for (const KernelCta& cta : owners.TakeReady()) {
      REQUIRE(told.insert({cta.kernel, cta.cta}).second);
      chooser.AddReady(cta.kernel, cta.cta);
    }
    for (std::uint32_t k = 0; k < kernels.size(); ++k) {
      for (std::uint32_t cta = 0; cta < kernels[k].ctas; ++cta)
        REQUIRE(told.contains({k, cta}) == MayRun(kernels, ended, {k, cta}));
    }
    const auto chosen = chooser.Choose();
    if (!chosen) break;
    for (const std::uint64_t cta : chosen->ctas) {
      const KernelCta one{chosen->kernel, static_cast<std::uint32_t>(cta)};
      REQUIRE(ended.insert({one.kernel, one.cta}).second);
      owners.Release(one);
    }
  }
  std::size_t all = 0;
  for (const auto& kernel : kernels) all += kernel.ctas;
  CHECK(ended.size() == all);
}

}  // namespace

TEST_CASE("PageOwners_TwoKernelsOnOnePage_TheSecondWaitsForTheLastOfTheFirst") {
  const Kernels kernels{KernelOf({{{7, 7, 1}}, {{7, 8, 1}}, {{9, 9, 1}}}),
                        KernelOf({{{7, 7, 2}}, {{9, 9, 2}}, {{100, 100, 1}}, {}})};
  PageOwners owners(kernels);
  CHECK(owners.TakeReady() == std::vector<KernelCta>{{0, 0}, {0, 1}, {0, 2}, {1, 2}, {1, 3}});
  owners.Release({0, 0});
  CHECK(owners.TakeReady().empty());
  owners.Release({0, 2});
  CHECK(owners.TakeReady() == std::vector<KernelCta>{{1, 1}});
  owners.Release({0, 1});
  CHECK(owners.TakeReady() == std::vector<KernelCta>{{1, 0}});
}

TEST_CASE("PageOwners_ReadersOfOnePage_ComeOneKernelAfterTheOther") {
  const Kernels kernels(3, KernelOf({{{1, 4, 1}}}));
  PageOwners owners(kernels);
  for (std::uint32_t k = 0; k < 3; ++k) {
    CHECK(owners.TakeReady() == std::vector<KernelCta>{{k, 0}});
    owners.Release({k, 0});
  }
  CHECK(owners.TakeReady().empty());
}

TEST_CASE("PageOwners_RandomRanges_AreHandedOnAsTheRuleSays") {
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (int round = 0; round < 150; ++round) {
    Kernels kernels;
    const std::uint32_t pages = 1 + below(30), count = 1 + below(6);
    for (std::uint32_t k = 0; k < count; ++k) {
      std::vector<std::vector<PageSet::Range>> ctas(1 + below(8));
      for (auto& ranges : ctas) {
        for (std::uint32_t left = below(4); left != 0; --left) {
          const std::uint64_t first = below(pages);
          ranges.push_back({first, first + below(4), 1 + below(3)});
        }
      }
      kernels.push_back(KernelOf(ctas));
    }
    RunAll(kernels, random());
  }
}

TEST_CASE("CtaChooser_OneSeed_OneOrder") {
  const auto order_of = [](std::uint64_t seed) {
    CtaChooser chooser(seed);
    std::vector<std::pair<std::uint32_t, std::uint64_t>> order;
    for (std::uint32_t k = 0; k < 3; ++k) {
      chooser.AddKernel(50, k == 1);
      for (std::uint32_t cta = 0; cta < 50; ++cta) chooser.AddReady(k, 49 - cta);
    }
    while (const auto chosen = chooser.Choose()) {
      CHECK(chosen->ctas.size() <= 32);
      for (const std::uint64_t cta : chosen->ctas) order.emplace_back(chosen->kernel, cta);
    }
    return order;
  };
  const auto order = order_of(5);
  CHECK(order == order_of(5));
  CHECK(order != order_of(6));
  std::map<std::uint32_t, std::vector<std::uint64_t>> by_kernel;
  for (const auto& [kernel, cta] : order) by_kernel[kernel].push_back(cta);
  REQUIRE(by_kernel.size() == 3);
  for (auto& [kernel, ctas] : by_kernel) {
    REQUIRE(ctas.size() == 50);
    if (kernel == 1) CHECK(std::ranges::is_sorted(ctas));  // in turn
    std::ranges::sort(ctas);
    CHECK(std::ranges::adjacent_find(ctas) == ctas.end());
  }
  // Kernels mix.
  CHECK(std::ranges::adjacent_find(order, [](const auto& a, const auto& b) { return a.first > b.first; }) !=
        order.end());
}

TEST_CASE("CtaChooser_InTurn_WaitsForTheOneWhoseTurnItIs") {
  CtaChooser chooser(1);
  chooser.AddKernel(3, true);
  chooser.AddReady(0, 1);
  chooser.AddReady(0, 2);
  CHECK(!chooser.Choose());
  chooser.AddReady(0, 0);
  std::vector<std::uint64_t> all;
  while (const auto chosen = chooser.Choose()) all.insert(all.end(), chosen->ctas.begin(), chosen->ctas.end());
  CHECK(all == std::vector<std::uint64_t>{0, 1, 2});
}

}  // namespace gridloom::exec
