#include "sim/study/pipeline/outcome.h"

#include <algorithm>
#include <map>

namespace gridloom::study::pipeline {

Result<Outcome> Outcome::Of(const Replayed& replayed) {
  const ReplayResult& result = replayed.result;
  Outcome outcome;
  double begin = static_cast<double>(result.cycles);
  std::map<std::uint32_t, std::size_t> stages;  // of each stream, launches so far
  for (const timing::WorkResult& work : result.works) {
    if (work.kind != timing::WorkKind::kKernel || !work.done()) continue;
    outcome.launches.push_back({.stream = work.stream,
                                .stage = stages[work.stream]++,
                                .started = static_cast<double>(work.started),
                                .ended = static_cast<double>(work.ended),
                                .warp_instructions = static_cast<double>(work.warp_instructions)});
    begin = std::min(begin, static_cast<double>(work.started));
  }
  outcome.cycles = static_cast<double>(result.cycles) - begin;
  outcome.warp_instructions = replayed.Counter("warp_instructions");
  outcome.thread_instructions = replayed.Counter("thread_instructions");
  outcome.dram_read_bytes = replayed.Counter("dram_read_bytes");
  outcome.dram_write_bytes = replayed.Counter("dram_write_bytes");
  outcome.l2_accesses = replayed.Counter("l2_sector_accesses");
  outcome.l2_misses = replayed.Counter("l2_sector_misses");
  outcome.steps = replayed.steps;
  return outcome;
}

}  // namespace gridloom::study::pipeline
