// A matrix on both sides and its comparison, for the tests of cuBLAS's products.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>

#include "cublas_values.h"
#include "host.h"

struct Verdict {
  long bad = 0, checks = 0;
};

inline void Check(Verdict* verdict, const char* what, int status) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: status %d\n", what, status);
  ++verdict->bad;
}

/// A matrix of random values on both sides, column-major.
struct Matrix {
  Data type;
  int rows, columns, ld, count;
  std::vector<char> host;
  driver::Buffer<char> device;

  Matrix(Data t, int r, int c, int extra, std::mt19937* random, int n = 1)
      : type(t),
        rows(r),
        columns(c),
        ld(r + extra),
        count(n),
        host(Filled(t, static_cast<std::size_t>(ld) * c * n, random)),
        device(host) {}
  static std::vector<char> Filled(Data type, std::size_t size, std::mt19937* random) {
    std::vector<char> bytes(std::max<std::size_t>(size, 1) * SizeOf(type));
    Fill(&bytes, type, random);
    return bytes;
  }
  std::size_t stride() const { return static_cast<std::size_t>(ld) * columns; }
  void* get(std::size_t index = 0) const {
    return reinterpret_cast<void*>(device.get() + index * stride() * SizeOf(type));
  }
  Number At(int i, int j, int index = 0) const {
    return Load(host.data(), index * stride() + i + static_cast<std::size_t>(j) * ld, type);
  }
  /// Element of op(A).
  Number Under(int op, int i, int j, int index = 0) const {
    if (op == kN) return At(i, j, index);
    const Number value = At(j, i, index);
    return op == kC ? std::conj(value) : value;
  }
};

/// Compares what the device holds with expected(i, j, index, &value), which makes the new value of the old one;
/// elements for which it says false must be as before.
template <typename Expected>
void Compare(Verdict* verdict, const char* what, const Matrix& c, Expected expected, Data precision) {
  const auto got = c.device.Read();
  long bad = 0;
  for (int index = 0; index < c.count; ++index) {
    for (int j = 0; j < c.columns; ++j) {
      for (int i = 0; i < c.ld; ++i, ++verdict->checks) {
        const std::size_t at = index * c.stride() + i + static_cast<std::size_t>(j) * c.ld;
        Number value = Load(c.host.data(), at, c.type);
        const bool computed = i < c.rows && expected(i, j, index, &value);
        const double limit = computed ? Tolerance(precision, std::abs(value)) : 0;
        const Number found = Load(got.data(), at, c.type);
        if (!(std::abs(found - value) <= limit) && ++bad == 1) {
          std::fprintf(stderr, "%s: (%d, %d) of %d: %g%+gi, expected %g%+gi\n", what, i, j, index, found.real(),
                       found.imag(), value.real(), value.imag());
        }
      }
    }
  }
  if (bad > 1) std::fprintf(stderr, "%s: %ld of %ld\n", what, bad, static_cast<long>(c.count) * c.columns * c.ld);
  verdict->bad += bad;
}

inline Number Sum(const Matrix& a, int op_a, const Matrix& b, int op_b, int i, int j, int k, int index = 0) {
  Number sum = 0;
  for (int l = 0; l < k; ++l) sum += a.Under(op_a, i, l, index) * b.Under(op_b, l, j, index);
  return sum;
}

/// A matrix that is `rows` x `columns` under the operation.
inline Matrix Operand(Data type, int op, int rows, int columns, std::mt19937* random, int count = 1) {
  return op == kN ? Matrix(type, rows, columns, 3, random, count) : Matrix(type, columns, rows, 2, random, count);
}

/// A factor in the form a function wants.
struct FactorBytes {
  char bytes[16];
  FactorBytes(Number value, Data type) {
    switch (type) {
      case kF64: Put(bytes, value.real()); break;
      case kF16: Put(bytes, static_cast<_Float16>(value.real())); break;
      case kI32: Put(bytes, static_cast<int>(value.real())); break;
      case kC32: Put(bytes, std::complex<float>(value)); break;
      case kC64: Put(bytes, value); break;
      default: Put(bytes, static_cast<float>(value.real())); break;
    }
  }
};

/// Updates of one triangle: syrk and the like.
void TestUpdates(Handle handle, Verdict* verdict, std::mt19937* random);
/// Factors of which a triangle is stored: symm, hemm, trmm, trsm.
void TestFactors(Handle handle, Verdict* verdict, std::mt19937* random);
