#include "interpose/base/slice_size.h"

#include <charconv>

#include "interpose/base/settings.h"

namespace gridloom::session {

Result<std::uint64_t> ParseSliceSize(const std::optional<std::string>& text) {
  if (!text || text->empty()) return std::uint64_t{0};
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), size);
  if (error != std::errc() || end != text->data() + text->size())
    return Error{"GRIDLOOM_SLICE=" + *text + " is not a number of CTAs"};
  return size;
}

std::uint64_t SliceSize() {
  static const std::uint64_t size = [] {
    const auto parsed = ParseSliceSize(TheSettings().slice);
    return parsed.ok() ? *parsed : 0;
  }();
  return size;
}

}  // namespace gridloom::session
