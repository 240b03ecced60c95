#include "scheduler/model/sharing.h"

#include <algorithm>

namespace gridloom::model {

std::optional<SharingFigures> FiguresOf(std::span<const SharedTime> times) {
  if (times.empty()) return std::nullopt;
  SharingFigures figures;
  double least = 0, greatest = 0;
  for (const SharedTime& time : times) {
    if (!time.known()) return std::nullopt;
    const double progress = time.progress();
    least = &time == times.data() ? progress : std::min(least, progress);
    greatest = std::max(greatest, progress);
    figures.stp += progress;
    figures.antt += time.slowdown();
  }
  figures.antt /= static_cast<double>(times.size());
  figures.fairness = least / greatest;
  return figures;
}

}  // namespace gridloom::model
