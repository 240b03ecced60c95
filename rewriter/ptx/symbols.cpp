#include "rewriter/ptx/symbols.h"

#include <cstring>

#include "rewriter/ptx/ir.h"

namespace gridloom::ptx {
namespace {

// Names are short and looked up for every operand: eight bytes at a time, multiply and fold.
std::uint64_t HashOf(std::string_view name) {
  std::uint64_t hash = name.size() * 0x9E3779B97F4A7C15u;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  };
  const char* p = name.data();
  std::size_t left = name.size();
  for (; left >= 8; left -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  std::uint64_t tail = 0;
  for (std::size_t i = 0; i < left; ++i)
    tail |= static_cast<std::uint64_t>(static_cast<unsigned char>(p[i])) << (8 * i);
  mix(tail);
  return hash;
}

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }

}  // namespace

SymbolTable::SymbolTable() : slots_(256) {}

std::size_t SymbolTable::Probe(std::string_view name, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = hash & mask;
  while (slots_[i].name.data() != nullptr && (slots_[i].hash != hash || slots_[i].name != name)) i = (i + 1) & mask;
  return i;
}

void SymbolTable::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.name.data() != nullptr) slots_[Probe(slot.name, slot.hash)] = slot;
  }
}

SymbolTable::Slot& SymbolTable::SlotFor(std::string_view name) {
  if (used_ * 2 >= slots_.size()) Grow();
  const std::uint64_t hash = HashOf(name);
  Slot& slot = slots_[Probe(name, hash)];
  if (slot.name.data() == nullptr) {
    slot.name = name;
    slot.hash = hash;
    ++used_;
  }
  return slot;
}

const SymbolTable::Slot* SymbolTable::FindSlot(std::string_view name) const {
  const Slot& slot = slots_[Probe(name, HashOf(name))];
  return slot.name.data() != nullptr ? &slot : nullptr;
}

void SymbolTable::Declare(std::string_view name, Symbol symbol) {
  if (name.empty()) return;
  symbol.depth = depth();
  Slot& slot = SlotFor(name);
  declared_.push_back({.symbol = symbol, .hidden = slot.exact, .is_range = false, .name = slot.name});
  slot.exact = static_cast<std::uint32_t>(declared_.size() - 1);
}

void SymbolTable::DeclareRange(std::string_view prefix, Variable* variable) {
  if (prefix.empty()) return;
  Slot& slot = SlotFor(prefix);
  const Symbol symbol{.variable = variable, .depth = depth()};
  declared_.push_back({.symbol = symbol, .hidden = slot.range, .is_range = true, .name = slot.name});
  slot.range = static_cast<std::uint32_t>(declared_.size() - 1);
}

void SymbolTable::PopScope() {
  const std::size_t start = scope_starts_.back();
  scope_starts_.pop_back();
  while (declared_.size() > start) {
    const Declaration& last = declared_.back();
    Slot& slot = SlotFor(last.name);
    (last.is_range ? slot.range : slot.exact) = last.hidden;
    declared_.pop_back();
  }
}

Symbol SymbolTable::FindExact(std::string_view name) const {
  const Slot* slot = FindSlot(name);
  if (slot == nullptr || slot->exact == kNobody) return {};
  return declared_[slot->exact].symbol;
}

// An element of a range: its number has no leading zeros and lies below the count.
Symbol SymbolTable::FindInRange(std::string_view prefix, std::string_view digits) const {
  if (digits.size() > 1 && digits.front() == '0') return {};
  const Slot* slot = FindSlot(prefix);
  if (slot == nullptr || slot->range == kNobody) return {};
  std::uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<std::uint64_t>(c - '0');
  for (std::uint32_t i = slot->range; i != kNobody; i = declared_[i].hidden) {
    Symbol symbol = declared_[i].symbol;
    if (number >= symbol.variable->range_count) continue;
    symbol.index = static_cast<std::uint32_t>(number);
    return symbol;
  }
  return {};
}

Symbol SymbolTable::Find(std::string_view name) const {
  Symbol best = FindExact(name);
  // The whole run of digits first: `%r12` is nearly always element 12 of `%r<n>`, rarely element 2 of `%r1<n>`.
  constexpr std::size_t kMostDigits = 9;
  std::size_t first_digit = name.size();
  while (first_digit > 1 && IsDecimal(name[first_digit - 1]) && name.size() - first_digit < kMostDigits) --first_digit;
  for (std::size_t i = first_digit; i < name.size(); ++i) {
    const Symbol element = FindInRange(name.substr(0, i), name.substr(i));
    if (!element.found()) continue;
    if (!best.found() || element.depth > best.depth) best = element;
    break;
  }
  return best;
}

}  // namespace gridloom::ptx
