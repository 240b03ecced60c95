// Which pages of the process' memory there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gridloom::session {

/// Whether memory stands behind most of the addresses `begin`, `begin + step`, … below `end`. A page that nobody has
/// touched has none. Nothing when part of it is no memory of the process. `begin` < `end`, `step` > 0, all in bytes.
std::optional<bool> IsMostlyResident(std::uintptr_t begin, std::uintptr_t end, std::size_t step);

}  // namespace gridloom::session
