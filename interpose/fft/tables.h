// The numbers that a plan's kernels read: roots of unity, and what Bluestein's algorithm multiplies by. Made in double
// with the plan.
#pragma once

#include <complex>
#include <map>
#include <tuple>
#include <vector>

#include "interpose/fft/device/fft.h"
#include "interpose/fft/status.h"

namespace gridloom::fft {

/// Roots that are looked up in one table, of 16 or 8 bytes each; more are products of entries of two.
inline constexpr Index kMostInOneTable = Index{1} << 20;

/// Places in a table are in real numbers from its begin; 0 is none.
class Tables {
 public:
  /// Without `filled`, places only: for plans that are never executed.
  explicit Tables(bool filled) : filled_(filled) {}

  /// For a pass of a butterfly: entry (k - 1) * done + t is root t * k of radix * done; real parts, then imaginary
  /// ones.
  Index ForPass(int radix, int done);
  /// All roots of `size`, real parts, then imaginary ones.
  Index AllRoots(int size);
  /// The first `count` complex roots of `size`, in one table or two; places stand for the addresses.
  Roots RootsOf(Index size, Index count);
  /// Root i * r of parts * rest at i * rest + r.
  Index Turns(Index parts, Index rest);
  /// exp(+pi i k^2 / n), complex, k < n: what results of Bluestein's algorithm are multiplied by before they are
  /// conjugated; and its conjugate, which numbers are multiplied by when they are read.
  Index Chirp(Index n, bool conjugate);
  /// The transform of what numbers are convolved with, of `size` numbers: real parts, then imaginary ones; or complex
  /// and conjugated.
  Index Filter(Index n, Index size, bool complex);

  Index size() const { return size_; }
  const std::vector<double>& values() const { return values_; }

 private:
  enum Kind { kPass, kAll, kCoarse, kFine, kTurns, kChirp, kFilter };
  using Key = std::tuple<Kind, Index, Index, bool>;
  template <typename Fill>
  Index Add(Key key, Index count, Fill fill);

  bool filled_;
  Index size_ = 2;
  std::vector<double> values_ = {0, 0};
  std::map<Key, Index> places_;
};

/// Prime factors, the greatest first.
std::vector<int> PrimeFactors(Index n);

}  // namespace gridloom::fft
