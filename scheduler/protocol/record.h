// What a tenant tells the broker through its ring: launches, what has run of them, memory. Fixed size, versioned with
// the segment. A record is copied out of the ring first; everything below reads the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "rewriter/support/result.h"

namespace gridloom::protocol {

/// Version of records, segment and messages; both sides must have the same.
inline constexpr std::uint16_t kVersion = 10;

/// Launches a session may have announced at a time: the number of mailboxes.
inline constexpr std::uint32_t kSlots = 256;

enum class RecordKind : std::uint32_t {
  kLaunch = 1,    ///< a launch that may run now
  kProgress = 2,  ///< the CTAs before `done` have run
  kEnd = 3,       ///< nothing of the launch will run any more; its slot is free
  kMemory = 4,    ///< asks for device memory, or gives some back
};

/// A record as it lies in the ring. Texts end with a zero byte if there is room, and are zero behind it.
struct RawRecord {
  std::uint64_t sequence = 0;  ///< records of this ring before this one: a replayed or torn record has a wrong one
  std::uint32_t kind = 0;
  std::uint32_t slot = 0;
  std::uint64_t launch = 0;        ///< number of the launch in its session, from 1 without gaps
  std::uint64_t value = 0;         ///< kLaunch: CTAs; kProgress, kEnd: CTAs that have run; kMemory: bytes wanted in all
  std::uint64_t copied_bytes = 0;  ///< by copies and fills of the session since the last record
  std::uint64_t kernel = 0;        ///< from here on kLaunch only: KernelHash of its whole name
  std::uint64_t stream = 0;        ///< launches of one stream run one after the other; 0: of none
  std::uint32_t threads_per_cta = 0;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_bytes = 0;
  std::int32_t priority = 0;  ///< of the stream; larger goes first
  std::uint32_t flags = 0;    ///< kDivisible; kEnd: kFaulted
  char name[52] = {};         ///< of the kernel, as much as fits
};
static_assert(std::is_trivially_copyable_v<RawRecord> && sizeof(RawRecord) == 128);

/// Bytes of memory, and bytes that are copied: more than there is anywhere. A record with more ends its session.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

inline constexpr std::uint32_t kDivisible = 1;  ///< the tenant can run the launch in parts
inline constexpr std::uint32_t kFaulted = 2;

struct LaunchRecord {
  std::uint64_t kernel = 0;
  std::uint64_t stream = 0;
  std::uint64_t ctas = 0;
  std::uint32_t threads_per_cta = 0;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_bytes = 0;  ///< per CTA, static and dynamic
  std::int32_t priority = 0;
  bool divisible = false;
  std::string name;
};
struct ProgressRecord {
  std::uint64_t done = 0;
};
struct EndRecord {
  std::uint64_t done = 0;
  bool faulted = false;
};
struct MemoryRecord {
  std::uint64_t bytes = 0;  ///< the session wants so much in all
};

struct Record {
  std::uint32_t slot = 0;
  std::uint64_t launch = 0;
  std::uint64_t copied_bytes = 0;
  std::variant<LaunchRecord, ProgressRecord, EndRecord, MemoryRecord> body;
};

/// What stands for a kernel's name where its length does not fit.
std::uint64_t KernelHash(std::string_view name);

/// Checks a copied record as far as it can be checked alone; `sequence` is the one it must have.
Result<Record> ParseRecord(const RawRecord& raw, std::uint64_t sequence);

/// Text of a fixed field, with everything that is not printable ASCII replaced: it goes into logs and terminals.
std::string FieldText(const char* field, std::size_t bytes);
/// Fills a fixed field; leaves off what does not fit.
template <std::size_t N>
void SetField(char (&field)[N], std::string_view text) {
  std::memset(field, 0, N);
  std::memcpy(field, text.data(), text.size() < N ? text.size() : N - 1);
}

}  // namespace gridloom::protocol
