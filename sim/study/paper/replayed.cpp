#include "sim/study/paper/replayed.h"

#include <algorithm>

#include "sim/hardware/catalog.h"

namespace gridloom::study {

double Replayed::Counter(std::string_view name) const {
  const auto all = hardware::CountersOf(device);
  const auto found = std::ranges::find(all, name, &timing::CounterInfo::name);
  return found == all.end() ? 0 : static_cast<double>(found->value(result.counters));
}

double Covered(Spans spans) {
  std::ranges::sort(spans);
  double covered = 0;
  timing::Cycle until = 0;
  for (const auto& [begin, end] : spans) {
    if (end <= until) continue;
    covered += static_cast<double>(end - std::max(begin, until));
    until = end;
  }
  return covered;
}

}  // namespace gridloom::study
