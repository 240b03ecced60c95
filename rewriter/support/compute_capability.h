// Compute capability of a device or the architecture a piece of device code was built for.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gridloom {

/// 9.0 is {9, 0}; sm_121 is {12, 1}.
struct ComputeCapability {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  friend constexpr auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;

  static constexpr ComputeCapability FromSm(std::uint32_t sm) { return {sm / 10, sm % 10}; }
  /// 90 for 9.0, 121 for 12.1: the number behind `sm_`.
  constexpr std::uint32_t sm() const { return major * 10 + minor; }
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// "9.0" -> {9, 0}.
inline std::optional<ComputeCapability> ParseComputeCapability(std::string_view text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  };
  const auto major = number(text.substr(0, dot));
  const auto minor = number(text.substr(dot + 1));
  if (!major || !minor || *minor > 9) return std::nullopt;
  return ComputeCapability{*major, *minor};
}

}  // namespace gridloom
