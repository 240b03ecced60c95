#include "interpose/observe/host_reuse.h"

#include <algorithm>

namespace gridloom::session {

using Reuse = trace::HostAction::Reuse;

std::vector<Reuse> HostReuse::Find(const Memory& memory) const {
  std::vector<Reuse> reuses;
  if (memory.bytes == 0) return reuses;
  auto piece = pieces_.upper_bound(memory.begin);
  if (piece != pieces_.begin() && std::prev(piece)->second.end > memory.begin) --piece;
  for (; piece != pieces_.end() && piece->first < memory.begin + memory.bytes; ++piece) {
    for (const Copy& copy : piece->second.copies) {
      reuses.push_back({.work = copy.work, .begin = static_cast<std::int64_t>(copy.begin - memory.begin)});
    }
  }
  std::ranges::sort(reuses, {}, &Reuse::work);
  reuses.erase(std::ranges::unique(reuses).begin(), reuses.end());
  return reuses;
}

/// A piece that goes on behind the address becomes two.
void HostReuse::SplitAt(std::uint64_t address) {
  auto piece = pieces_.lower_bound(address);
  if (piece == pieces_.begin() || (--piece)->second.end <= address) return;
  pieces_.emplace(address, piece->second);
  piece->second.end = address;
}

/// The pieces that lie in the memory as a whole; the memory has no others.
std::pair<HostReuse::Pieces::iterator, HostReuse::Pieces::iterator> HostReuse::PiecesIn(const Memory& memory) {
  SplitAt(memory.begin);
  SplitAt(memory.begin + memory.bytes);
  return {pieces_.lower_bound(memory.begin), pieces_.lower_bound(memory.begin + memory.bytes)};
}

void HostReuse::Forget(const Memory& memory) {
  const auto [first, last] = PiecesIn(memory);
  pieces_.erase(first, last);
}

void HostReuse::Add(const Memory& memory, std::uint64_t work, bool waits) {
  if (memory.bytes == 0) return;
  if (pieces_.size() >= kMostPieces) pieces_.clear();
  const std::uint64_t end = memory.begin + memory.bytes;
  const Copy copy = {.work = work, .begin = memory.begin};
  const auto [first, last] = PiecesIn(memory);
  if (waits) {
    pieces_.erase(first, last);
    pieces_[memory.begin] = {.end = end, .copies = {copy}};
    return;
  }
  std::uint64_t at = memory.begin;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps;
  for (auto piece = first; piece != last; ++piece) {
    if (at < piece->first) gaps.emplace_back(at, piece->first);
    at = piece->second.end;
    auto& copies = piece->second.copies;
    if (copies.size() == kMostCopies) copies.erase(copies.begin());
    copies.push_back(copy);
  }
  if (at < end) gaps.emplace_back(at, end);
  for (const auto& [from, to] : gaps) pieces_[from] = {.end = to, .copies = {copy}};
}

}  // namespace gridloom::session
