// Steady state of a finite Markov chain.
#pragma once

#include <Eigen/Core>

namespace gridloom::model {

/// Row i: the probabilities of going from state i to each state.
using TransitionMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The π with π P = π and Σ π = 1 (Kernelet, Eq. 3), for a chain that gets from every state to state 0 sooner or later.
/// Rows must be non-negative; they need not add up to exactly 1. By the reduction of Grassmann, Taksar and Heyman
/// (Operations Research 33, 1985), which subtracts nothing: every π_i is accurate relative to itself, also in chains
/// that hardly ever leave a part of their states, where an eigenvector or an LU decomposition of I - P loses its
/// digits. Takes n³/3 multiplications.
Eigen::VectorXd StationaryDistribution(TransitionMatrix p);

}  // namespace gridloom::model
