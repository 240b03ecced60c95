// Fourier transforms for cuFFT, whose own kernels are machine code for the larger sizes. Built to PTX by clang without
// a CUDA toolkit.
//
// A CTA transforms some lines in shared memory, by Stockham's algorithm: each pass reads one copy and writes the other.
// Element i of line b is at i * lines + b, real parts apart from imaginary ones, so that neighbouring threads read
// neighbouring numbers in every pass.
#include "fft.h"

#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

namespace gridloom::fft {
namespace {

using Index = long long;
using Bits16 = unsigned short;

template <typename Real>
struct Complex {
  Real re, im;
};

template <typename Real>
__device__ inline Complex<Real> operator+(Complex<Real> a, Complex<Real> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename Real>
__device__ inline Complex<Real> operator-(Complex<Real> a, Complex<Real> b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename Real>
__device__ inline Complex<Real> operator*(Complex<Real> a, Complex<Real> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/// a * -i
template <typename Real>
__device__ inline Complex<Real> Turned(Complex<Real> a) {
  return {a.im, -a.re};
}

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
__device__ inline float ReadBf16(Bits16 bits) { return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16); }
__device__ inline Bits16 WriteBf16(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;  // NaN
  return static_cast<Bits16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename Real>
__device__ Real ReadReal(const Side& side, Index at) {
  if constexpr (sizeof(Real) == 4) {
    if (side.number == Number::kF16) return ReadF16(reinterpret_cast<const Bits16*>(side.address)[at]);
    if (side.number == Number::kBf16) return ReadBf16(reinterpret_cast<const Bits16*>(side.address)[at]);
  }
  return reinterpret_cast<const Real*>(side.address)[at];
}
template <typename Real>
__device__ void WriteReal(const Side& side, Index at, Real value) {
  if constexpr (sizeof(Real) == 4) {
    if (side.number == Number::kF16) {
      reinterpret_cast<Bits16*>(side.address)[at] = WriteF16(value);
      return;
    }
    if (side.number == Number::kBf16) {
      reinterpret_cast<Bits16*>(side.address)[at] = WriteBf16(value);
      return;
    }
  }
  reinterpret_cast<Real*>(side.address)[at] = value;
}
template <typename Real>
__device__ Complex<Real> ReadComplex(const Side& side, Index at) {
  if (side.number == Number::kF16 || side.number == Number::kBf16)
    return {ReadReal<Real>(side, 2 * at), ReadReal<Real>(side, 2 * at + 1)};
  return reinterpret_cast<const Complex<Real>*>(side.address)[at];
}
template <typename Real>
__device__ void WriteComplex(const Side& side, Index at, Complex<Real> value) {
  if (side.number == Number::kF16 || side.number == Number::kBf16) {
    WriteReal(side, 2 * at, value.re);
    WriteReal(side, 2 * at + 1, value.im);
  } else {
    reinterpret_cast<Complex<Real>*>(side.address)[at] = value;
  }
}

template <typename Real>
__device__ Complex<Real> RootAt(const Roots& roots, unsigned m) {
  const Complex<Real> coarse = reinterpret_cast<const Complex<Real>*>(roots.coarse)[m >> roots.shift];
  if (roots.fine == 0) return coarse;
  const Complex<Real> fine = reinterpret_cast<const Complex<Real>*>(roots.fine)[m & ((1u << roots.shift) - 1)];
  return coarse * fine;
}

/// Which element of which line a thread has; quotients by a float's reciprocal, exact for less than 2^21 numbers.
struct Place {
  int element, line;
};
__device__ inline Place PlaceOf(int number, bool by_lines, int log_lines, int length, float inverse) {
  if (by_lines) return {number >> log_lines, number & ((1 << log_lines) - 1)};
  const int line = static_cast<int>((static_cast<float>(number) + 0.5f) * inverse);
  return {number - line * length, line};
}

/// Butterflies: the transform of R numbers in place. Odd ones take numbers that mirror each other together.
template <typename Real, int R>
struct Butterfly;
template <typename Real>
struct Butterfly<Real, 2> {
  __device__ static void Run(Complex<Real>* a) {
    const Complex<Real> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  }
};
template <typename Real>
struct Butterfly<Real, 4> {
  __device__ static void Run(Complex<Real>* a) {
    const Complex<Real> s0 = a[0] + a[2], d0 = a[0] - a[2], s1 = a[1] + a[3], d1 = Turned(a[1] - a[3]);
    a[0] = s0 + s1;
    a[1] = d0 + d1;
    a[2] = s0 - s1;
    a[3] = d0 - d1;
  }
};
template <typename Real>
struct Butterfly<Real, 8> {
  __device__ static void Run(Complex<Real>* a) {
    constexpr Real kRoot = static_cast<Real>(0.70710678118654752440);
    Complex<Real> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    Butterfly<Real, 4>::Run(even);
    Butterfly<Real, 4>::Run(odd);
    odd[1] = {kRoot * (odd[1].re + odd[1].im), kRoot * (odd[1].im - odd[1].re)};
    odd[2] = Turned(odd[2]);
    odd[3] = {kRoot * (odd[3].im - odd[3].re), -kRoot * (odd[3].re + odd[3].im)};
    for (int k = 0; k < 4; ++k) {
      a[k] = even[k] + odd[k];
      a[k + 4] = even[k] - odd[k];
    }
  }
};

template <int R>
struct Circle;  ///< cosines and sines of the first turns of 1/R
template <>
struct Circle<3> {
  static constexpr double kCos[] = {1, -0.5}, kSin[] = {0, 0.86602540378443864676};
};
template <>
struct Circle<5> {
  static constexpr double kCos[] = {1, 0.30901699437494742410, -0.80901699437494742410};
  static constexpr double kSin[] = {0, 0.95105651629515357212, 0.58778525229247312917};
};
template <>
struct Circle<7> {
  static constexpr double kCos[] = {1, 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624};
  static constexpr double kSin[] = {0, 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048};
};

template <typename Real, int R>
struct Butterfly {
  template <int K, int J>
  static constexpr int kTurn = K* J % R;
  template <int K, int J>
  __device__ static void Add(const Complex<Real>* sums, const Complex<Real>* differences, Complex<Real>* even,
                             Complex<Real>* odd) {
    if constexpr (J <= R / 2) {
      constexpr int kAt = K * J % R <= R / 2 ? K * J % R : R - K * J % R;
      constexpr Real kCos = static_cast<Real>(Circle<R>::kCos[kAt]);
      constexpr Real kSin = static_cast<Real>(K * J % R <= R / 2 ? Circle<R>::kSin[kAt] : -Circle<R>::kSin[kAt]);
      even->re += kCos * sums[J].re, even->im += kCos * sums[J].im;
      odd->re += kSin * differences[J].re, odd->im += kSin * differences[J].im;
      Add<K, J + 1>(sums, differences, even, odd);
    }
  }
  template <int K>
  __device__ static void Output(Complex<Real> first, const Complex<Real>* sums, const Complex<Real>* differences,
                                Complex<Real>* a) {
    if constexpr (K <= R / 2) {
      Complex<Real> even = first, odd{};
      Add<K, 1>(sums, differences, &even, &odd);
      a[K] = even + Turned(odd);
      a[R - K] = even - Turned(odd);
      Output<K + 1>(first, sums, differences, a);
    }
  }
  __device__ static void Run(Complex<Real>* a) {
    Complex<Real> sums[R / 2 + 1], differences[R / 2 + 1], all = a[0];
    for (int j = 1; j <= R / 2; ++j) {
      sums[j] = a[j] + a[R - j];
      differences[j] = a[j] - a[R - j];
      all = all + sums[j];
    }
    Output<1>(a[0], sums, differences, a);
    a[0] = all;
  }
};

extern __shared__ double gl_fft_memory[];

/// `kForms`: lines lie in memory in any form, not only plainly; `kRadices`: passes of any radix, not only of powers of
/// two.
template <typename Real, bool kForms, bool kRadices>
struct Lines {
  static constexpr int kTile = TileOf(sizeof(Real));

  const Step& step;
  const int thread = static_cast<int>(__nvvm_read_ptx_sreg_tid_x());
  const int total = step.length << step.log_lines;
  Real* from = reinterpret_cast<Real*>(gl_fft_memory);
  Real* to = from + 2 * kTile;
  Axis first{};  ///< of the CTA's first line: what the axes add up to; count: the lines that there are
  const Real* const tables = reinterpret_cast<const Real*>(step.tables);

  __device__ explicit Lines(const Step& told) : step(told) {
    const int lines = 1 << step.log_lines;
    Index rest = __nvvm_read_ptx_sreg_ctaid_x();
#pragma nounroll
    for (int a = 0; a < kAxes; ++a) {
      const Axis& axis = step.axes[a];
      if (a > 0 && axis.count == 1) continue;
      const Index groups = a == 0 ? (axis.count + lines - 1) >> step.log_lines : axis.count;
      Index at = rest % groups;
      rest /= groups;
      if (a == 0) {
        at <<= step.log_lines;
        first.count = axis.count - at < lines ? axis.count - at : lines;
      }
      first.in_offset += at * axis.in_offset, first.out_offset += at * axis.out_offset;
      first.in_index += at * axis.in_index, first.out_index += at * axis.out_index;
      first.turn += at * axis.turn;
    }
  }

  __device__ Complex<Real> Get(int at) const { return {from[at], from[at + kTile]}; }
  __device__ static void Put(Real* memory, int at, Complex<Real> value) {
    memory[at] = value.re, memory[at + kTile] = value.im;
  }

  /// Number k of the spectrum of n real numbers, from number k of that of h complex ones and the one that mirrors it.
  __device__ Complex<Real> Split(Complex<Real> a, Complex<Real> b, unsigned k) const {
    constexpr Real kHalfOf = static_cast<Real>(0.5);
    b.im = -b.im;
    const Complex<Real> even = a + b, odd = Turned(a - b) * RootAt<Real>(step.halves, k);
    return {kHalfOf * (even.re + odd.re), kHalfOf * (even.im + odd.im)};
  }

  /// Element k, whose line begins at `start` in memory.
  __device__ Complex<Real> Read(Index start, Index k) const {
    const Side& in = step.in;
    switch (in.form) {
      case Form::kReal: return {ReadReal<Real>(in, start + k * in.step), 0};
      case Form::kPairs:
        return {ReadReal<Real>(in, start + 2 * k * in.step), ReadReal<Real>(in, start + (2 * k + 1) * in.step)};
      case Form::kHermitian: {
        const bool beyond = 2 * k > step.whole;
        Complex<Real> value = ReadComplex<Real>(in, start + (beyond ? step.whole - k : k) * in.step);
        if (k == 0 || 2 * k == step.whole) value.im = 0;
        if (beyond) value.im = -value.im;
        return value;
      }
      case Form::kHalf: {  // even and odd numbers' spectra, from k and from what mirrors it
        const Index half = step.whole / 2;
        Complex<Real> a = ReadComplex<Real>(in, start + k * in.step),
                      b = ReadComplex<Real>(in, start + (half - k) * in.step);
        if (k == 0) a.im = b.im = 0;
        b.im = -b.im;
        Complex<Real> root = RootAt<Real>(step.halves, static_cast<unsigned>(k));
        root.im = -root.im;
        const Complex<Real> odd = (a - b) * root;
        return a + b - Turned(odd);
      }
      case Form::kSplit: {
        const Index half = step.whole / 2;
        return Split(ReadComplex<Real>(in, start + (k == half ? 0 : k) * in.step),
                     ReadComplex<Real>(in, start + (k == 0 ? 0 : half - k) * in.step), static_cast<unsigned>(k));
      }
      default: return ReadComplex<Real>(in, start + k * in.step);
    }
  }

  /// How a thread's number of a side is found: elements are `along` apart in a line, lines `across`.
  struct Strides {
    int along, across;
  };

  __device__ void LoadPlain() const {
    const Axis& near = step.axes[0];
    const Index start = first.in_offset + first.in_index * step.in.step;
    const auto* const data = reinterpret_cast<const Complex<Real>*>(step.in.address) + start;
    const Strides strides{static_cast<int>(step.in_index * step.in.step),
                          static_cast<int>(near.in_offset + near.in_index * step.in.step)};
    const float inverse = 1.0f / static_cast<float>(step.length);
    const Real sign = step.in.conjugate ? -1 : 1;
    const int lines = static_cast<int>(first.count);
    for (int number = thread; number < total; number += kThreads) {
      const Place place = PlaceOf(number, step.in_by_lines, step.log_lines, step.length, inverse);
      Complex<Real> value{};
      if (place.line < lines) value = data[place.element * strides.along + place.line * strides.across];
      value.im *= sign;
      Put(from, (place.element << step.log_lines) + place.line, value);
    }
  }

  __device__ void Load() const {
    const Axis& near = step.axes[0];
    const float inverse = 1.0f / static_cast<float>(step.length);
    const Real sign = step.in.conjugate ? -1 : 1;
    for (int number = thread; number < total; number += kThreads) {
      const Place place = PlaceOf(number, step.in_by_lines, step.log_lines, step.length, inverse);
      const Index k = first.in_index + place.element * step.in_index + place.line * near.in_index;
      Complex<Real> value{};
      if (place.line < first.count && k < step.in.end) {
        value = Read(first.in_offset + place.line * near.in_offset, k);
        value.im *= sign;
        if (step.in.factors != 0) value = value * reinterpret_cast<const Complex<Real>*>(step.in.factors)[k];
      }
      Put(from, (place.element << step.log_lines) + place.line, value);
    }
  }

  /// Exchanges the two copies when all threads are done with a pass.
  __device__ void EndPass() {
    __nvvm_bar_sync(0);
    Real* const other = from;
    from = to;
    to = other;
  }

  template <int R>
  __device__ void Run(const Pass& pass) {
    const int count = total / R, done = pass.done;
    const Real* const table = tables + pass.table;
    for (int number = thread; number < count; number += kThreads) {
      const int j = number >> step.log_lines;
      const int block = static_cast<int>((static_cast<float>(j) + 0.5f) * pass.inverse_done), turn = j - block * done;
      Complex<Real> a[R];
#pragma unroll
      for (int k = 0; k < R; ++k) a[k] = Get(number + k * count);
      if (done > 1) {
#pragma unroll
        for (int k = 1; k < R; ++k)
          a[k] = a[k] * Complex<Real>{table[(k - 1) * done + turn], table[(R - 1 + k - 1) * done + turn]};
      }
      Butterfly<Real, R>::Run(a);
      const int at = number + ((block * done * (R - 1)) << step.log_lines);
#pragma unroll
      for (int k = 0; k < R; ++k) Put(to, at + ((k * done) << step.log_lines), a[k]);
    }
    EndPass();
  }

  /// A pass of any radix by the definition: the table has the roots of done * radix.
  __device__ void RunPrime(const Pass& pass) {
    const int count = total / pass.radix, done = pass.done, all = done * pass.radix;
    const Real* const table = tables + pass.table;
    for (int k = 0; k < pass.radix; ++k) {
      for (int number = thread; number < count; number += kThreads) {
        const int j = number >> step.log_lines;
        const int block = static_cast<int>((static_cast<float>(j) + 0.5f) * pass.inverse_done),
                  turn = j - block * done + k * done;
        Complex<Real> sum = Get(number);
        int root = turn;
#pragma nounroll
        for (int r = 1; r < pass.radix; ++r) {
          sum = sum + Get(number + r * count) * Complex<Real>{table[root], table[all + root]};
          root += turn;
          if (root >= all) root -= all;
        }
        Put(to, number + ((block * done * (pass.radix - 1) + k * done) << step.log_lines), sum);
      }
    }
    EndPass();
  }

  __device__ void Multiply(const Pass& pass) const {
    const Real* const table = tables + pass.table;
    for (int number = thread; number < total; number += kThreads) {
      const int k = number >> step.log_lines;
      Complex<Real> value = Get(number) * Complex<Real>{table[k], table[step.length + k]};
      value.im = -value.im;
      Put(from, number, value);
    }
    __nvvm_bar_sync(0);
  }

  __device__ void RunPasses() {
    for (int p = 0; p < step.passes; ++p) {
      const Pass& pass = step.pass[p];
      if constexpr (kRadices) {
        switch (pass.radix) {
          case 1: Multiply(pass); continue;
          case 3: Run<3>(pass); continue;
          case 5: Run<5>(pass); continue;
          case 7: Run<7>(pass); continue;
          case 2:
          case 4:
          case 8: break;
          default: RunPrime(pass); continue;
        }
      }
      switch (pass.radix) {
        case 2: Run<2>(pass); break;
        case 4: Run<4>(pass); break;
        default: Run<8>(pass); break;
      }
    }
  }

  /// Element i of a line when the passes are done, as it is to be written as element k.
  __device__ Complex<Real> Result(int i, int line, Index k) const {
    Complex<Real> value = Get((i << step.log_lines) + line);
    if (step.out.factors != 0) value = value * reinterpret_cast<const Complex<Real>*>(step.out.factors)[k];
    if (step.out.conjugate) value.im = -value.im;
    return value;
  }

  /// The spectrum of n real numbers from that of h complex ones.
  __device__ Complex<Real> WholeAt(int k, int line) const {
    const int half = static_cast<int>(step.whole / 2), at = k == half ? 0 : k, mirrored = k == 0 ? 0 : half - k;
    return Split(Result(at, line, at), Result(mirrored, line, mirrored), static_cast<unsigned>(k));
  }

  __device__ void WriteOne(Index start, Index k, Complex<Real> value) const {
    const Side& out = step.out;
    switch (out.form) {
      case Form::kReal: WriteReal(out, start + k * out.step, value.re); return;
      case Form::kPairs:
        WriteReal(out, start + 2 * k * out.step, value.re);
        WriteReal(out, start + (2 * k + 1) * out.step, value.im);
        return;
      default: WriteComplex(out, start + k * out.step, value); return;
    }
  }

  __device__ Complex<Real> Turn(int element, int turn) const {
    if (step.turn_pitch != 0)
      return reinterpret_cast<const Complex<Real>*>(step.turns.coarse)[element * step.turn_pitch + turn];
    return RootAt<Real>(step.turns, static_cast<unsigned>(element) * static_cast<unsigned>(turn));
  }

  __device__ void StorePlain() const {
    const Axis& near = step.axes[0];
    const Index start = first.out_offset + first.out_index * step.out.step;
    auto* const data = reinterpret_cast<Complex<Real>*>(step.out.address) + start;
    const Strides strides{static_cast<int>(step.out_index * step.out.step),
                          static_cast<int>(near.out_offset + near.out_index * step.out.step)};
    const float inverse = 1.0f / static_cast<float>(step.length);
    const Real sign = step.out.conjugate ? -1 : 1;
    const int lines = static_cast<int>(first.count), first_turn = static_cast<int>(first.turn),
              turn = static_cast<int>(near.turn);
    const bool turned = step.turns.coarse != 0;
    for (int number = thread; number < total; number += kThreads) {
      const Place place = PlaceOf(number, step.out_by_lines, step.log_lines, step.length, inverse);
      if (place.line >= lines) continue;
      Complex<Real> value = Get((place.element << step.log_lines) + place.line);
      value.im *= sign;
      if (turned) value = value * Turn(place.element, first_turn + place.line * turn);
      data[place.element * strides.along + place.line * strides.across] = value;
    }
  }

  __device__ void Store() const {
    const Axis& near = step.axes[0];
    const float inverse = 1.0f / static_cast<float>(step.stored);
    for (int number = thread; number < step.stored << step.log_lines; number += kThreads) {
      const Place place = PlaceOf(number, step.out_by_lines, step.log_lines, step.stored, inverse);
      const Index k = first.out_index + place.element * step.out_index + place.line * near.out_index;
      if (place.line >= first.count || k >= step.out.end) continue;
      Complex<Real> value =
          step.out.form == Form::kHalf ? WholeAt(place.element, place.line) : Result(place.element, place.line, k);
      if (step.turns.coarse != 0)
        value = value * Turn(place.element, static_cast<int>(first.turn + place.line * near.turn));
      WriteOne(first.out_offset + place.line * near.out_offset, k, value);
    }
  }
};

template <typename Real, bool kForms, bool kRadices>
__device__ void RunStep(const Step& step) {
  Lines<Real, kForms, kRadices> lines(step);
  if constexpr (kForms) {
    if (step.in_plain) lines.LoadPlain();
    else lines.Load();
  } else {
    lines.LoadPlain();
  }
  __nvvm_bar_sync(0);
  lines.RunPasses();
  if constexpr (kForms) {
    if (step.out_plain) lines.StorePlain();
    else lines.Store();
  } else {
    lines.StorePlain();
  }
}

}  // namespace
}  // namespace gridloom::fft

// A plan takes the smallest kernel that can make all its steps: what it does not need would be compiled, too.
#define GL_FFT_KERNEL(name, Real, forms, radices)                                       \
  extern "C" __attribute__((global, launch_bounds(gridloom::fft::kThreads))) void name( \
      const gridloom::fft::Step step) {                                                 \
    gridloom::fft::RunStep<Real, forms, radices>(step);                                 \
  }
GL_FFT_KERNEL(gridloom_fft_f32, float, true, true)
GL_FFT_KERNEL(gridloom_fft_f32_powers, float, true, false)
GL_FFT_KERNEL(gridloom_fft_f32_plain, float, false, true)
GL_FFT_KERNEL(gridloom_fft_f32_plain_powers, float, false, false)
GL_FFT_KERNEL(gridloom_fft_f64, double, true, true)
GL_FFT_KERNEL(gridloom_fft_f64_powers, double, true, false)
GL_FFT_KERNEL(gridloom_fft_f64_plain, double, false, true)
GL_FFT_KERNEL(gridloom_fft_f64_plain_powers, double, false, false)

/// What runs where the host has refused a transform because not all of its memory can be accessed: it touches all pages
/// of it, so that the fault is the one that a transform has.
extern "C" __attribute__((global, launch_bounds(gridloom::fft::kThreads))) void gridloom_fft_by_host(
    const gridloom::fft::Whole whole) {
  const unsigned long long thread = static_cast<unsigned>(__nvvm_read_ptx_sreg_tid_x());
  const auto touch = [thread](unsigned long long address, unsigned long long bytes, bool write) {
    constexpr unsigned long long kPage = 4096;
    for (unsigned long long at = thread * kPage; at < bytes + kPage; at += gridloom::fft::kThreads * kPage) {
      auto* const byte = reinterpret_cast<volatile unsigned char*>(address + (at < bytes ? at : bytes - 1));
      const unsigned char value = *byte;
      if (write) *byte = value;
    }
  };
  touch(whole.in, whole.in_bytes, false);
  touch(whole.out, whole.out_bytes, true);
  __nvvm_bar_sync(0);
  asm volatile("trap;");
}
