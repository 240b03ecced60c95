// The shadow of shared memory against a model that knows of every thread what is ordered before it.
#include "sim/exec/runtime/memcheck/shared_shadow.h"

#include <catch2/catch.hpp>
#include <deque>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/read_group.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kWarps = 3, kBytes = 1200;  // more than a block of cells of one size

/// Every access since the last order, thread by thread.
class Model {
 public:
  void Barrier() {
    for (auto& byte : bytes_) byte.recent.clear();
  }
  void OrderWarp(std::uint32_t warp) {
    for (auto& byte : bytes_) {
      std::set<Seen> kept;
      for (const Seen& seen : byte.recent)
        kept.insert({seen.warp, seen.lane, seen.write, seen.ordered || seen.warp == warp});
      byte.recent = kept;
    }
  }
  void BeginCta() { bytes_.assign(kBytes, {}); }
  void Fill() {
    for (auto& byte : bytes_) byte.written = true;
  }
  /// What is wrong with an access: unwritten, or unordered after another thread's.
  std::pair<bool, bool> Look(std::uint32_t warp, std::uint32_t lane, bool write, std::uint64_t offset,
                             std::uint32_t size) const {
    bool race = false, unwritten = false;
    for (std::uint64_t at = offset; at < offset + size; ++at) {
      for (const Seen& seen : bytes_[at].recent) {
        if (seen.warp == warp && (seen.lane == lane || seen.ordered)) continue;
        race |= write || seen.write;
      }
      unwritten |= !write && !bytes_[at].written;
    }
    return {unwritten, race};
  }
  void Note(std::uint32_t warp, std::uint32_t lane, bool write, std::uint64_t offset, std::uint32_t size) {
    for (std::uint64_t at = offset; at < offset + size; ++at) {
      bytes_[at].recent.insert({warp, lane, write, false});
      bytes_[at].written |= write;
    }
  }

 private:
  struct Seen {
    std::uint32_t warp, lane;
    bool write, ordered;  ///< ordered: before what its own warp does next
    auto operator<=>(const Seen&) const = default;
  };
  struct Byte {
    bool written = false;
    std::set<Seen> recent;
  };
  std::vector<Byte> bytes_ = std::vector<Byte>(kBytes);
};

struct WarpAccess {
  std::uint32_t warp = 0, mask = ~0u, size = 4, row_lanes = kWarpSize;
  bool write = false;
  SharedAccessImm::Pattern pattern = SharedAccessImm::kAny;
  std::uint64_t offsets[kWarpSize] = {};
};

/// Reads of memory as code asks about several at once; those that are logged stay for as long as the log.
class Groups {
 public:
  /// The same read twice, of which the code knows places that are eight bytes less. False as TryReads.
  bool Try(SharedShadow& shadow, const WarpAccess& read, const SharedShadow::Access& access) {
    const auto span = static_cast<std::int32_t>(access.places.same ? read.size : read.row_lanes * read.size);
    const std::uint32_t rows = kWarpSize / read.row_lanes;
    tables_.push_back({{1, 2}, {0, rows, 8, 8 + span, access.what}, {{0, 8, access.line}, {0, 8, access.line}}});
    std::uint64_t bases[LanePlaces::kMostRows] = {};
    for (std::uint32_t row = 0; row < rows; ++row) bases[row] = access.places.first[row] - 8;
    const bool taken = shadow.TryReads(read.warp, tables_.back().head, bases);
    taken_ += taken;
    return taken;
  }
  void Drop() { tables_.clear(); }
  std::uint64_t taken() const { return taken_; }

 private:
  struct Table {
    ReadGroup head;
    ReadGroup::Family family;
    ReadGroup::Read reads[2];
  };
  std::deque<Table> tables_;
  std::uint64_t taken_ = 0;
};

/// One access of a warp in the shadow, as the checker makes it. Returns what was found: unwritten, race.
std::pair<bool, bool> InShadow(SharedShadow& shadow, Groups& groups, const WarpAccess& made, std::uint32_t line,
                               std::uint64_t& whole) {
  SharedShadow::Access access;
  access.warp = made.warp;
  access.mask = made.mask;
  access.line = line;
  access.what.bytes = static_cast<std::uint8_t>(made.size);
  access.what.kind = made.write ? AccessKind::kWrite : AccessKind::kRead;
  access.what.pattern = made.pattern;
  if (made.pattern == SharedAccessImm::kAny) {
    ScanOffsets(made.offsets, made.mask, made.size, access.places);
    access.offsets = made.offsets;
  } else {
    access.places.row_lanes = made.row_lanes;
    access.places.same = made.pattern == SharedAccessImm::kUniform;
    for (std::uint32_t row = 0; row < std::min(kWarpSize / made.row_lanes, LanePlaces::kMostRows); ++row)
      access.places.first[row] = made.offsets[row * made.row_lanes];
  }
  const bool usual = made.pattern != SharedAccessImm::kAny && made.mask == ~0u && !made.write;
  if (usual) access.what.row_lanes = static_cast<std::uint8_t>(made.row_lanes);
  if (usual && line % 2 == 0 && groups.Try(shadow, made, access)) {
    ++whole;
    return {false, false};
  }
  if ((usual && shadow.TryUsualRead(made.warp, line, access.what, access.places.first)) || shadow.Try(access)) {
    ++whole;
    return {false, false};
  }
  bool unwritten = false, race = false;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if ((made.mask >> lane & 1) == 0) continue;
    SharedShadow::Finding finding;
    if (!shadow.Lane(made.warp, lane, line, access.what.kind, false, false,
                     static_cast<std::uint32_t>(made.offsets[lane]), made.size, finding))
      continue;
    unwritten |= finding.kind == MemcheckKind::kUninitialized;
    race |= finding.kind == MemcheckKind::kRace;
  }
  return {unwritten, race};
}

