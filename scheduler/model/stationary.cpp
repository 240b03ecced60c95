#include "scheduler/model/stationary.h"

namespace gridloom::model {

Eigen::VectorXd StationaryDistribution(TransitionMatrix p) {
  const Eigen::Index states = p.rows();
  // Removes the last state again and again: what goes through it goes from its predecessors to its successors. What stays in it
  // only delays, so a way out is taken with its probability given that the chain leaves.
  for (Eigen::Index last = states - 1; last > 0; --last) {
    const double leaves = p.row(last).head(last).sum();
    if (leaves <= 0) {  // underflow, or nobody comes here: no way back that counts
      p.col(last).head(last).setZero();
      continue;
    }
    p.col(last).head(last) /= leaves;
    const Eigen::RowVectorXd ways = p.row(last).head(last);
    for (Eigen::Index i = 0; i < last; ++i) {
      if (const double to = p(i, last); to != 0) p.row(i).head(last) += to * ways;
    }
  }
  // Visits of each state per visit of state 0, from those of the states before it.
  Eigen::VectorXd pi(states);
  pi(0) = 1;
  for (Eigen::Index i = 1; i < states; ++i) pi(i) = p.col(i).head(i).dot(pi.head(i));
  return pi / pi.sum();
}

}  // namespace gridloom::model
