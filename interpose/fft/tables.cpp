#include "interpose/fft/tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gridloom::fft {
namespace {

using Complex = std::complex<double>;

/// exp(-2 pi i m / size), rounded once.
Complex Root(Index m, Index size) {
  const long double angle =
      -2 * std::numbers::pi_v<long double> * static_cast<long double>(m) / static_cast<long double>(size);
  return {static_cast<double>(std::cos(angle)), static_cast<double>(std::sin(angle))};
}

/// Many roots of one size: products of two of long double, rounded once.
class QuickRoots {
 public:
  explicit QuickRoots(Index size) {
    while ((Index{1} << (2 * shift_)) < size) ++shift_;
    const auto root = [&](Index m) {
      return std::polar(
          1.0L, -2 * std::numbers::pi_v<long double> * static_cast<long double>(m) / static_cast<long double>(size));
    };
    for (Index m = 0; m <= size >> shift_; ++m) coarse_.push_back(root(m << shift_));
    for (Index m = 0; m < Index{1} << shift_; ++m) fine_.push_back(root(m));
  }
  void Write(Index m, double* to) const {
    const auto& a = coarse_[static_cast<std::size_t>(m >> shift_)];
    const auto& b = fine_[static_cast<std::size_t>(m & ((Index{1} << shift_) - 1))];
    to[0] = static_cast<double>(a.real() * b.real() - a.imag() * b.imag());
    to[1] = static_cast<double>(a.real() * b.imag() + a.imag() * b.real());
  }

 private:
  int shift_ = 0;
  std::vector<std::complex<long double>> coarse_, fine_;
};

/// exp(+pi i k^2 / n)
Complex ChirpAt(Index k, Index n) {
  const auto square = static_cast<Index>(static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k) %
                                         static_cast<unsigned __int128>(2 * n));
  return std::conj(Root(square, 2 * n));
}

/// The transform of `size` numbers that are `stride` apart, by the factors of the size; `roots` are those of size *
/// stride.
void Transform(const Complex* in, Complex* out, Index size, Index stride, const std::vector<int>& factors,
               std::size_t level, const std::vector<Complex>& roots) {
  if (size == 1) {
    *out = *in;
    return;
  }
  const Index radix = factors[level], part = size / radix;
  for (Index r = 0; r < radix; ++r)
    Transform(in + r * stride, out + r * part, part, stride * radix, factors, level + 1, roots);
  std::vector<Complex> line(static_cast<std::size_t>(radix));
  for (Index k = 0; k < part; ++k) {
    for (Index r = 0; r < radix; ++r) line[static_cast<std::size_t>(r)] = out[r * part + k];
    for (Index q = 0; q < radix; ++q) {
      Complex sum = 0;
      for (Index r = 0; r < radix; ++r)
        sum += line[static_cast<std::size_t>(r)] * roots[static_cast<std::size_t>(r * (k + q * part) % size * stride)];
      out[q * part + k] = sum;
    }
  }
}

std::vector<Complex> FilterOf(Index n, Index size) {
  std::vector<Complex> in(static_cast<std::size_t>(size)), out(in.size()), roots(in.size());
  for (Index k = 0; k < n; ++k) {
    const Complex value = ChirpAt(k, n) / static_cast<double>(size);
    in[static_cast<std::size_t>(k)] = value;
    if (k > 0) in[static_cast<std::size_t>(size - k)] = value;
  }
  for (Index k = 0; k < size; ++k) roots[static_cast<std::size_t>(k)] = Root(k, size);
  Transform(in.data(), out.data(), size, 1, PrimeFactors(size), 0, roots);
  return out;
}

}  // namespace

std::vector<int> PrimeFactors(Index n) {
  std::vector<int> factors;
  for (Index p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(static_cast<int>(p));
  }
  if (n > 1) factors.push_back(static_cast<int>(n));
  std::ranges::reverse(factors);
  return factors;
}

template <typename Fill>
Index Tables::Add(Key key, Index count, Fill fill) {
  const auto [found, is_new] = places_.try_emplace(key, size_);
  if (!is_new) return found->second;
  size_ += count + count % 2;  // complex numbers begin at even places
  if (filled_) {
    values_.resize(static_cast<std::size_t>(size_));
    fill(values_.data() + found->second);
  }
  return found->second;
}

Index Tables::ForPass(int radix, int done) {
  const Index count = static_cast<Index>(radix - 1) * done;
  return Add({kPass, radix, done, false}, 2 * count, [&](double* to) {
    for (Index k = 1; k < radix; ++k) {
      for (Index t = 0; t < done; ++t, ++to) {
        const Complex root = Root(k * t, static_cast<Index>(radix) * done);
        to[0] = root.real(), to[count] = root.imag();
      }
    }
  });
}

Index Tables::AllRoots(int size) {
  return Add({kAll, size, 0, false}, 2 * static_cast<Index>(size), [&](double* to) {
    for (Index k = 0; k < size; ++k) to[k] = Root(k, size).real(), to[size + k] = Root(k, size).imag();
  });
}

Roots Tables::RootsOf(Index size, Index count) {
  Roots result{};
  const auto roots = [&](Index apart, Index entries) {
    return [=](double* to) {
      const QuickRoots quick(size);
      for (Index k = 0; k < entries; ++k) quick.Write(k * apart, to + 2 * k);
    };
  };
  if (count <= kMostInOneTable) {
    result.coarse = static_cast<unsigned long long>(Add({kCoarse, size, count, false}, 2 * count, roots(1, count)));
    return result;
  }
  while ((Index{1} << (2 * result.shift)) < size) ++result.shift;
  const Index fine = Index{1} << result.shift, coarse = (size >> result.shift) + 1;
  result.coarse = static_cast<unsigned long long>(Add({kCoarse, size, 0, false}, 2 * coarse, roots(fine, coarse)));
  result.fine = static_cast<unsigned long long>(Add({kFine, size, 0, false}, 2 * fine, roots(1, fine)));
  return result;
}

Index Tables::Turns(Index parts, Index rest) {
  return Add({kTurns, parts, rest, false}, 2 * parts * rest, [&](double* to) {
    const QuickRoots quick(parts * rest);
    for (Index i = 0; i < parts; ++i) {
      for (Index r = 0; r < rest; ++r, to += 2) quick.Write(i * r, to);
    }
  });
}

Index Tables::Chirp(Index n, bool conjugate) {
  return Add({kChirp, n, 0, conjugate}, 2 * n, [&](double* to) {
    for (Index k = 0; k < n; ++k) {
      const Complex value = ChirpAt(k, n);
      to[2 * k] = value.real(), to[2 * k + 1] = conjugate ? -value.imag() : value.imag();
    }
  });
}

Index Tables::Filter(Index n, Index size, bool complex) {
  return Add({kFilter, n, size, complex}, 2 * size, [&](double* to) {
    const std::vector<Complex> filter = FilterOf(n, size);
    for (Index k = 0; k < size; ++k) {
      const Complex value = filter[static_cast<std::size_t>(k)];
      if (complex) to[2 * k] = value.real(), to[2 * k + 1] = -value.imag();
      else to[k] = value.real(), to[size + k] = value.imag();
    }
  });
}

}  // namespace gridloom::fft
