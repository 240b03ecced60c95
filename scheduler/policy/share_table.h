// How many multiprocessors each of the kernels gets that run side by side: the dynamic kernel allocator's search (S. Mu
// et al., "Exploiting the task-pipelined parallelism of stream programs on many-core GPUs", IEICE Trans. E96-D, 2013,
// section 3.1), for two kernels, as there, or for more.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace gridloom::policy {

/// The lookup table of a pair of kernels (Fig. 8), or of more than two. Times are in any unit, the same for all.
///
/// The speed of a kernel on n multiprocessors is P(n) = 1 / T(n), Eq. 4; between what was measured it is taken as
/// linear, and P(0) = 0. Two kernels end at the same time where P1(n) = P2(N - n), Eq. 3; of the two whole numbers
/// around that point, the one is chosen for which the slower kernel is faster. Where measured speeds do not grow with n
/// there may be several such points, and for more than two kernels there is no point but a surface: of all ways to hand
/// out the multiprocessors, the one is chosen whose slowest kernel is fastest. For two kernels whose speeds grow with n
/// that is the paper's choice. It takes (kernels · sms²) steps, not as many as there are ways.
class ShareTable {
 public:
  /// `sms` of the device, at least as many as there are kernels; `alone`: what each kernel takes on all of them.
  ShareTable(std::uint32_t sms, const std::vector<double>& alone);

  /// What a kernel takes on some of them, before anything was measured: a better start than a straight line.
  void Expect(std::size_t kernel, std::uint32_t sms, double time);
  /// What each took with so many; the latest times count.
  void Measured(const std::vector<std::uint32_t>& shares, const std::vector<double>& times);

  /// Multiprocessors of each kernel for the next run, at least 1.
  std::vector<std::uint32_t> Choose() const;
  /// What is chosen has been measured: it will be chosen again unless times change.
  bool converged() const { return points_.contains(Choose()); }
  std::size_t measured() const { return points_.size(); }
  std::uint64_t runs() const { return runs_; }  ///< that were measured, again with the same shares or not
  /// What a step of the pipeline takes with these, as far as known: the longest of the times (Eq. 2).
  double StepTime(const std::vector<std::uint32_t>& shares) const;

 private:
  double Speed(std::size_t kernel, std::uint32_t sms) const;

  const std::uint32_t sms_;
  /// By kernel and multiprocessors: 1 / time.
  std::vector<std::map<std::uint32_t, double>> speeds_, expected_;
  std::map<std::vector<std::uint32_t>, std::vector<double>> points_;  // what was measured
  std::uint64_t runs_ = 0;
};

}  // namespace gridloom::policy
