// The keys of the part, and the device's numbers that it goes by, as its components read them.
#pragma once

#include <cstdint>

#include "sim/timing/parameters.h"

namespace gridloom::hardware::crcs {

enum class Order : std::uint8_t { kInterleaved, kArrays, kRandom, kRecorded };

struct Settings {
  unsigned page_shift = 12;
  bool readiness = false;  ///< of single CTAs is known what they touch
  bool scoreboard = true;  ///< off: warps go on whoever owns the pages
  /// A page is available once it holds data that a kernel may use; else as soon as it waits for no copy.
  bool needs_data = true;
  Order order = Order::kInterleaved;
  std::uint64_t seed = 0;
  std::uint32_t read_bytes = 4096;  ///< that the host reads from storage at once
  timing::Cycle table = 0;          ///< an operation on the table, from the SM and until it counts
  timing::Cycle notify = 0;         ///< a new owner, until SMs know
  timing::Cycle dma = 0;            ///< a page over PCIe, besides its bytes
  std::uint32_t entry_bytes = 16;   ///< of the tables in device memory
  timing::Cycle line_cycles = 1;    ///< of the memory management unit, for a line of them
  std::size_t dat_entries = 64;
  timing::Cycle dat_miss = 0;
  std::uint64_t storage_mb_s = 0, to_device_mb_s = 0, to_host_mb_s = 0;
  std::uint64_t mhz = 0;
  /// What follows from something between windows can be had so many cycles later (Parameters::window).
  timing::Cycle after = 0;
  std::uint32_t sms = 0;
  std::uint64_t move_mb_s = 0;  ///< what copies and fills on the device

  timing::Cycle MoveCycles(std::uint64_t bytes) const { return bytes * mhz / move_mb_s + 1; }
};

}  // namespace gridloom::hardware::crcs
