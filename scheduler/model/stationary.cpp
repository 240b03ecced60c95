#include "scheduler/model/stationary.h"

#include <cmath>
#include <limits>

namespace gridloom::model {
namespace {

/// Visits of each state per visit of state 0, from those of the states before it, or in proportion to that: chains that
/// hardly ever leave a state visit it more often than a number can tell.
template <typename Real>
Eigen::Matrix<Real, Eigen::Dynamic, 1> Visits(const TransitionMatrix& p) {
  const Real most = std::sqrt(std::numeric_limits<Real>::max());
  Eigen::Matrix<Real, Eigen::Dynamic, 1> pi(p.rows());
  pi(0) = 1;
  for (Eigen::Index i = 1; i < p.rows(); ++i) {
    pi(i) = p.col(i).head(i).template cast<Real>().dot(pi.head(i));
    if (pi(i) > most && pi(i) <= std::numeric_limits<Real>::max()) pi.head(i + 1) /= pi(i);
  }
  return pi;
}

}  // namespace

Eigen::VectorXd StationaryDistribution(TransitionMatrix p) {
  const Eigen::Index states = p.rows();
  // Removes the last state again and again: what goes through it goes from its predecessors to its successors. What
  // stays in it only delays, so a way out is taken with its probability given that the chain leaves.
  for (Eigen::Index last = states - 1; last > 0; --last) {
    const double leaves = p.row(last).head(last).sum();
    if (leaves < std::numeric_limits<double>::min()) {  // underflow, or nobody comes here: no way back that counts
      p.col(last).head(last).setZero();
      continue;
    }
    p.col(last).head(last) /= leaves;
    const Eigen::RowVectorXd ways = p.row(last).head(last);
    for (Eigen::Index i = 0; i < last; ++i) {
      if (const double to = p(i, last); to != 0) p.row(i).head(last) += to * ways;
    }
  }
  const Eigen::VectorXd pi = Visits<double>(p);
  if (const double sum = pi.sum(); sum <= std::numeric_limits<double>::max()) return pi / sum;
  // Exponents of doubles do not reach: those of the host's long double go 16 times as far.
  const auto wide = Visits<long double>(p);
  return (wide / wide.sum()).cast<double>();
}

}  // namespace gridloom::model
