#include "sim/hardware/hazards/memory_lines.h"

namespace gridloom::hardware::hazards {

MemoryLines::Page& MemoryLines::PageOf(std::uint64_t line) {
  if (line / kLines != last_number_) {
    last_number_ = line / kLines;
    last_page_ = &pages_[last_number_];
  }
  return *last_page_;
}

const MemoryLines::Page* MemoryLines::Find(std::uint64_t line) const {
  if (line / kLines == last_number_) return last_page_;
  const auto page = pages_.find(line / kLines);
  return page == pages_.end() ? nullptr : &page->second;
}

bool MemoryLines::IsGlobal(std::uint64_t line) const {
  const Page* const page = Find(line);
  return page != nullptr && (page->global >> line % kLines & 1) != 0;
}

void MemoryLines::Write(std::uint64_t line, std::uint8_t sectors, const LastWrite& write) {
  Page& page = PageOf(line);
  if (page.writes == nullptr) page.writes = std::make_unique<std::array<LastWrite, kLines * kSectors>>();
  for (std::uint32_t sector = 0; sector < kSectors; ++sector) {
    if ((sectors >> sector & 1) != 0) (*page.writes)[line % kLines * kSectors + sector] = write;
  }
}

const LastWrite* MemoryLines::WriteOf(std::uint64_t line, std::uint32_t sector) const {
  const Page* const page = Find(line);
  return page == nullptr || page->writes == nullptr ? nullptr : &(*page->writes)[line % kLines * kSectors + sector];
}

}  // namespace gridloom::hardware::hazards
