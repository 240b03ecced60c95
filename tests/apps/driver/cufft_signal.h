// Signals for the tests of cuFFT's transforms: numbers of every type at the places of a layout, and the transform on
// the host.
#pragma once

#include <array>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "cufft.h"
#include "host.h"

using Number = std::complex<double>;
using Signal = std::vector<Number>;

/// The precision of a transform, by its cudaDataType of real numbers.
enum Real : int { kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14 };
inline int ComplexType(Real real) { return real == kBf16 ? 15 : real + 4; }
inline std::size_t SizeOf(Real real) { return real == kF64 ? 8 : real == kF32 ? 4 : 2; }

template <typename T>
T Get(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline double LoadReal(const char* at, Real real) {
  switch (real) {
    case kF64: return Get<double>(at);
    case kF16: return static_cast<double>(Get<_Float16>(at));
    case kBf16: {
      const unsigned bits = static_cast<unsigned>(Get<unsigned short>(at)) << 16;
      return Get<float>(reinterpret_cast<const char*>(&bits));
    }
    default: return Get<float>(at);
  }
}
inline void StoreReal(char* at, double number, Real real) {
  const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
  switch (real) {
    case kF64: put(number); return;
    case kF16: put(static_cast<_Float16>(number)); return;
    case kBf16: {
      const float value = static_cast<float>(number);
      put(static_cast<unsigned short>(Get<unsigned>(reinterpret_cast<const char*>(&value)) >> 16));
      return;
    }
    default: put(static_cast<float>(number)); return;
  }
}

using Sizes = std::array<Wide, 3>;
/// Element (x0, x1, x2) of transform b: b * dist + ((x0 * embed[1] + x1) * embed[2] + x2) * stride.
struct Layout {
  Sizes embed;
  Wide stride, dist;
};

/// Numbers of `n` in `rank` dimensions and `batch` times, one after the other, and where they lie.
struct Places {
  int rank;
  Sizes n;
  Wide batch;
  Layout layout;

  Wide Count() const {
    Wide count = batch;
    for (int d = 0; d < rank; ++d) count *= n[d];
    return count;
  }
  Wide At(Wide i) const {
    Wide at = 0, stride = layout.stride;
    for (int d = rank - 1; d >= 0; --d) {
      at += i % n[d] * stride;
      i /= n[d];
      stride *= layout.embed[d];
    }
    return at + i * layout.dist;
  }
  Wide Extent() const {
    Wide last = 0;
    for (Wide i = 0; i < Count(); ++i) last = std::max(last, At(i));
    return last + 1;
  }
};

/// The transform of `size` numbers `stride` apart; `roots` are those of size * stride.
inline void TransformLine(const Number* in, Number* out, Wide size, Wide stride, const Signal& roots) {
  Wide radix = 2;
  while (radix * radix <= size && size % radix != 0) ++radix;
  if (size % radix != 0) radix = size;
  const Wide part = size / radix;
  if (size == 1) {
    *out = *in;
    return;
  }
  Signal parts(size);
  for (Wide r = 0; r < radix; ++r) TransformLine(in + r * stride, &parts[r * part], part, stride * radix, roots);
  for (Wide k = 0; k < size; ++k) {
    out[k] = 0;
    Wide turn = 0;
    for (Wide r = 0; r < radix; ++r) {
      out[k] += parts[r * part + k % part] * roots[turn * stride];
      turn = (turn + k) % size;
    }
  }
}

/// In place, along all dimensions of each of the batch.
inline void Transform(Signal* signal, int rank, const Sizes& n, int direction) {
  Wide stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    Signal roots(n[d]), line(n[d]), result(n[d]);
    for (Wide k = 0; k < n[d]; ++k)
      roots[k] = std::polar(1.0, direction * 2 * M_PI * static_cast<double>(k) / static_cast<double>(n[d]));
    for (Wide first = 0; first < static_cast<Wide>(signal->size()); ++first) {
      if (first / stride % n[d] != 0) continue;
      for (Wide k = 0; k < n[d]; ++k) line[k] = (*signal)[first + k * stride];
      TransformLine(line.data(), result.data(), n[d], 1, roots);
      for (Wide k = 0; k < n[d]; ++k) (*signal)[first + k * stride] = result[k];
    }
    stride *= n[d];
  }
}
