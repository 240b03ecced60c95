// Outcomes as numbers, and back.
#include "sim/study/paper/replayed.h"

#include <catch2/catch.hpp>

namespace gridloom::study {
namespace {

struct Kernel {
  std::uint32_t sms = 0;
  std::vector<double> ends{};
  bool operator==(const Kernel&) const = default;
};

struct Outcome {
  double cycles = 0;
  std::uint64_t launches = 0;
  std::vector<Kernel> kernels{};
  bool operator==(const Outcome&) const = default;

  void Keep(auto& numbers) {
    numbers(cycles, launches);
    numbers.List(kernels, [](auto& of, Kernel& kernel) {
      of(kernel.sms);
      of.List(kernel.ends, [](auto& one, double& end) { one(end); });
    });
  }
};

std::vector<double> NumbersOf(Outcome outcome) {
  NumberWriter writer;
  outcome.Keep(writer);
  return writer.Take();
}

/// Whether they are an outcome.
bool Read(const std::vector<double>& numbers, Outcome& outcome) {
  NumberReader reader(numbers);
  outcome.Keep(reader);
  return reader.complete();
}

TEST_CASE("Outcomes_AsNumbers_AreTheSameAgain") {
  const Outcome outcome{.cycles = 1.5, .launches = 3, .kernels = {{.sms = 2, .ends = {1, 2.5}}, {.sms = 4}}};
  const std::vector<double> numbers = NumbersOf(outcome);
  CHECK(numbers == std::vector<double>{1.5, 3, 2, 2, 2, 1, 2.5, 4, 0});
  Outcome again;
  CHECK(Read(numbers, again));
  CHECK(again == outcome);
}

TEST_CASE("Outcomes_OfDamagedNumbers_AreNotComplete") {
  const std::vector<double> whole = NumbersOf({.cycles = 1, .launches = 2, .kernels = {{.sms = 3, .ends = {4}}}});
  Outcome outcome;
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(!Read(std::vector<double>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), outcome));
  std::vector<double> longer = whole;
  longer.push_back(0);
  CHECK(!Read(longer, outcome));
  // A count of elements, and a number that its type does not hold.
  for (const double bad : {-1.0, 1e300}) {
    for (const std::size_t place : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      std::vector<double> damaged = whole;
      damaged[place] = bad;
      CHECK(!Read(damaged, outcome));
    }
  }
}

TEST_CASE("Covered_CountsWhatSpansShareOnce") {
  CHECK(Covered({}) == 0);
  CHECK(Covered({{10, 20}, {0, 5}, {15, 30}, {16, 18}}) == 25);
}

}  // namespace
}  // namespace gridloom::study
