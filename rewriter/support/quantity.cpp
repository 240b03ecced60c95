#include "rewriter/support/quantity.h"

#include <charconv>

namespace gridloom {
namespace {

/// What a unit multiplies with; 0 for one that is not known.
std::uint64_t FactorOf(std::string_view unit) {
  if (unit.ends_with("iB")) unit.remove_suffix(2);
  else if (unit.ends_with('B')) unit.remove_suffix(1);
  if (unit.empty()) return 1;
  const auto power = std::string_view("KMGT").find(static_cast<char>(unit[0] & ~0x20));
  return unit.size() != 1 || power == std::string_view::npos ? 0 : std::uint64_t{1} << (10 * (power + 1));
}

}  // namespace

std::optional<std::uint64_t> ParseBytes(std::string_view text, std::uint64_t whole) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (unit == "%") number *= static_cast<double>(whole) / 100;
  else number *= static_cast<double>(FactorOf(unit));
  if (unit == "%" ? whole == 0 : FactorOf(unit) == 0) return std::nullopt;
  constexpr double kTooMuch = 18446744073709551616.0;  // 2^64; what is no number is refused with it
  if (!(number >= 0 && number < kTooMuch)) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

std::optional<std::uint64_t> ParseRate(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.ends_with("/s")) unit.remove_suffix(2);
  if (unit == "GB") number *= 1000;
  else if (unit != "MB" && !unit.empty()) return std::nullopt;
  constexpr double kMost = 1e6;
  if (!(number >= 1 && number <= kMost)) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

std::optional<NumberRange> ParseNumberRange(std::string_view text) {
  NumberRange range;
  const char* const end = text.data() + text.size();
  const auto [dash, error] = std::from_chars(text.data(), end, range.first);
  if (error != std::errc()) return std::nullopt;
  if (dash == end) return NumberRange{range.first, range.first};
  if (*dash != '-') return std::nullopt;
  if (dash + 1 == end) return range;
  const auto [rest, second] = std::from_chars(dash + 1, end, range.last);
  if (second != std::errc() || rest != end || range.first > range.last) return std::nullopt;
  return range;
}

std::optional<int> ParseCudaVersion(std::string_view text) {
  unsigned major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, second] = std::from_chars(dot + 1, end, minor);
  if (second != std::errc() || rest != end || major == 0 || major > 99 || minor > 99) return std::nullopt;
  return static_cast<int>(1000 * major + 10 * minor);
}

}  // namespace gridloom
