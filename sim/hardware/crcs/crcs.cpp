#include "sim/hardware/crcs/crcs.h"

#include <bit>

#include "sim/hardware/crcs/part.h"

namespace gridloom::hardware {
namespace {

using crcs::Settings;
using timing::Cycle;

constexpr std::string_view kSwitch[] = {"off", "on"};
constexpr std::string_view kRanges[] = {"interval", "strided"};
constexpr std::string_view kAvailable[] = {"ready", "written"};
constexpr std::string_view kOrders[] = {"interleaved", "arrays", "random", "recorded"};

enum Key : std::size_t {
  kRangesKey,
  kPageBytes,
  kScoreboard,
  kReadinessKey,
  kAvailableKey,
  kOrder,
  kSeed,
  kReadBytes,
  kTableCycles,
  kNotifyCycles,
  kLineCycles,
  kEntryBytes,
  kDmaNs,
  kDatEntries,
  kDatMissNs
};
constexpr PartKey kKeys[] = {
    {"ranges", 0, 0, 0, "",
     "which ranges of CTAs kernels go by: from the lowest to the highest address, or pieces at equal distances",
     kRanges},
    {"page_bytes", 4096, 4096, 2u << 20, "bytes", "a page of the table; a power of two"},
    {"scoreboard", 1, 0, 1, "",
     "off: warps go on whoever owns the pages, and results would be wrong; shows what the scoreboard costs", kSwitch},
    {"readiness", 0, 0, 1, "",
     "the pages of single CTAs are kept, so that those whose pages are there can go first (the policy crcs-ready)",
     kSwitch},
    {"available", 1, 0, 1, "",
     "pages that shares are counted in: those that wait for no copy, or of these those that hold data", kAvailable},
    {"order", 0, 0, 0, "",
     "in which order inputs are read from storage: a piece of each array in turn, array after array, the same with the "
     "pieces of each at random, or as the program filled them where the trace says so",
     kOrders},
    {"seed", 1, 0, 1u << 30, "", "of the order at random"},
    {"read_bytes", 4096, 512, 1u << 20, "bytes", "that the host reads from storage at a time"},
    {"table_cycles", 100, 0, 100000, "SM cycles",
     "an operation on the table, after its entries have been changed, until it counts"},
    {"notify_cycles", 100, 0, 100000, "SM cycles", "from a page's new owner until the SMs know"},
    {"line_cycles", 1, 1, 1000, "SM cycles", "that the memory management unit takes for a line of the table"},
    {"entry_bytes", 16, 1, 128, "bytes", "of a page in the tables"},
    {"dma_ns", 1000, 0, 1000000, "ns", "a page over PCIe, besides its bytes"},
    {"dat_entries", 64, 1, 1u << 20, "entries", "of the data availability tracker that are on the chip"},
    {"dat_miss_ns", 100, 0, 1000000, "ns", "to fetch one that is not"},
};

constexpr timing::PartCounter kCounters[] = {
    {"set_operations", "operations", "ranges that profilers announced"},
    {"set_pages", "pages", "in them"},
    {"release_operations", "operations", "ranges that CTAs released"},
    {"release_pages", "pages", "in them"},
    {"table_requests", "requests", "of the memory management unit to its tables in memory"},
    {"pages_passed", "pages", "that went on to their next owner, or to nobody"},
    {"tracked_kernels", "kernels", "whose ranges are known"},
    {"untracked_kernels", "kernels", "that run alone, on pages that are ready"},
    {"most_references", "CTAs", "of one kernel that one page was counted for"},
    {"most_kernels", "kernels", "that might run at the same time"},
    {"l1_drops", "drops", "of an SM's L1, because another kernel came"},
    {"unreleased_pages", "pages", "that a kernel had not released when it ended"},
    {"uses", "uses", "of pages by works that said they would"},
    {"ended_uses", "uses", "that have ended; at the end all of them"},
    {"pages_in", "pages", "that were copied to the device one by one"},
    {"pages_out", "pages", "that were copied to the host one by one"},
    {"dat_misses", "misses", "entries of the data availability tracker that were not on the chip"},
};
static_assert(std::size(kCounters) == crcs::kCounters);

constexpr PartStall kStalls[] = {
    {"stall_page", "page ownership",
     "warps wait for pages that earlier kernels still use, or that are on their way to the device"},
};

Cycle CyclesOf(std::uint64_t ns, std::uint64_t mhz) { return (ns * mhz + 999) / 1000; }

Result<std::shared_ptr<timing::Part>> Make(const timing::Parameters& parameters, PartValues values) {
  if (!std::has_single_bit(values[kPageBytes]))
    return Error{"page_bytes is " + std::to_string(values[kPageBytes]) + ", which is no power of two"};
  const sim::TimingSpec& timing = parameters.timing();
  const std::uint64_t mhz = timing.clock.sm_mhz;
  Settings settings;
  settings.page_shift = static_cast<unsigned>(std::countr_zero(values[kPageBytes]));
  settings.readiness = values[kReadinessKey] != 0;
  settings.scoreboard = values[kScoreboard] != 0;
  settings.needs_data = values[kAvailableKey] != 0;
  settings.order = static_cast<crcs::Order>(values[kOrder]);
  settings.seed = values[kSeed];
  settings.read_bytes = static_cast<std::uint32_t>(values[kReadBytes]);
  settings.table = values[kTableCycles];
  settings.notify = values[kNotifyCycles];
  settings.line_cycles = values[kLineCycles];
  settings.entry_bytes = static_cast<std::uint32_t>(values[kEntryBytes]);
  settings.dma = CyclesOf(values[kDmaNs], mhz);
  settings.dat_entries = values[kDatEntries];
  settings.dat_miss = CyclesOf(values[kDatMissNs], mhz);
  settings.storage_mb_s = timing.host.storage_mb_s;
  settings.to_device_mb_s = timing.pcie.to_device_mb_s;
  settings.to_host_mb_s = timing.pcie.to_host_mb_s;
  settings.mhz = mhz;
  settings.after = parameters.window;
  settings.sms = parameters.device.sm.count;
  // The rate of copies and fills on the device is that without the part (dispatch/copy_engines.h).
  settings.move_mb_s = std::max<std::uint64_t>(
      std::uint64_t{timing.dram.channels} * timing.dram.bytes_per_cycle * timing.clock.dram_mhz * 7 / 8, 1);
  return std::shared_ptr<timing::Part>(std::make_shared<crcs::CrcsPart>(settings));
}

}  // namespace

const PartKind kCrcs = {
    .name = "crcs",
    .summary =
        "dependent kernels that overlap: reference counts of pages, a scoreboard that goes by their owners, copies "
        "page by page",
    .source =
        "G. Kim, J. Jeong, J. Kim, M. Stephenson, Automatically exploiting implicit pipeline parallelism from multiple "
        "dependent "
        "kernels for GPUs, PACT 2016",
    .keys = kKeys,
    .counters = kCounters,
    .stalls = kStalls,
    .make = Make,
};

}  // namespace gridloom::hardware
