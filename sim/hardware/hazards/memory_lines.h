// What is known of each line of device memory: whether it is anybody's but one thread's, and who wrote its sectors
// last.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "sim/timing/cycle.h"
#include "sim/timing/work.h"

namespace gridloom::hardware::hazards {

struct LastWrite {
  timing::Cycle at = 0;
  timing::WorkId work = timing::kNoWork;
  std::uint32_t sm = 0;
};

/// Lines are physical: address / 128.
class MemoryLines {
 public:
  static constexpr std::uint32_t kSectors = 4;

  /// A line of global memory: local memory of threads lies elsewhere.
  void MarkGlobal(std::uint64_t line) { PageOf(line).global |= 1u << line % kLines; }
  bool IsGlobal(std::uint64_t line) const;
  void Write(std::uint64_t line, std::uint8_t sectors, const LastWrite& write);
  /// Null: nobody has written the line's page.
  const LastWrite* WriteOf(std::uint64_t line, std::uint32_t sector) const;

 private:
  static constexpr std::uint64_t kLines = 32;  ///< of a page of 4 KiB
  struct Page {
    std::uint32_t global = 0;
    std::unique_ptr<std::array<LastWrite, kLines * kSectors>> writes;
  };
  Page& PageOf(std::uint64_t line);
  const Page* Find(std::uint64_t line) const;

  std::unordered_map<std::uint64_t, Page> pages_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_page_ = nullptr;
};

}  // namespace gridloom::hardware::hazards
