#include "tests/bench/smallest_slice.h"

#include <algorithm>

namespace bench {
namespace {

constexpr std::uint64_t kPrecision = 16;  // the answer is right up to a sixteenth of itself

class Search {
 public:
  Search(const std::function<double(std::uint64_t)>& seconds, double percent)
      : seconds_(seconds), most_(percent / 100) {
    found_.whole_seconds = seconds(0);
  }

  bool IsCheap(std::uint64_t size) {
    const double overhead = seconds_(size) / found_.whole_seconds - 1;
    found_.measured.push_back({size, overhead});
    return overhead <= most_;
  }
  SmallestSlice Found(std::uint64_t size) {
    found_.size = size;
    std::ranges::sort(found_.measured, {}, &SliceCost::size);
    return std::move(found_);
  }

 private:
  const std::function<double(std::uint64_t)>& seconds_;
  const double most_;
  SmallestSlice found_;
};

}  // namespace

SmallestSlice FindSmallestSlice(std::uint64_t ctas, const std::function<double(std::uint64_t size)>& seconds,
                                double percent, std::uint64_t step) {
  Search search(seconds, percent);
  std::uint64_t dear = 0, cheap = step;  // largest known to cost too much, smallest that may be cheap enough
  while (cheap < ctas && !search.IsCheap(cheap)) {
    dear = cheap;
    cheap *= 2;
  }
  if (cheap >= ctas) cheap = ctas;
  while (cheap - dear > std::max(step, cheap / kPrecision)) {
    const std::uint64_t middle = (dear + (cheap - dear) / 2) / step * step;
    if (middle <= dear || middle >= cheap) break;
    if (search.IsCheap(middle)) cheap = middle;
    else dear = middle;
  }
  return search.Found(cheap);
}

}  // namespace bench