/// Rows of 8, 16 or 32 lanes, at consecutive places or at one, or lanes five places apart. Disjoint parts per warp most
/// of the time, so that accesses without a finding are common.
WarpAccess RandomAccess(std::mt19937& random, std::uint32_t size) {
  WarpAccess access;
  access.warp = random() % kWarps;
  access.size = size;
  access.write = random() % 2 != 0;
  access.row_lanes = kWarpSize >> random() % 3;
  const std::uint32_t masks[] = {static_cast<std::uint32_t>(random()) | 1u, 0x0000ffffu, 0x00fff000u, ~0u};
  access.mask = masks[random() % 3 == 0 ? random() % 3 : 3];
  const std::uint32_t places = kBytes / size, form = random() % 5;
  const std::uint32_t first = random() % 4 == 0 ? random() % (places - 40) : access.warp * (places / kWarps);
  const std::uint32_t pitch = access.write ? access.row_lanes + random() % 2 : random() % (access.row_lanes + 3);
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t row = lane / access.row_lanes;
    const std::uint32_t in_row = form == 0 ? 0 : lane % access.row_lanes;
    // The lanes of a write stay apart, or are all at one place.
    const std::uint32_t at = form == 0 && access.write ? first
                             : form == 4               ? (first + lane * 5) % places
                                                       : first + row * pitch + in_row;
    access.offsets[lane] = std::uint64_t{at % places} * size;
  }
  bool wraps = false;
  for (std::uint32_t lane = 1; lane < kWarpSize; ++lane) wraps |= access.offsets[lane] < access.offsets[0];
  if (form < 3 && !wraps) access.pattern = form == 0 ? SharedAccessImm::kUniform : SharedAccessImm::kConsecutive;
  return access;
}

/// Random accesses of words, or of all sizes, and barriers, in the shadow and in the model.
void Compare(bool all_sizes, std::uint64_t least) {
  std::mt19937 random(2024);
  SharedShadow shadow;
  Model model;
  Groups groups;
  std::uint64_t races = 0, unwritten_found = 0, clean = 0, whole = 0;
  for (int cta = 0; cta < 225; ++cta) {
    if (cta % 50 == 0) shadow.Prepare(kBytes, kWarps, true);
    shadow.BeginCta();
    groups.Drop();
    model.BeginCta();
    if (cta % 3 == 0) {
      shadow.Fill(0, kBytes);
      model.Fill();
    }
    for (std::uint32_t step = 1; step < 60; ++step) {
      const std::uint32_t all[kWarps] = {0, 1, 2};
      const auto barrier = [&] {
        for (const std::uint32_t warp : all) shadow.Arrive(0, warp);
        shadow.Complete(0, all, true);
        model.Barrier();
      };
      const std::uint32_t choice = random() % 12;
      if (choice < 3) {
        barrier();
        continue;
      }
      if (choice < 5) {
        const std::uint32_t warp = random() % kWarps;
        shadow.OrderWarp(warp);
        model.OrderWarp(warp);
        continue;
      }
      const WarpAccess access = RandomAccess(random, all_sizes && random() % 3 == 0 ? 1u << random() % 4 : 4);
      bool unwritten = false, race = false;
      for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
        if ((access.mask >> lane & 1) == 0) continue;
        const auto [u, r] = model.Look(access.warp, lane, access.write, access.offsets[lane], access.size);
        unwritten |= u;
        race |= r;
      }
      const auto found = InShadow(shadow, groups, access, step, whole);
      INFO("CTA " << cta << " step " << step << " warp " << access.warp << (access.write ? " writes " : " reads ")
                  << access.size << " bytes, pattern " << int(access.pattern) << ", rows of " << access.row_lanes
                  << ", mask " << access.mask << ", from " << access.offsets[0]);
      REQUIRE(found.first == unwritten);
      // Of lanes that write to one place together, those after the first are compared with the first: a race of theirs
      // with an earlier write of that one goes unseen.
      const bool one_place = access.write && access.offsets[0] == access.offsets[1];
      if (!unwritten) REQUIRE((found.second == race || (one_place && race)));
      for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
        if ((access.mask >> lane & 1) != 0)
          model.Note(access.warp, lane, access.write, access.offsets[lane], access.size);
      if (race || unwritten) barrier();  // or the model, which forgets nothing, would go on complaining
      races += race;
      unwritten_found += unwritten;
      clean += !race && !unwritten;
    }
  }
  CHECK(races > least);
  CHECK(unwritten_found > least);
  CHECK(clean > least);
  CHECK(groups.taken() > 10);
  CHECK(whole > clean * 3 / 4);  // as vectors, or at least without a look at what is written
}

TEST_CASE("shared shadow: agrees with a model of every thread, words") { Compare(false, 500); }
TEST_CASE("shared shadow: agrees with a model of every thread, accesses of 1 to 8 bytes") { Compare(true, 500); }

}  // namespace
}  // namespace gridloom::exec
