#include "sim/hardware/hazards/hazards.h"

#include "sim/hardware/hazards/checker.h"

namespace gridloom::hardware {
namespace {

constexpr std::string_view kTold[] = {"count", "tell", "stop"};

constexpr PartKey kKeys[] = {
    {"first", 1, 0, 0, "", "the first hazard is only counted, told on standard error, or ends the simulation", kTold},
};

constexpr timing::PartCounter kCounters[] = {
    {"accesses_checked", "instructions", "warp instructions with global or texture accesses"},
    {"transfers_checked", "transfers", "copies and fills, or pieces of them"},
    {"early_accesses", "accesses", "of both, those of works before which something had not ended"},
    {"raw_hazards", "sectors", "that a work read before a work in front of it wrote them"},
    {"war_hazards", "sectors", "that a work wrote before a work in front of it read them"},
    {"waw_hazards", "sectors", "that a work wrote before a work in front of it wrote them"},
    {"l2_hazards", "sectors", "for which L2 took requests of kernels in the wrong order"},
    {"stale_reads", "sectors",
     "that a kernel found in a cache of its SM, older than a write of another work that it should see"},
};
static_assert(std::size(kCounters) == hazards::kCounters);

Result<std::shared_ptr<timing::Part>> Make(const timing::Parameters& parameters, PartValues values) {
  return std::shared_ptr<timing::Part>(std::make_shared<hazards::Checker>(
      parameters.device.sm.count, parameters.timing().dram.channels, static_cast<hazards::Told>(values[0])));
}

}  // namespace

const PartKind kHazards = {
    .name = "hazards",
    .summary = "no hardware: checks that works that depend on each other read and write memory in their order",
    .source = "docs/overlap.md",
    .keys = kKeys,
    .counters = kCounters,
    .stalls = {},
    .make = Make,
};

}  // namespace gridloom::hardware
