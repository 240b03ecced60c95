// How many multiprocessors each of two kernels gets that run side by side: the dynamic kernel allocator's search (S. Mu et al.,
// "Exploiting the task-pipelined parallelism of stream programs on many-core GPUs", IEICE Trans. E96-D, 2013, section 3.1).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace gridloom::policy {

/// The lookup table of one pair of kernels (Fig. 8). Times are in any unit, the same for both.
///
/// The speed of a kernel on n multiprocessors is P(n) = 1 / T(n), Eq. 4; between what was measured it is taken as linear, and P(0) = 0.
/// Both kernels end at the same time where P1(n) = P2(N - n), Eq. 3; of the two whole numbers around that point, the one is chosen for
/// which the slower kernel is faster. Where measured speeds do not grow with n there may be several such points: the best of all whole
/// numbers is chosen, which is the same otherwise.
class PairTable {
 public:
  /// `sms` >= 2, of the device; `alone`: what each kernel took on all of them.
  PairTable(std::uint32_t sms, std::array<double, 2> alone);

  /// What a kernel takes on some of them, before anything was measured: a better start than a straight line. `side`: 0 or 1.
  void Expect(std::size_t side, std::uint32_t sms, double time);
  /// The first kernel had `first` multiprocessors, the second one the others; the latest times count.
  void Measured(std::uint32_t first, std::array<double, 2> times);

  /// Multiprocessors of the first kernel for the next run, 1 to sms - 1.
  std::uint32_t Choose() const;
  /// What is chosen has been measured: it will be chosen again unless times change.
  bool converged() const { return points_.contains(Choose()); }
  std::size_t measured() const { return points_.size(); }
  /// What a step of the pipeline takes with that choice, as far as known: the longer of both times (Eq. 2).
  double StepTime(std::uint32_t first) const;

 private:
  double Speed(std::size_t side, std::uint32_t sms) const;

  const std::uint32_t sms_;
  /// By side and multiprocessors: 1 / time.
  std::array<std::map<std::uint32_t, double>, 2> speeds_, expected_;
  std::map<std::uint32_t, std::array<double, 2>> points_;  // what was measured, by the first one's multiprocessors
};

}  // namespace gridloom::policy
