// What is in the workspace of a cooperative grid (%envreg1:%envreg2): the runtime makes it, generated code and the
// headers of cooperative groups use it.
#pragma once

#include <cstdint>

namespace gridloom::exec {

/// It begins with its size in four bytes, which the headers look at. Behind them is the count of the grid's barrier,
/// and behind all that headers may use, one word a CTA: of its threads, how many have come to the barrier of the device
/// runtime library.
inline constexpr std::uint64_t kGridCountOffset = 4, kGridArrivalsOffset = 4096;

constexpr std::uint64_t GridWorkspaceBytes(std::uint64_t ctas) { return kGridArrivalsOffset + 4 * ctas; }

}  // namespace gridloom::exec
