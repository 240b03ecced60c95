// Amounts as people write them in options, variables and files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gridloom {

/// "4G" -> 4 GiB, "1.5MiB", "1024"; "50%" -> half of `whole`, where there is one. Empty when it is neither, or too much
/// for 64 bits.
std::optional<std::uint64_t> ParseBytes(std::string_view text, std::uint64_t whole = 0);

/// Bytes a second, in units of 10^6: "500MB/s", "14GB/s", "0.5 GB/s", "500". Empty when it is none, is below 1 or above
/// 10^6.
std::optional<std::uint64_t> ParseRate(std::string_view text);

/// A range of numbers, to which both ends belong.
struct NumberRange {
  std::uint64_t first = 0, last = ~std::uint64_t{0};
};
/// "7", "7-" (from 7 on), "7-20".
std::optional<NumberRange> ParseNumberRange(std::string_view text);

/// "13.0" -> 13000, "12.8" -> 12080: versions as CUDA counts them, 1000 * major + 10 * minor.
std::optional<int> ParseCudaVersion(std::string_view text);

}  // namespace gridloom
