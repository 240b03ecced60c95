// What a paper keeps of a replay.
//
// An outcome is a struct with
//   static constexpr std::string_view kWhat     part of the key that it is kept by; empty for a paper's only outcome
//   static Result<Outcome> Of(const Replayed&)  takes it from a replay
//   void Keep(auto& numbers)                    names its numbers, in the order in which they are kept: numbers(cycles,
//                                               launches);
//                                               numbers.List(kernels, [](auto& of, auto& kernel) { of(kernel.began,
//                                               kernel.ended); })
#pragma once

#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/device/device_spec.h"
#include "sim/study/replay/job.h"
#include "sim/trace/trace_file.h"

namespace gridloom::study {

/// A replay that has ended.
struct Replayed {
  const sim::DeviceSpec& device;
  const trace::TraceFile& file;
  const ReplayResult& result;
  const std::vector<policy::DkaStep>& steps;  ///< of policies that keep them

  /// A counter of the whole replay; 0 where the device has no such counter.
  double Counter(std::string_view name) const;
  double Milliseconds(timing::Cycle cycles) const {
    return static_cast<double>(cycles) / (device.timing.clock.sm_mhz * 1e3);
  }
};

using Spans = std::vector<std::pair<timing::Cycle, timing::Cycle>>;  ///< begin and end
/// Cycles that at least one of them covers.
double Covered(Spans spans);

/// Writes numbers of outcomes, and reads them again.
class NumberWriter {
 public:
  template <typename... Numbers>
  void operator()(const Numbers&... numbers) {
    (numbers_.push_back(static_cast<double>(numbers)), ...);
  }
  template <typename Element, typename Keep>
  void List(std::vector<Element>& list, const Keep& keep) {
    (*this)(list.size());
    for (Element& element : list) keep(*this, element);
  }
  std::vector<double> Take() { return std::move(numbers_); }

 private:
  std::vector<double> numbers_;
};

class NumberReader {
 public:
  explicit NumberReader(const std::vector<double>& numbers) : numbers_(numbers) {}
  template <typename... Numbers>
  void operator()(Numbers&... numbers) {
    ((numbers = Next<Numbers>()), ...);
  }
  /// Every element has one number at least.
  template <typename Element, typename Keep>
  void List(std::vector<Element>& list, const Keep& keep) {
    for (auto left = Next<std::size_t>(); left > 0 && !failed_; --left) keep(*this, list.emplace_back());
  }
  /// All were there, and no more.
  bool complete() const { return !failed_ && at_ == numbers_.size(); }

 private:
  template <typename Number>
  Number Next() {
    failed_ = failed_ || at_ == numbers_.size();
    const double number = failed_ ? 0 : numbers_[at_++];
    if (std::is_integral_v<Number> &&
        !(number >= 0 && number < static_cast<double>(std::numeric_limits<Number>::max())))
      failed_ = true;
    return failed_ ? Number() : static_cast<Number>(number);
  }

  const std::vector<double>& numbers_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace gridloom::study
