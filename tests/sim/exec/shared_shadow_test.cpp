// The shadow of shared memory against a model that knows of every thread what is ordered before it.
#include "sim/exec/runtime/memcheck/shared_shadow.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "sim/exec/abi.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kWarps = 3, kWords = 96;

/// Every access since the last order, thread by thread.
class Model {
 public:
  void Barrier() {
    for (auto& word : words_) word.recent.clear();
  }
  void OrderWarp(std::uint32_t warp) {
    for (auto& word : words_) {
      std::set<Seen> kept;
      for (const Seen& seen : word.recent) kept.insert({seen.warp, seen.lane, seen.write, seen.ordered || seen.warp == warp});
      word.recent = kept;
    }
  }
  void BeginCta() { words_.assign(kWords, {}); }
  /// What is wrong with an access: unwritten, or unordered after another thread's.
  std::pair<bool, bool> Look(std::uint32_t warp, std::uint32_t lane, bool write, std::uint32_t word) const {
    bool race = false;
    for (const Seen& seen : words_[word].recent) {
      if (seen.warp == warp && (seen.lane == lane || seen.ordered)) continue;
      race |= write || seen.write;
    }
    return {!write && !words_[word].written, race};
  }
  void Note(std::uint32_t warp, std::uint32_t lane, bool write, std::uint32_t word) {
    words_[word].recent.insert({warp, lane, write, false});
    words_[word].written |= write;
  }

 private:
  struct Seen {
    std::uint32_t warp, lane;
    bool write, ordered;  ///< ordered: before what its own warp does next
    auto operator<=>(const Seen&) const = default;
  };
  struct Word {
    bool written = false;
    std::set<Seen> recent;
  };
  std::vector<Word> words_ = std::vector<Word>(kWords);
};

/// One access of a warp in the shadow, as the checker makes it. Returns what was found: unwritten, race.
std::pair<bool, bool> InShadow(SharedShadow& shadow, std::uint32_t warp, std::uint32_t mask, bool write,
                               const std::uint64_t (&offsets)[kWarpSize], SharedAccessImm::Pattern pattern, std::uint32_t line) {
  SharedShadow::Access access;
  access.warp = warp;
  access.mask = mask;
  access.line = line;
  access.what.bytes = 4;
  access.what.kind = write ? AccessKind::kWrite : AccessKind::kRead;
  access.what.pattern = pattern;
  access.offsets = offsets;
  if (shadow.Try(access)) return {false, false};
  bool unwritten = false, race = false;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    SharedShadow::Finding finding;
    if (!shadow.Lane(warp, lane, line, access.what.kind, false, false, static_cast<std::uint32_t>(offsets[lane]), 4, finding)) continue;
    unwritten |= finding.kind == MemcheckKind::kUninitialized;
    race |= finding.kind == MemcheckKind::kRace;
  }
  return {unwritten, race};
}

TEST_CASE("shared shadow: agrees with a model of every thread, whole words, full barriers") {
  std::mt19937 random(2024);
  SharedShadow shadow;
  shadow.Prepare(kWords * 4, kWarps, true);
  Model model;
  std::uint64_t races = 0, unwritten_found = 0, clean = 0;
  for (int cta = 0; cta < 400; ++cta) {
    shadow.BeginCta();
    model.BeginCta();
    for (std::uint32_t step = 1; step < 60; ++step) {
      const std::uint32_t choice = random() % 12;
      if (choice < 3) {
        for (std::uint32_t warp = 0; warp < kWarps; ++warp) shadow.Arrive(0, warp);
        const std::uint32_t all[kWarps] = {0, 1, 2};
        shadow.Complete(0, all);
        model.Barrier();
        continue;
      }
      const std::uint32_t warp = random() % kWarps;
      if (choice < 5) {
        shadow.OrderWarp(warp);
        model.OrderWarp(warp);
        continue;
      }
      // Disjoint words per warp most of the time, so that runs without a finding are common.
      const bool write = random() % 2 != 0;
      const auto pattern = static_cast<SharedAccessImm::Pattern>(random() % 3);
      const std::uint32_t mask = random() % 3 == 0 ? random() | 1u : ~0u;
      const std::uint32_t first =
          pattern == SharedAccessImm::kConsecutive ? (random() % 4 == 0 ? random() % (kWords - 31) : warp * 32) : random() % kWords;
      std::uint64_t offsets[kWarpSize];
      // Any addresses: far apart, two rows of 16, or two places. The lanes of a write stay apart.
      const std::uint32_t form = write ? 0 : random() % 3, row = random() % (kWords - 32);
      const auto any = [&](std::uint32_t lane) {
        if (form == 1) return row + lane / 16 * 11 + lane % 16;
        if (form == 2) return row + lane / 16 * 7;
        return (first + lane * 5) % kWords;
      };
      for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
        offsets[lane] = 4 * (pattern == SharedAccessImm::kUniform       ? first
                             : pattern == SharedAccessImm::kConsecutive ? first + lane
                                                                        : any(lane));
      }
      bool unwritten = false, race = false;
      for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        const auto [u, r] = model.Look(warp, lane, write, static_cast<std::uint32_t>(offsets[lane] / 4));
        unwritten |= u;
        race |= r;
      }
      const auto found = InShadow(shadow, warp, mask, write, offsets, pattern, step);
      INFO("CTA " << cta << " step " << step << " warp " << warp << (write ? " writes" : " reads") << " pattern " << int(pattern)
                  << " mask " << mask);
      REQUIRE(found.first == unwritten);
      // Of lanes that write to one word together, those after the first are compared with the first: a race of theirs with
      // an earlier write of that one goes unseen.
      const bool one_word = write && pattern == SharedAccessImm::kUniform;
      if (!unwritten) REQUIRE((found.second == race || (one_word && race)));
      for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
        if ((mask >> lane & 1) != 0) model.Note(warp, lane, write, static_cast<std::uint32_t>(offsets[lane] / 4));
      if (race || unwritten) {  // from here on the model, which forgets nothing, would go on complaining
        for (std::uint32_t w = 0; w < kWarps; ++w) shadow.Arrive(0, w);
        const std::uint32_t all[kWarps] = {0, 1, 2};
        shadow.Complete(0, all);
        model.Barrier();
      }
      races += race;
      unwritten_found += unwritten;
      clean += !race && !unwritten;
    }
  }
  CHECK(races > 500);
  CHECK(unwritten_found > 500);
  CHECK(clean > 500);
}

}  // namespace
}  // namespace gridloom::exec
