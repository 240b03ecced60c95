// What memcheck has to know of asynchronous copies to shared memory: immediates of kCheckOrder besides kCheckOrderWarp
// and kCheckOrderCta (immediates.h). Copies happen at once; on a GPU their bytes are there when they have been waited
// for.
#pragma once

#include <cstdint>

namespace gridloom::exec {

/// In: i64 offset in shared memory, i64 bytes, i64 host address of its mbarrier or 0.
inline constexpr std::uint64_t kCopyBegins = 2;
inline constexpr std::uint64_t kCopiesCommitted = 3;  ///< cp.async.commit_group
inline constexpr std::uint64_t kCopiesAwaited = 4;    ///< cp.async.wait_group; the groups that may be under way << 8
inline constexpr std::uint64_t kAllCopiesAwaited = 5;
/// cp.async.mbarrier.arrive: those begun so far; in: i64 its host address.
inline constexpr std::uint64_t kCopiesToMbarrier = 6;
constexpr std::uint64_t CopiesAwaited(std::uint64_t groups) { return kCopiesAwaited | groups << 8; }

}  // namespace gridloom::exec
