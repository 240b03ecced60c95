// How well those fare who share a device, from what each of them takes there and what it would take alone: Eyerman and
// Eeckhout, "System-level performance metrics for multiprogram workloads", IEEE Micro 28(3), 2008.
#pragma once

#include <optional>
#include <span>

namespace gridloom::model {

/// The time that one of them takes for the same work, in one unit.
struct SharedTime {
  double alone = 0;
  double shared = 0;
  bool known() const { return alone > 0 && shared > 0; }
  double progress() const { return alone / shared; }  ///< 1: it does not feel the others
  double slowdown() const { return shared / alone; }
};

struct SharingFigures {
  double stp = 0;       ///< system throughput: the sum of their progress; as many devices of their own they are worth
  double antt = 0;      ///< average normalised turnaround time: the mean of their slowdowns
  double fairness = 0;  ///< least over greatest progress; 1: all are slowed down alike
};

/// Nothing without anybody, or where a time is not known.
std::optional<SharingFigures> FiguresOf(std::span<const SharedTime> times);

}  // namespace gridloom::model
