#include "interpose/objects/residency.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace gridloom::session {

std::optional<bool> IsMostlyResident(std::uintptr_t begin, std::uintptr_t end, std::size_t step) {
  constexpr std::size_t kPagesAtOnce = 1 << 14;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = begin / page, last = (end - 1) / page;
  const std::size_t stride = std::max<std::size_t>(step / page, 1);  // several samples of one page are one
  std::vector<unsigned char> there(kPagesAtOnce);
  std::size_t samples = 0, resident = 0;
  std::uintptr_t sample = first;
  for (std::uintptr_t at = first; at <= last; at += kPagesAtOnce) {
    const std::size_t pages = std::min<std::uintptr_t>(kPagesAtOnce, last - at + 1);
    if (mincore(reinterpret_cast<void*>(at * page), pages * page, there.data()) != 0) return std::nullopt;
    for (; sample < at + pages; sample += stride) {
      ++samples;
      resident += there[sample - at] & 1;
    }
  }
  return resident * 2 >= samples;
}

}  // namespace gridloom::session
