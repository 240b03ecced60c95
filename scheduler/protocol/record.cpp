#include "scheduler/protocol/record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace gridloom::protocol {
namespace {

// Wider than any device's, so that sums of a session's numbers cannot overflow.
constexpr std::uint64_t kMostCtas = std::uint64_t{1} << 62;
constexpr std::uint32_t kMostThreads = 4096, kMostRegisters = 1024;
constexpr std::uint32_t kMostShared = 1u << 28;

Error Bad(const char* what, std::uint64_t value) {
  return Error{std::string("a record with ") + what + " " + std::to_string(value)};
}

Result<LaunchRecord> ParseLaunch(const RawRecord& raw) {
  if (raw.value == 0 || raw.value > kMostCtas) return Bad("a grid of CTAs", raw.value);
  if (raw.threads_per_cta == 0 || raw.threads_per_cta > kMostThreads)
    return Bad("threads per CTA", raw.threads_per_cta);
  if (raw.registers_per_thread > kMostRegisters) return Bad("registers per thread", raw.registers_per_thread);
  if (raw.shared_bytes > kMostShared) return Bad("bytes of shared memory", raw.shared_bytes);
  if ((raw.flags & ~kDivisible) != 0) return Bad("unknown flags", raw.flags);
  if (raw.priority < -100 || raw.priority > 100) return Error{"a record with priority " + std::to_string(raw.priority)};
  return LaunchRecord{.kernel = raw.kernel,
                      .stream = raw.stream,
                      .ctas = raw.value,
                      .threads_per_cta = raw.threads_per_cta,
                      .registers_per_thread = raw.registers_per_thread,
                      .shared_bytes = raw.shared_bytes,
                      .priority = raw.priority,
                      .divisible = (raw.flags & kDivisible) != 0,
                      .name = FieldText(raw.name, sizeof raw.name)};
}

}  // namespace

std::uint64_t KernelHash(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

std::string FieldText(const char* field, std::size_t bytes) {
  std::string text(field, strnlen(field, bytes));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

Result<Record> ParseRecord(const RawRecord& raw, std::uint64_t sequence) {
  if (raw.sequence != sequence)
    return Error{"record " + std::to_string(sequence) + " says it is record " + std::to_string(raw.sequence)};
  Record record;
  record.slot = raw.slot;
  record.launch = raw.launch;
  record.copied_bytes = raw.copied_bytes;
  if (raw.copied_bytes > kMostBytes) return Bad("copied bytes", raw.copied_bytes);
  if (raw.slot >= kSlots) return Bad("slot", raw.slot);
  switch (static_cast<RecordKind>(raw.kind)) {
    case RecordKind::kLaunch: {
      GL_TRY(launch, ParseLaunch(raw));
      record.body = std::move(launch);
      return record;
    }
    case RecordKind::kProgress: record.body = ProgressRecord{raw.value}; return record;
    case RecordKind::kEnd:
      if ((raw.flags & ~kFaulted) != 0) return Bad("unknown flags", raw.flags);
      record.body = EndRecord{raw.value, (raw.flags & kFaulted) != 0};
      return record;
    case RecordKind::kMemory:
      if (raw.value > kMostBytes) return Bad("bytes of memory", raw.value);
      record.body = MemoryRecord{raw.value};
      return record;
  }
  return Bad("unknown kind", raw.kind);
}

}  // namespace gridloom::protocol
