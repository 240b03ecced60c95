#include "sim/exec/runtime/page_use.h"

#include <sys/mman.h>

#include <algorithm>

#include "sim/exec/runtime/address_space.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kPagesOfBlock = kHugePage / kPageBytes;
// To clear a large page takes as long as some sixty faults of small ones.
constexpr std::uint64_t kWorthwhile = kPagesOfBlock / 8;
constexpr unsigned kBlocksToJudge = 4;  // by what is in them
constexpr unsigned kMostLooks = 8;

void* At(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Counts of blocks that were touched. Single blocks may mislead: one may have become a large page just before that was
/// changed.
struct Tally {
  std::uint64_t blocks = 0, used = 0;
  void Add(std::uint64_t pages) {
    ++blocks;
    used += pages >= kWorthwhile;
  }
  bool MostAreUsed() const { return 2 * used >= blocks; }
};

/// Kernels may be writing to it: then it is the one or the other.
__attribute__((no_sanitize("address", "thread"))) bool IsZero(std::uint64_t page) {
  const auto* const words = reinterpret_cast<const volatile std::uint64_t*>(page);
  for (std::uint64_t i = 0; i < kPageBytes / 8; ++i)
    if (words[i] != 0) return false;
  return true;
}

/// Pages of a block that hold anything. Only those are read that are there.
std::uint64_t CountUsed(std::uint64_t block) {
  unsigned char there[kPagesOfBlock];
  if (mincore(At(block), kHugePage, there) != 0) return kPagesOfBlock;
  std::uint64_t used = 0;
  for (std::uint64_t i = 0; i < kPagesOfBlock; ++i) used += (there[i] & 1) != 0 && !IsZero(block + i * kPageBytes);
  return used;
}

}  // namespace

/// For each block, how many of its pages are there.
std::vector<std::uint16_t> PageUse::CountTouched() const {
  constexpr std::uint64_t kAtATime = 128;  // blocks
  std::vector<std::uint16_t> touched(blocks_, 0);
  std::vector<unsigned char> there(kAtATime * kPagesOfBlock);
  for (std::uint64_t first = 0; first < blocks_; first += kAtATime) {
    const std::uint64_t count = std::min(kAtATime, blocks_ - first);
    if (mincore(At(base_ + first * kHugePage), count * kHugePage, there.data()) != 0) continue;
    for (std::uint64_t page = 0; page < count * kPagesOfBlock; ++page)
      touched[first + page / kPagesOfBlock] += there[page] & 1;
  }
  return touched;
}

bool PageUse::Look() { return before_.empty() ? LookAtLarge() : LookAtSmall(); }

/// All of a large page is there once one byte is touched, so what counts is what is in it. Zeros that a kernel wrote
/// look like nothing; LookAtSmall finds that out.
bool PageUse::LookAtLarge() {
  std::vector<std::uint16_t> touched = CountTouched();
  Tally tally;
  for (std::uint64_t i = 0; i < blocks_ && tally.blocks < kBlocksToJudge; ++i) {
    if (touched[i] != 0) tally.Add(CountUsed(base_ + i * kHugePage));
  }
  if (tally.blocks < kBlocksToJudge) return false;
  if (tally.MostAreUsed()) return true;
  madvise(At(base_), blocks_ * kHugePage, MADV_NOHUGEPAGE);
  before_ = std::move(touched);
  return false;
}

bool PageUse::LookAtSmall() {
  const std::vector<std::uint16_t> touched = CountTouched();
  Tally tally;
  for (std::uint64_t i = 0; i < blocks_; ++i) {
    if (touched[i] != before_[i]) tally.Add(touched[i]);
  }
  if (tally.blocks < kBlocksToJudge) return false;
  if (!tally.MostAreUsed()) return ++looks_ == kMostLooks;
  madvise(At(base_), blocks_ * kHugePage, MADV_HUGEPAGE);
  return true;
}

}  // namespace gridloom::exec
