#include "sim/exec/runtime/interpreter/undo_log.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <thread>
#include <utility>

namespace gridloom::exec {

bool UnseenMemory::Find(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes) {
  const std::optional<Allocation> found = memory.Find(address);
  if (!found || bytes > found->bytes || address - found->base > found->bytes - bytes) return false;
  switch (found->kind) {
    case MemoryKind::kDevice:
    case MemoryKind::kPool:
    case MemoryKind::kModule:
    case MemoryKind::kInternal: break;
    case MemoryKind::kManaged:
    case MemoryKind::kPinned:
    case MemoryKind::kRegistered:
    case MemoryKind::kReserved: return false;
  }
  base_ = found->base;
  bytes_ = found->bytes;
  return true;
}

// Either Enter counts before Suspend looks, or it finds that a grid is to begin again: both are sequentially
// consistent.
void Onlookers::Enter() {
  entered_.fetch_add(1);
  inside_.fetch_add(1);
  while (suspended_.load() != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

bool Onlookers::Suspend(std::uint64_t since) {
  suspended_.fetch_add(1);
  if (inside_.load() == 0 && entered_.load() == since) return true;
  Resume();
  return false;
}

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
  part.unseen = {};
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
  for (const Record& record : records)
    std::memcpy(reinterpret_cast<void*>(record.header.address), record.bytes, record.header.bytes);
  parts_.clear();
}

}  // namespace gridloom::exec
