#include "sim/study/measure/measurements.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace gridloom::study {
namespace {

/// Rises when a change of the timing model, or of how rates are measured, makes old measurements wrong.
constexpr int kMeasurementVersion = 3;

}  // namespace

std::string MeasurementKey(const sim::DeviceSpec& device) {
  return "v" + std::to_string(kMeasurementVersion) + " " + device.id + " " + DeviceDigest(device);
}

Measurements::Measurements(RateCache& cache, unsigned threads, MeasurementProgress progress)
    : cache_(cache), threads_(std::max(threads, 1u)), progress_(std::move(progress)) {}

Status Measurements::Make(const std::vector<Measurement>& wanted) {
  std::vector<const Measurement*> missing;
  for (const Measurement& one : wanted) {
    if (!cache_.Find(one.key)) missing.push_back(&one);
  }
  std::atomic<std::size_t> next{0};
  std::size_t done = 0;
  std::mutex mutex;
  Status status;
  const auto work = [&] {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      auto numbers = missing[i]->measure();
      const std::lock_guard lock(mutex);
      if (!numbers.ok()) status = Error{missing[i]->what + ": " + numbers.error().message};
      else if (Status added = cache_.Add(missing[i]->key, *numbers); !added) status = added;
      if (!status) next = missing.size();
      else if (progress_) progress_(++done, missing.size(), missing[i]->what);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min<std::size_t>(threads_, missing.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return status;
}

Result<std::vector<double>> Measurements::Get(const Measurement& wanted) {
  GL_TRY_STATUS(Make({wanted}));
  auto numbers = cache_.Find(wanted.key);
  if (!numbers) return Error{wanted.what + ": what was kept of its measurement is damaged"};
  return *std::move(numbers);
}

Result<std::vector<double>> Measurements::Get(const Measurement& wanted, std::size_t count) {
  GL_TRY(numbers, Get(wanted));
  if (numbers.size() != count) return Error{wanted.what + ": what was kept of its measurement is damaged"};
  return numbers;
}

Result<double> Measurements::GetNumber(const Measurement& wanted) {
  GL_TRY(numbers, Get(wanted, 1));
  return numbers[0];
}

}  // namespace gridloom::study
