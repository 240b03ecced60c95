// Matrix products for the functions of cuBLAS whose own kernels are machine code. Built to PTX by clang without a CUDA
// toolkit.
//
// A CTA of 16 warps makes 32 rows of the result: a warp has a row per lane and kWarpColumns columns. Both factors pass
// through shared memory, 32 steps of k at a time, converted to what the sums are kept in and filled up with zeros, so
// that the inner loop is without branches: one vector load, and a uniform load and a multiply-add for each column.
#include "product.h"

#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

namespace gridloom::blas {
namespace {

using Index = long long;
using Bits16 = unsigned short;

template <typename Real>
struct Complex {
  Real re, im;
};

__device__ inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__device__ inline double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__device__ inline int Fma(int a, int b, int c) { return static_cast<int>(static_cast<unsigned>(a) * b + c); }
template <typename Real>
__device__ inline Complex<Real> Fma(Complex<Real> a, Complex<Real> b, Complex<Real> c) {
  return {Fma(-a.im, b.im, Fma(a.re, b.re, c.re)), Fma(a.im, b.re, Fma(a.re, b.im, c.im))};
}

template <typename Value>
inline constexpr bool kComplex = false;
template <typename Real>
inline constexpr bool kComplex<Complex<Real>> = true;

__device__ inline float FloatOf(unsigned bits) { return __builtin_bit_cast(float, bits); }
__device__ inline unsigned BitsOf(float value) { return __builtin_bit_cast(unsigned, value); }

__device__ inline float ReadF16(Bits16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ inline Bits16 WriteF16(float value) {
  Bits16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ inline Bits16 WriteBf16(float value) {
  const unsigned bits = BitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;  // NaN
  return static_cast<Bits16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// E5M2 is the upper half of an f16.
__device__ inline float ReadE5m2(unsigned bits) { return ReadF16(static_cast<Bits16>(bits << 8)); }
/// E4M3: 4 exponent bits with bias 7, no infinities, 0x7f is NaN.
__device__ inline float ReadE4m3(unsigned bits) {
  const unsigned sign = (bits & 0x80) << 24, magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return FloatOf(sign | 0x7fc00000);
  if (magnitude < 8)
    return FloatOf(sign | BitsOf(static_cast<float>(magnitude) * 0x1p-9f));  // subnormal: units of 2^-9
  return FloatOf(sign | ((magnitude << 20) + ((127 - 7) << 23)));
}

/// To eight bits with `kMantissa` bits of mantissa, to nearest even, at most `kMost` (as cvt.rn.satfinite does).
template <int kMantissa, int kBias>
__device__ inline unsigned char WriteF8(float value, float most, unsigned most_bits) {
  const unsigned bits = BitsOf(value), sign = (bits >> 24) & 0x80;
  const float size = FloatOf(bits & 0x7fffffff);
  if (size != size) return static_cast<unsigned char>(0x7f);
  if (size >= most) return static_cast<unsigned char>(sign | most_bits);
  constexpr int kDrop = 23 - kMantissa;
  if (size < __builtin_bit_cast(float, (127 - kBias + 1)
                                           << 23)) {  // subnormal: adding this number leaves the units of the result
    const float unit = __builtin_bit_cast(float, (127 - kBias + 1 - kMantissa + 23) << 23);
    return static_cast<unsigned char>(sign | (BitsOf(size + unit) - BitsOf(unit)));
  }
  const unsigned rounded = BitsOf(size) + (1u << (kDrop - 1)) - 1 + ((BitsOf(size) >> kDrop) & 1);
  const unsigned code = (rounded >> kDrop) - ((127 - kBias) << kMantissa);
  return static_cast<unsigned char>(sign | (code > most_bits ? most_bits : code));
}

template <typename Real>
__device__ Real ReadReal(const void* data, Index at, Element element) {
  if constexpr (sizeof(Real) == 8) return static_cast<const double*>(data)[at];
  if constexpr (__is_same(Real, int)) {
    if (element == Element::kI8) return static_cast<const signed char*>(data)[at];
    if (element == Element::kU8) return static_cast<const unsigned char*>(data)[at];
    return static_cast<const int*>(data)[at];
  } else {
    switch (element) {
      case Element::kF16: return ReadF16(static_cast<const Bits16*>(data)[at]);
      case Element::kBf16: return FloatOf(static_cast<unsigned>(static_cast<const Bits16*>(data)[at]) << 16);
      case Element::kE4m3: return ReadE4m3(static_cast<const unsigned char*>(data)[at]);
      case Element::kE5m2: return ReadE5m2(static_cast<const unsigned char*>(data)[at]);
      case Element::kI8: return static_cast<const signed char*>(data)[at];
      case Element::kU8: return static_cast<const unsigned char*>(data)[at];
      default: return static_cast<const float*>(data)[at];
    }
  }
}

template <typename Value>
__device__ Value Read(const void* data, Index at, Element element, bool conjugate) {
  if constexpr (kComplex<Value>) {
    Value value = static_cast<const Value*>(data)[at];
    if (conjugate) value.im = -value.im;
    return value;
  } else {
    return ReadReal<Value>(data, at, element);
  }
}

template <typename Value>
__device__ void Write(void* data, Index at, Element element, Value value) {
  if constexpr (__is_same(Value, float)) {
    switch (element) {
      case Element::kF16: static_cast<Bits16*>(data)[at] = WriteF16(value); return;
      case Element::kBf16: static_cast<Bits16*>(data)[at] = WriteBf16(value); return;
      case Element::kE4m3: static_cast<unsigned char*>(data)[at] = WriteF8<3, 7>(value, 448.0f, 0x7e); return;
      case Element::kE5m2: static_cast<unsigned char*>(data)[at] = WriteF8<2, 15>(value, 57344.0f, 0x7b); return;
      default: break;
    }
  }
  static_cast<Value*>(data)[at] = value;
}

template <typename Value>
__device__ Value ReadFactor(const Factor& factor, Index row) {
  const void* const data = reinterpret_cast<const void*>(factor.address);
  const Index at = row * factor.row_stride;
  if constexpr (kComplex<Value>) {
    using Real = decltype(Value::re);
    Value value{static_cast<Real>(factor.value[0]), static_cast<Real>(factor.value[1])};
    if (data != nullptr) {
      const bool real = factor.element == Element::kF32 || factor.element == Element::kF64;  // as herk's are
      value = real ? Value{ReadReal<Real>(data, at, factor.element), 0} : static_cast<const Value*>(data)[at];
    }
    if (factor.conjugate) value.im = -value.im;
    return value;
  } else {
    return data == nullptr ? static_cast<Value>(factor.value[0]) : ReadReal<Value>(data, at, factor.element);
  }
}

template <typename Value>
__device__ bool IsZero(Value value) {
  if constexpr (kComplex<Value>) return value.re == 0 && value.im == 0;
  else return value == 0;
}

__device__ const void* Base(const Matrix& matrix, Index batch) {
  return matrix.by_pointer ? reinterpret_cast<const void* const*>(matrix.address)[batch]
                           : reinterpret_cast<const void*>(matrix.address);
}
__device__ Index Offset(const Matrix& matrix, Index batch) {
  return matrix.start + (matrix.by_pointer ? 0 : batch * matrix.batch_stride);
}

/// Element (row, column), whether it is stored or follows from others.
template <typename Value>
__device__ Value ReadAt(const Matrix& matrix, const void* base, Index start, Index row, Index column) {
  bool conjugate = matrix.conjugate;
  if (matrix.stored != Triangle::kFull) {
    if (row == column && matrix.unit_diagonal) {
      if constexpr (kComplex<Value>) return {1, 0};
      else return 1;
    }
    if (matrix.stored == Triangle::kLower ? row < column : row > column) {
      if (matrix.outside == Outside::kZero) return Value{};
      const Index mirrored = row;
      row = column;
      column = mirrored;
      if (matrix.outside == Outside::kConjugated) conjugate = !conjugate;
    }
  }
  Value value =
      Read<Value>(base, start + row * matrix.row_stride + column * matrix.column_stride, matrix.element, conjugate);
  if constexpr (kComplex<Value>) {  // the diagonal of a Hermitian matrix is real, whatever is stored
    if (matrix.stored != Triangle::kFull && matrix.outside == Outside::kConjugated && row == column) value.im = 0;
  }
  return value;
}

/// GELU in the form with tanh.
__device__ float Gelu(float x) {
  const float u = 0.7978845608028654f * Fma(0.044715f * x * x, x, x);
  float power;
  asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(2.885390081777927f * u));  // e^2u
  return x - x / (1.0f + power);                                              // x/2 (1 + tanh u)
}

template <typename Value>
__device__ Value Activate(Value value, Activation activation) {
  if constexpr (__is_same(Value, float)) {
    if (activation == Activation::kRelu) return value > 0 ? value : 0;
    if (activation == Activation::kGelu) return Gelu(value);
  } else if constexpr (__is_same(Value, double)) {
    if (activation == Activation::kRelu) return value > 0 ? value : 0;
  }
  return value;
}

/// One CTA's part of the product: `rows` x `columns` from (row0, column0), and its way through k.
template <typename Sum>
struct Tile {
  static constexpr int kColumns = kWarpColumns<Sum>, kTileColumns = kColumns * kWarps, kThreads = 32 * kWarps;

  const Product& p;
  const Index row0, column0, batch;
  const int thread = static_cast<int>(__nvvm_read_ptx_sreg_tid_x()), lane = thread % 32, warp = thread / 32;

  /// Copies kTileDepth steps of kOuter rows (of a) or columns (of b) to shared memory, place(depth, outer) telling
  /// where. A thread's elements are a constant number of rows, columns or steps apart; neighbouring threads go along
  /// the steps if those are neighbours.
  template <int kOuter, bool kRows, typename Place>
  __device__ void Load(const Matrix& matrix, Index outer0, Index outer_end, Index depth0, Place place) const {
    const Index outer_stride = kRows ? matrix.row_stride : matrix.column_stride;
    const Index depth_stride = kRows ? matrix.column_stride : matrix.row_stride;
    const int outers = static_cast<int>(outer_end - outer0 < kOuter ? outer_end - outer0 : kOuter);
    const int depths = static_cast<int>(p.k - depth0 < kTileDepth ? p.k - depth0 : kTileDepth);
    // Nobody reads what the warps beyond this would compute.
    const int end = kRows ? kOuter : (outers + kColumns - 1) / kColumns * kColumns;
    const Index first = Offset(matrix, batch) + outer0 * outer_stride + depth0 * depth_stride;
    const void* const base = Base(matrix, batch);
    if (depth_stride == 1) {
      const int depth = thread % kTileDepth;
      Index at = first + (thread / kTileDepth) * outer_stride + depth;
      for (int outer = thread / kTileDepth; outer < end;
           outer += kThreads / kTileDepth, at += kThreads / kTileDepth * outer_stride)
        *place(depth, outer) = outer < outers && depth < depths
                                   ? ElementAt<kRows>(matrix, base, at, outer0 + outer, depth0 + depth)
                                   : Sum{};
    } else {
      const int outer = thread % kOuter;
      if (outer >= end) return;
      Index at = first + outer * outer_stride + (thread / kOuter) * depth_stride;
      for (int depth = thread / kOuter; depth < kTileDepth;
           depth += kThreads / kOuter, at += kThreads / kOuter * depth_stride)
        *place(depth, outer) = outer < outers && depth < depths
                                   ? ElementAt<kRows>(matrix, base, at, outer0 + outer, depth0 + depth)
                                   : Sum{};
    }
  }

  /// The element at index `at`, which is (outer, depth) or (depth, outer).
  template <bool kRows>
  __device__ Sum ElementAt(const Matrix& matrix, const void* base, Index at, Index outer, Index depth) const {
    if (matrix.stored == Triangle::kFull) return Read<Sum>(base, at, matrix.element, matrix.conjugate);
    return ReadAt<Sum>(matrix, base, Offset(matrix, batch), kRows ? outer : depth, kRows ? depth : outer);
  }

  __device__ void Multiply(Sum* sums) const {
    __shared__ Sum a_tile[kTileDepth][kTileRows];
    __shared__ Sum b_tile[kTileColumns][kTileDepth];
    const bool busy = column0 + warp * kColumns < p.n;
    for (Index depth0 = 0; depth0 < p.k; depth0 += kTileDepth) {
      Load<kTileRows, true>(p.a, row0, p.m, depth0, [](int depth, int row) { return &a_tile[depth][row]; });
      Load<kTileColumns, false>(p.b, column0, p.n, depth0,
                                [](int depth, int column) { return &b_tile[column][depth]; });
      __nvvm_bar_sync(0);
      if (busy) {
#pragma unroll 2
        for (int depth = 0; depth < kTileDepth; ++depth) {
          const Sum a = a_tile[depth][lane];
          for (int j = 0; j < kColumns; ++j) sums[j] = Fma(a, b_tile[warp * kColumns + j][depth], sums[j]);
        }
      }
      __nvvm_bar_sync(0);
    }
  }

  __device__ Sum Scale(Sum value, unsigned long long address) const {
    if constexpr (__is_same(Sum, float)) {
      if (address != 0) return value * *reinterpret_cast<const float*>(address);
    }
    return value;
  }

  __device__ void Store(const Sum* sums, bool with_product) const {
    const Index row = row0 + lane;
    if (row >= p.m) return;
    Sum alpha = ReadFactor<Sum>(p.alpha, row);
    alpha = Scale(Scale(alpha, p.scales[0]), p.scales[1]);
    const Sum beta = ReadFactor<Sum>(p.beta, row);
    const void* const c = Base(p.c, batch);
    void* const d = const_cast<void*>(Base(p.d, batch));
    Sum bias{};
    if (p.bias.address != 0)
      bias = Read<Sum>(Base(p.bias, batch), Offset(p.bias, batch) + row * p.bias.row_stride, p.bias.element, false);
    for (int j = 0; j < kColumns; ++j) {
      const Index column = column0 + warp * kColumns + j;
      if (column >= p.n) return;
      if ((p.triangle == Triangle::kLower && row < column) || (p.triangle == Triangle::kUpper && row > column))
        continue;
      Sum value = bias;
      if (!IsZero(beta)) {
        const Index at = Offset(p.c, batch) + row * p.c.row_stride + column * p.c.column_stride;
        value = Fma(beta, Read<Sum>(c, at, p.c.element, false), value);
      }
      if (with_product) value = Fma(alpha, sums[j], value);
      value = Scale(Activate(value, p.activation), p.scales[2]);
      if constexpr (kComplex<Sum>) {
        if (p.real_diagonal && row == column) value.im = 0;
      }
      Write(d, Offset(p.d, batch) + row * p.d.row_stride + column * p.d.column_stride, p.d.element, value);
    }
  }
};

/// Blocks: x rows, y columns, z matrices, each going on by its grid's size.
template <typename Sum>
__device__ void Run(const Product& p) {
  using T = Tile<Sum>;
  const Index first_row = static_cast<Index>(__nvvm_read_ptx_sreg_ctaid_x()) * kTileRows;
  const Index column_step = static_cast<Index>(__nvvm_read_ptx_sreg_nctaid_y()) * T::kTileColumns;
  const bool vector = p.alpha.row_stride != 0;
  const bool with_product = p.k > 0 && (vector || !IsZero(ReadFactor<Sum>(p.alpha, 0)));
  for (Index batch = __nvvm_read_ptx_sreg_ctaid_z(); batch < p.batches; batch += __nvvm_read_ptx_sreg_nctaid_z()) {
    for (Index column = static_cast<Index>(__nvvm_read_ptx_sreg_ctaid_y()) * T::kTileColumns; column < p.n;
         column += column_step) {
      const T tile{p, first_row, column, batch};
      Sum sums[T::kColumns]{};
      if (with_product) tile.Multiply(sums);
      tile.Store(sums, with_product);
    }
  }
}

__device__ inline float Divide(float a, float b) { return a / b; }
__device__ inline double Divide(double a, double b) { return a / b; }
template <typename Real>
__device__ Complex<Real> Divide(Complex<Real> a, Complex<Real> b) {
  const Real size = b.re * b.re + b.im * b.im;
  return {(a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size};
}
template <typename Value>
__device__ Value Negative(Value value) {
  if constexpr (kComplex<Value>) return {-value.re, -value.im};
  else return -value;
}

/// A warp solves for 32 columns, a lane each, row after row.
template <typename Value>
__device__ void Substitute(const Solve& s) {
  __shared__ Value x[kSolveRows][32];
  const Index lane = __nvvm_read_ptx_sreg_tid_x(),
              column = static_cast<Index>(__nvvm_read_ptx_sreg_ctaid_x()) * 32 + lane;
  if (column >= s.columns) return;
  for (Index batch = __nvvm_read_ptx_sreg_ctaid_z(); batch < s.batches; batch += __nvvm_read_ptx_sreg_nctaid_z()) {
    const void* const a = Base(s.a, batch);
    void* const b = const_cast<void*>(Base(s.b, batch));
    const Index a_start = Offset(s.a, batch), b_start = Offset(s.b, batch) + column * s.b.column_stride;
    const bool forward = s.a.stored == Triangle::kLower;
    for (Index step = 0; step < s.rows; ++step) {
      const Index row = forward ? step : s.rows - 1 - step;
      Value value = Read<Value>(b, b_start + row * s.b.row_stride, s.b.element, false);
      for (Index i = 0; i < step; ++i) {
        const Index known = forward ? i : s.rows - 1 - i;
        value = Fma(Negative(ReadAt<Value>(s.a, a, a_start, row, known)), x[known][lane], value);
      }
      if (!s.a.unit_diagonal) value = Divide(value, ReadAt<Value>(s.a, a, a_start, row, row));
      x[row][lane] = value;
      Write(b, b_start + row * s.b.row_stride, s.b.element, value);
    }
  }
}

}  // namespace
}  // namespace gridloom::blas

// The launch bounds keep the registers of 512 threads within an SM's.
#define KERNEL(name, threads, Argument, call)                                                                     \
  extern "C" __attribute__((global, launch_bounds(threads))) void name(const gridloom::blas::Argument argument) { \
    gridloom::blas::call(argument);                                                                               \
  }
#define PRODUCT(name, sum) \
  KERNEL(gridloom_product_##name, 32 * gridloom::blas::kWarps, Product, Run<gridloom::blas::sum>)
#define SOLVE(name, value) KERNEL(gridloom_solve_##name, 32, Solve, Substitute<gridloom::blas::value>)
namespace gridloom::blas {
using F32 = float;
using F64 = double;
using I32 = int;
}  // namespace gridloom::blas
PRODUCT(f32, F32)
PRODUCT(f64, F64)
PRODUCT(i32, I32)
PRODUCT(c32, Complex<float>)
PRODUCT(c64, Complex<double>)
SOLVE(f32, F32)
SOLVE(f64, F64)
SOLVE(c32, Complex<float>)
SOLVE(c64, Complex<double>)
