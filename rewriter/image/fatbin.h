// Fat binary containers and the wrapper that programs register them with.
#pragma once

#include <optional>
#include <vector>

#include "rewriter/image/image_set.h"

namespace gridloom::image {

inline constexpr std::uint32_t kWrapperMagic = 0x466243B1;
inline constexpr std::uint32_t kContainerMagic = 0xBA55ED50;
/// No real container comes near; more is a broken or hostile header.
inline constexpr std::uint64_t kMaxContainerBytes = 2ull << 30;

/// The container at the start of `bytes`, its header included: how long it says it is, when it is one.
std::optional<std::uint64_t> ContainerSize(Bytes bytes);

/// Reads one container that starts at the first byte. Views point into `bytes`.
Result<Container> ReadContainer(Bytes bytes);

/// Reads a series of containers, each on an 8-byte boundary with zeros between, as a section holds them.
Result<std::vector<Container>> ReadContainers(Bytes bytes);

/// Reads a wrapper in this process's memory and everything it points to: its container, then the parts of an -rdc
/// program.
Result<std::vector<Container>> ReadWrapper(const void* wrapper);

}  // namespace gridloom::image
