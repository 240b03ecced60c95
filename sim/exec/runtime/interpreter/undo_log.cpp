#include "sim/exec/runtime/interpreter/undo_log.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

namespace gridloom::exec {

bool UndoLog::Keep(Part& part, std::uint64_t address, std::uint32_t bytes) {
  if (broken()) return true;
  if (decided()) return false;
  if (part.remembered_.empty()) part.remembered_.assign(Part::kRemembered, 0);
  const std::uint64_t key = address * (2 * kMostRow) + bytes;  // addresses have 47 bits
  std::uint64_t& remembered = part.remembered_[(key * 0x9e3779b97f4a7c15U) >> 52U];
  if (remembered == key) return true;
  const std::size_t at = part.bytes_.size(), size = SizeOf(bytes);
  if (kept_bytes_.fetch_add(size, std::memory_order_relaxed) > kMostBytes) return Break();
  try {
    part.bytes_.resize(at + size);
  } catch (const std::bad_alloc&) {
    return Break();
  }
  std::memcpy(part.bytes_.data() + at + sizeof(Header), reinterpret_cast<const void*>(address), bytes);
  // Counted after the bytes were read and before the store: whose bytes are another store's has the higher number.
  const Header header{next_.fetch_add(1, std::memory_order_seq_cst), address, bytes};
  std::memcpy(part.bytes_.data() + at, &header, sizeof header);
  remembered = key;
  return true;
}

void UndoLog::Take(Part& part) {
  if (part.empty()) return;
  const std::lock_guard lock(mutex_);
  parts_.push_back(std::exchange(part, {}));
}

void UndoLog::Undo() {
  struct Record {
    Header header;
    const std::byte* bytes;
  };
  std::vector<Record> records;
  for (const Part& part : parts_) {
    for (std::size_t at = 0; at < part.bytes_.size();) {
      Record record{{}, part.bytes_.data() + at + sizeof(Header)};
      std::memcpy(&record.header, part.bytes_.data() + at, sizeof(Header));
      records.push_back(record);
      at += SizeOf(record.header.bytes);
    }
  }
  std::ranges::sort(records, std::greater(), [](const Record& record) { return record.header.number; });
  for (const Record& record : records) std::memcpy(reinterpret_cast<void*>(record.header.address), record.bytes, record.header.bytes);
  parts_.clear();
}

}  // namespace gridloom::exec
