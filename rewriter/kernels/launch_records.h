// What the functions of `consolidate` (consolidate.cu) and the pass share: launches as threads keep them, and tables of
// them. For C++ and CUDA.
#pragma once

#include <cstdint>

namespace gridloom::passes {

/// A parameter buffer that is memory of a thread; the parameters follow it.
struct LaunchSlot {
  std::uint32_t grid[3], shared;  ///< `shared`: dynamic shared bytes
  std::uint32_t block[3], unused;
};
static_assert(sizeof(LaunchSlot) == 32);

/// The head of a table of launches, memory from malloc; of each launch the CTAs of those before it (u32) follow, then,
/// aligned to 16 bytes, the launches.
struct LaunchTable {
  std::uint32_t ctas, launches;
  std::uint64_t next;     ///< table of a list
  std::uint64_t threads;  ///< that have not read their parameters yet; who makes it 0 frees the tables
  std::uint32_t shape;    ///< of the blocks: x | y << 11 | z << 22
  std::uint32_t shared;   ///< their dynamic shared bytes
};
static_assert(sizeof(LaunchTable) == 32);

/// The head of a launch in a table; the parameters follow it.
struct LaunchRecord {
  std::uint32_t grid[3], unused;
};

/// Several tables that one launch does: a head like that of a table, of which `threads` is used, then these.
struct ListedTable {
  std::uint32_t ctas_before, unused;
  std::uint64_t table;
};
static_assert(sizeof(LaunchRecord) == 16 && sizeof(ListedTable) == 16);

/// Grids that run have places, by number; GPUs have room for 128 at a time.
inline constexpr std::uint32_t kGridPlaces = 1024;

}  // namespace gridloom::passes
