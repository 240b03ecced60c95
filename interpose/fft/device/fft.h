// What one step of a Fourier transform is told, shared by the host (interpose/fft) and the kernels (fft.cu). Plain
// data, 64-bit clean.
#pragma once

namespace gridloom::fft {

/// How a real number lies in memory; complex ones are two of them.
enum class Number : unsigned char { kF32, kF64, kF16, kBf16 };

/// What element k of a line is, in memory. n is the length of the whole transform, h half of it.
enum class Form : unsigned char {
  kComplex,    ///< complex number k
  kReal,       ///< real number k
  kHermitian,  ///< read: of a spectrum of which the first n/2 + 1 numbers are stored: those beyond are conjugates
  kPairs,      ///< the real numbers 2k and 2k + 1
  kHalf,       ///< the spectrum of n real numbers as h complex ones (read), and back (written: n/2 + 1 numbers)
  kSplit       ///< read: the spectrum of n real numbers (n/2 + 1) from that of h complex ones, in memory
};

/// exp(-2 pi i m / size): a table of every 2^shift-th one, and one of the first 2^shift, both complex; or one table,
/// and `fine` is 0.
struct Roots {
  unsigned long long coarse, fine;
  int shift;
};

/// Where a line is read or written. Element k lies `step` elements (complex or real ones, by the form) after element 0;
/// those from `end` on are zero when read, and not written. Numbers are multiplied by entry k of `factors` (complex),
/// unless that is 0.
struct Side {
  unsigned long long address, factors;
  long long step, end;
  Form form;
  Number number;
  bool conjugate;  ///< when read, before they are multiplied; when written, after
};

/// Lines are numbered along axes. One step along an axis moves the first element by in_offset and out_offset elements
/// in memory, the index k of the line's first element by in_index and out_index, and the line's turn by `turn`.
struct Axis {
  long long count, in_offset, out_offset, in_index, out_index, turn;
};

/// Stockham's algorithm: butterflies of `radix` numbers; `done` is the product of the radices before. Radix 1
/// multiplies by a table and conjugates (Bluestein's convolution).
struct Pass {
  int radix, done;
  float inverse_done;  ///< 1 / done
  int table;  ///< where in the tables its factors are, in real numbers: all real parts, then all imaginary ones
};

inline constexpr int kAxes = 8, kPasses = 32;

/// Transforms lines of `length` numbers, 2^log_lines of them to a CTA, neighbours along axes[0].
struct Step {
  Side in, out;
  Axis axes[kAxes];
  long long in_index, out_index;  ///< of element i of a line: i times this, plus what the axes say
  unsigned long long tables;      ///< of all passes
  Roots turns;                    ///< element i of the result is multiplied by root i * turn; none when `coarse` is 0
  int turn_pitch;                 ///< 0, or `turns` is one table in which this root is at i * turn_pitch + turn
  Roots halves;                   ///< for kHalf and kSplit: of n
  long long whole;                ///< n, for kHermitian, kHalf and kSplit
  int length, stored;             ///< numbers in a line when the passes are done: length; written: stored
  int passes, log_lines;
  bool in_by_lines, out_by_lines;  ///< neighbouring threads go along axes[0], not along the line
  bool in_plain,
      out_plain;  ///< nothing but complex numbers of the kernel's own precision, all less than 2^31 elements apart
  Pass pass[kPasses];
};

/// A whole transform that the host's library makes in place of a kernel (interpose/fft/host_transform.h).
struct Whole {
  unsigned long long in, in_bytes, out, out_bytes;  ///< all that the transform may touch
  long long n[3], in_strides[3], out_strides[3];    ///< strides, and distances, in elements of their side
  long long batch, in_distance, out_distance;
  int rank, direction;     ///< direction: -1 forward, 1 inverse
  bool real_in, real_out;  ///< neither: complex to complex
  bool wide;               ///< f64, else f32
  bool same_places;        ///< in place, each element is written where the library would write it
};

/// Primes up to this one have passes of their own; lines of other lengths are made by Bluestein's algorithm.
inline constexpr int kMostPrime = 61;
/// Threads of a CTA, and the numbers of all its lines, by the size of a real number: what leaves two copies in 48 KiB.
inline constexpr int kThreads = 32;
inline constexpr int TileOf(int real_size) { return 48 * 1024 / (4 * real_size); }

}  // namespace gridloom::fft
