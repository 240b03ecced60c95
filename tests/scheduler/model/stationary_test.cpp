#include "scheduler/model/stationary.h"

#include <Eigen/LU>
#include <catch2/catch.hpp>
#include <random>

namespace gridloom::model {
namespace {

TransitionMatrix RandomChain(std::mt19937_64& random, Eigen::Index states, double sparse) {
  std::uniform_real_distribution<double> uniform(0, 1);
  TransitionMatrix p(states, states);
  for (Eigen::Index i = 0; i < states; ++i) {
    for (Eigen::Index j = 0; j < states; ++j) p(i, j) = uniform(random) < sparse ? 0 : uniform(random);
    p(i, 0) += 0.01;
    p.row(i) /= p.row(i).sum();
  }
  return p;
}

TEST_CASE("StationaryDistribution_IsAFixedPoint_AsLinearEquationsGiveIt") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) {
    const Eigen::Index states = 1 + i * 2;
    const TransitionMatrix p = RandomChain(random, states, (i % 4) * 0.3);
    const Eigen::VectorXd pi = StationaryDistribution(p);
    CHECK(pi.sum() == Approx(1));
    CHECK((pi.array() >= 0).all());
    CHECK((pi.transpose() * p - pi.transpose()).cwiseAbs().maxCoeff() < 1e-14);
    Eigen::MatrixXd equations = p.transpose() - Eigen::MatrixXd::Identity(states, states);
    equations.row(0).setOnes();
    const Eigen::VectorXd solved = equations.partialPivLu().solve(Eigen::VectorXd::Unit(states, 0));
    CHECK((pi - solved).cwiseAbs().maxCoeff() < 1e-11);
  }
}

TEST_CASE("StationaryDistribution_HardlyConnectedStates_KeepAllDigits") {
  TransitionMatrix p(2, 2);
  p << 1 - 1e-15, 1e-15, 3e-15, 1 - 3e-15;
  const Eigen::VectorXd pi = StationaryDistribution(p);
  CHECK(pi(0) == Approx(0.75).epsilon(1e-12));
  CHECK(pi(1) == Approx(0.25).epsilon(1e-12));
}

TEST_CASE("StationaryDistribution_StatesThatNobodyComesBackTo_HaveNoWeight") {
  TransitionMatrix p(3, 3);
  p << 0.5, 0.5, 0, 0.5, 0.5, 0, 0.1, 0.2, 0.7;
  const Eigen::VectorXd pi = StationaryDistribution(p);
  CHECK(pi(0) == Approx(0.5));
  CHECK(pi(1) == Approx(0.5));
  CHECK(pi(2) == 0);
}

}  // namespace
}  // namespace gridloom::model
