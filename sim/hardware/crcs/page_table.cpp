#include "sim/hardware/crcs/page_table.h"

#include <algorithm>

namespace gridloom::hardware::crcs {
namespace {

auto FindUser(auto& users, timing::WorkId work) {
  return std::ranges::find(users, work, [](const PageUser& user) { return user.turn.work; });
}

}  // namespace

bool PageEntry::Has(timing::WorkId work) const { return FindUser(users, work) != users.end(); }

PageEntry& PageTable::At(std::uint64_t page) {
  auto& chunk = chunks_[page / kChunk];
  if (chunk == nullptr) chunk = std::make_unique<Chunk>();
  return (*chunk)[page % kChunk];
}

bool PageTable::Enter(PageEntry& entry, const PageUser& user) {
  entry.users.push_back(user);
  return entry.users.size() == 1;
}

bool PageTable::Leave(PageEntry& entry, timing::WorkId work) {
  const auto place = FindUser(entry.users, work);
  if (place == entry.users.end()) return false;
  const bool owner = place == entry.users.begin();
  entry.users.erase(place);
  return owner;
}

}  // namespace gridloom::hardware::crcs
