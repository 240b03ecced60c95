// What row_products_{avx512,avx2,baseline}.cpp compile, each with the vectors of its instruction set, which a struct
// describes:
//   Floats, kWidth              a vector of floats, and how many
//   Doubles                     a vector of doubles
//   MultiplyAdd<exact>(a, b, c) a b + c, rounded once; whether the product is known to be exact as a float
//   MultiplyAdd(a, b, c)        likewise of doubles
//   Canonical(floats)           what is no number as 0x7fffffff, as PTX has it of other instructions, whatever the
//                               instruction set
//   RepeatFour(from)            four floats, as often as the vector holds them
//   RepeatElement<n>(floats)    of each four floats number n, four times
//   WidenHalves(from)           kWidth halves as floats
//   NarrowToHalves(from, to)    and back
//   Words8(from), Words16(from) kWidth unsigned integers as words
//   GatherQuads<bytes, n>(rows, to): of each of kWidth / 4 lines of 16 bytes, which lie one after the other, four
//                               elements: number n of fours
//
//   Lines, kLanes               a vector of 16 bytes of each of so many chunks
//   LoadLines(chunk, next)      those of two chunks (kLanes = 2), or of one
//
//   Interleave<bytes>(a, b, low, high): elements of a and b in turn, 16 bytes by 16 bytes, of their first halves and of
//                               their second ones
//
// Shuffles are intrinsics there, as compilers make them of __builtin_shufflevector element by element now and then.
// Each struct lies in an unnamed namespace, so that no two files share code.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "sim/exec/tensor/row_products.h"

namespace gridloom::exec {

/// A small float (PTX ISA 5.2.3) in a byte: `shift` bits are below it, magnitudes from `special` on are infinite or no
/// number.
struct SmallFormat {
  unsigned shift, exponent_bits, mantissa_bits, special;

  constexpr unsigned magnitude_mask() const { return (1u << (exponent_bits + mantissa_bits)) - 1; }
  constexpr unsigned sign_bit() const { return shift + exponent_bits + mantissa_bits; }
  /// From its exponent's bias to that of f32.
  constexpr unsigned bias_step() const { return 127u - ((1u << (exponent_bits - 1)) - 1); }
};
constexpr SmallFormat FormatOf(MatrixType type) {
  switch (type) {
    case MatrixType::kE5M2: return {0, 5, 2, 0x7c};
    case MatrixType::kE3M2: return {0, 3, 2, 0x100};
    case MatrixType::kE2M3: return {0, 2, 3, 0x100};
    case MatrixType::kE2M1: return {2, 2, 1, 0x100};
    default: return {0, 4, 3, 0x7f};
  }
}

template <typename V>
class RowProducts {
 public:
  static void Multiply(const RowProduct& product) {
    SpreadA a;
    WithType(product.type_a, [&]<MatrixType type>() { ReadRows<type>(product, a); });
    WithType(product.type_b, [&]<MatrixType type>() { MultiplyGroups<type>(product, a); });
  }

  static void MultiplyDoubles(DoubleProduct& m) {
    using Doubles = typename V::Doubles;
    constexpr unsigned kRowsAtOnce = 4, kDoubles = sizeof(Doubles) / sizeof(double);
    for (unsigned row = 0; row < m.rows; row += kRowsAtOnce) {
      for (unsigned column = 0; column < DoubleProduct::kColumns; column += kDoubles) {
        Doubles sum[kRowsAtOnce], factors;
        for (unsigned i = 0; i < kRowsAtOnce; ++i) std::memcpy(&sum[i], m.c[row + i] + column, sizeof sum[i]);
        for (unsigned k = 0; k < m.depth; ++k) {
          std::memcpy(&factors, m.b[k] + column, sizeof factors);
          for (unsigned i = 0; i < kRowsAtOnce; ++i)
            sum[i] = V::MultiplyAdd(Doubles{} + m.a[row + i][k], factors, sum[i]);
        }
        for (unsigned i = 0; i < kRowsAtOnce; ++i) std::memcpy(m.c[row + i] + column, &sum[i], sizeof sum[i]);
      }
    }
  }

 private:
  using Floats = typename V::Floats;
  static constexpr unsigned kWidth = V::kWidth, kMostDepth = kMostChunks * kChunkBytes, kHalfLanes = 32,
                            kGroupLanes = 2 * kHalfLanes;
  static constexpr unsigned kQuadElements = 4;  // a row of an accumulator's register
  typedef std::uint32_t Words __attribute__((vector_size(sizeof(Floats))));
  typedef std::int32_t Integers __attribute__((vector_size(sizeof(Floats))));
  // Vectors of accumulators, each of even and of odd columns, that registers hold at once.
  static constexpr unsigned kSlices = 4, kAllSlices = kGroupLanes / kWidth, kGroupsAtOnce = kWidth == 16 ? 2 : 1;

  /// A as registers of 32 lanes want it: lane 4g + t has row g in the first half, row g + 8 in the second.
  struct alignas(64) SpreadA {
    float lanes[kMostDepth][kGroupLanes];
  };
  /// Eight columns of B, even ones first, then odd ones: lane 4g + t has columns 2t and 2t + 1. Lines of k in the order
  /// of ColumnOrder.
  struct alignas(64) Columns {
    float line[kMostDepth][kLinesOfChunk];
  };
  /// Where the sums of eight columns are: of rows g and g + 8, of even and odd columns.
  struct Places {
    const float* from[2][2];
    float* to[2][2];
  };
  struct alignas(64) Sums {
    float lanes[2][2][kHalfLanes];
  };
  static constexpr Sums kZeros{};

  template <typename Function>
  static void WithType(MatrixType type, Function&& function) {
    switch (type) {
      case MatrixType::kF16: return function.template operator()<MatrixType::kF16>();
      case MatrixType::kBF16: return function.template operator()<MatrixType::kBF16>();
      case MatrixType::kTF32: return function.template operator()<MatrixType::kTF32>();
      case MatrixType::kS8: return function.template operator()<MatrixType::kS8>();
      case MatrixType::kU8: return function.template operator()<MatrixType::kU8>();
      case MatrixType::kE5M2: return function.template operator()<MatrixType::kE5M2>();
      case MatrixType::kE3M2: return function.template operator()<MatrixType::kE3M2>();
      case MatrixType::kE2M3: return function.template operator()<MatrixType::kE2M3>();
      case MatrixType::kE2M1: return function.template operator()<MatrixType::kE2M1>();
      default: return function.template operator()<MatrixType::kE4M3>();
    }
  }

  // Elements as floats. All conversions are exact and free of branches.

  template <typename To, typename From>
  static To Cast(const From& from) {
    To to;
    static_assert(sizeof to == sizeof from);
    std::memcpy(&to, &from, sizeof to);
    return to;
  }
  template <MatrixType type>
  static Floats WidenSmall(const Words& bytes) {
    constexpr SmallFormat kFormat = FormatOf(type);
    const Words magnitude = bytes >> kFormat.shift & kFormat.magnitude_mask();
    const Words placed = magnitude << (23 - kFormat.mantissa_bits);
    // Subnormal ones lose, as normal numbers of f32, the bit that those have before the point: f32's own subnormals
    // would be slow.
    constexpr std::uint32_t kBias = kFormat.bias_step() << 23, kFirst = kBias + (1u << 23);
    const Words tiny = Cast<Words>(Cast<Floats>(placed + kFirst) - Cast<Floats>(Words{} + kFirst));
    // All ones or none.
    const Words is_tiny = Cast<Words>(Cast<Integers>(magnitude - (1u << kFormat.mantissa_bits)) >> 31);
    const Words finite = (is_tiny & tiny) | (~is_tiny & (placed + kBias));
    const Words special = Cast<Words>(Cast<Integers>(kFormat.special - 1 - magnitude) >> 31);
    const Words sign = (bytes >> kFormat.sign_bit() & 1) << 31;
    return Cast<Floats>(sign | (special & (placed | 0x7f800000u)) | (~special & finite));
  }
  /// kWidth elements that lie one after the other.
  template <MatrixType type>
  static Floats Widen(const void* from) {
    if constexpr (type == MatrixType::kF16) return V::WidenHalves(from);
    else if constexpr (type == MatrixType::kBF16) return Cast<Floats>(Cast<Words>(V::Words16(from)) << 16);
    else if constexpr (type == MatrixType::kTF32) return WidenTf32(from);
    else return WidenBytes<type>(Cast<Words>(V::Words8(from)));
  }
  static Floats WidenTf32(const void* from) {
    Words words;
    std::memcpy(&words, from, sizeof words);
    return Cast<Floats>(words & 0xffffe000u);  // the 13 low bits do not count
  }
  template <MatrixType type>
  static Floats WidenBytes(const Words& bytes) {
    if constexpr (type == MatrixType::kU8) return __builtin_convertvector(Cast<Integers>(bytes), Floats);
    else if constexpr (type == MatrixType::kS8)
      return __builtin_convertvector(Cast<Integers>(bytes << 24) >> 24, Floats);
    else return WidenSmall<type>(bytes);
  }

  // A: of each four elements along k of kWidth / 4 rows, every one is repeated four times.

  template <MatrixType type>
  static void ReadRows(const RowProduct& product, SpreadA& to) {
    constexpr unsigned kElements = kChunkBytes * 8 / BitsOf(type);
    for (unsigned half = 0; half < (product.rows16 ? 2u : 1u); ++half) {
      for (unsigned chunk = 0; chunk < product.chunks; ++chunk)
        ReadChunkOfRows<type>(product.a[half].chunk[chunk], product.negates,
                              to.lanes[chunk * kElements] + half * kHalfLanes);
    }
  }
  template <MatrixType type>
  static void ReadChunkOfRows(const std::uint8_t* chunk, bool negates, float* to) {
    constexpr unsigned kRowsAtOnce = kWidth / kQuadElements, kQuads = kChunkBytes * 8 / BitsOf(type) / kQuadElements;
    for (unsigned row = 0; row < kLinesOfChunk; row += kRowsAtOnce)
      SpreadQuads<type>(chunk + row * kChunkBytes, negates, to + row * kQuadElements,
                        std::make_index_sequence<kQuads>());
  }
  template <MatrixType type, std::size_t... kQuad>
  static void SpreadQuads(const std::uint8_t* rows, bool negates, float* to, std::index_sequence<kQuad...>) {
    (SpreadQuad(QuadOfRows<type, kQuad>(rows), negates, to + kQuad * kQuadElements * kGroupLanes), ...);
  }
  template <MatrixType type, unsigned kQuad>
  static Floats QuadOfRows(const std::uint8_t* rows) {
    if constexpr (type == MatrixType::kTF32) return Widen<type>(rows);
    alignas(64) std::uint8_t quads[kWidth * BitsOf(type) / 8];
    V::template GatherQuads<BitsOf(type) / 8, kQuad>(rows, quads);
    return Widen<type>(quads);
  }
  static void SpreadQuad(Floats quads, bool negates, float* to) {
    if (negates) quads = -quads;
    StoreRepeated(quads, to, std::make_index_sequence<kQuadElements>());
  }
  template <std::size_t... kElement>
  static void StoreRepeated(const Floats& quads, float* to, std::index_sequence<kElement...>) {
    (Store(V::template RepeatElement<kElement>(quads), to + kElement * kGroupLanes), ...);
  }

  // B: lines of eight columns become columns of lines, by three times laying the first and the second half of the
  // vectors into each other.

  template <MatrixType type>
  struct ColumnOrder {
    static constexpr unsigned kElements = kChunkBytes * 8 / BitsOf(type);
    // The others' products can leave the range of f32.
    static constexpr bool kExact = type != MatrixType::kBF16 && type != MatrixType::kTF32;
    // Halves of two chunks are converted together, so their lines lie side by side.
    static constexpr bool kPaired = BitsOf(type) == 16 && V::kLanes == 2;
    static constexpr unsigned kChunkStep = kPaired ? 1 : kElements, kStep = kPaired ? 2 : 1;
  };
  static constexpr unsigned PlaceOfColumn(unsigned column) { return column / 2 + column % 2 * 4; }

  using Lines = typename V::Lines;
  template <unsigned kBytes>
  static void InterleaveAll(const Lines (&in)[kLinesOfChunk], Lines (&out)[kLinesOfChunk]) {
    for (unsigned i = 0; i < kLinesOfChunk / 2; ++i)
      V::template Interleave<kBytes>(in[i], in[i + kLinesOfChunk / 2], out[2 * i], out[2 * i + 1]);
  }

  template <MatrixType type>
  static void ReadColumns(const EightLines& lines, unsigned chunks, Columns& to) {
    constexpr unsigned kBytes = BitsOf(type) / 8;
    using Order = ColumnOrder<type>;
    for (unsigned chunk = 0; chunk < chunks; chunk += V::kLanes) {
      Lines in[kLinesOfChunk], x[kLinesOfChunk], y[kLinesOfChunk], out[kLinesOfChunk];
      const std::uint8_t* const here = lines.chunk[chunk];
      const std::uint8_t* const next = chunk + 1 < chunks ? lines.chunk[chunk + 1] : here;
      for (unsigned i = 0; i < kLinesOfChunk; ++i)
        in[PlaceOfColumn(i)] = V::LoadLines(here + i * kChunkBytes, next + i * kChunkBytes);
      InterleaveAll<kBytes>(in, x), InterleaveAll<kBytes>(x, y), InterleaveAll<kBytes>(y, out);
      for (unsigned i = 0; i < kLinesOfChunk; ++i) {
        // Each 16 bytes are elements one after the other, of a chunk of their own.
        alignas(64) std::uint8_t bytes[sizeof(Lines)];
        std::memcpy(bytes, &out[i], sizeof bytes);
        if constexpr (Order::kPaired) {
          for (unsigned n = 0; n < 2 * Order::kElements; n += kWidth)
            Store(Widen<type>(bytes + n * 2), to.line[2 * i] + n);
        } else {
          for (unsigned lane = 0; lane < V::kLanes; ++lane)
            WidenLane<type>(bytes + lane * kChunkBytes,
                            to.line[(chunk + lane) * Order::kElements] + i * Order::kElements);
        }
      }
    }
  }
  /// The elements of 16 bytes; they may be fewer than a vector's.
  template <MatrixType type>
  static void WidenLane(const std::uint8_t* from, float* to) {
    constexpr unsigned kElements = kChunkBytes * 8 / BitsOf(type);
    if constexpr (kElements < kWidth) {  // tf32 alone: not to be converted but for its low bits
      typedef std::uint32_t Four __attribute__((vector_size(kChunkBytes)));
      Four words;
      std::memcpy(&words, from, sizeof words);
      words &= 0xffffe000u;
      std::memcpy(to, &words, sizeof words);
    } else {
      for (unsigned n = 0; n < kElements; n += kWidth) Store(Widen<type>(from + n * BitsOf(type) / 8), to + n);
    }
  }
  static void Store(const Floats& floats, float* to) { std::memcpy(to, &floats, sizeof floats); }

  // Products.

  template <MatrixType type>
  static void MultiplyGroups(const RowProduct& product, const SpreadA& a) {
    using Order = ColumnOrder<type>;
    Columns b[kGroupsAtOnce];
    Sums sums[kGroupsAtOnce];
    Places places[kGroupsAtOnce];
    for (unsigned first = 0; first < product.groups; first += kGroupsAtOnce) {
      const unsigned count = std::min(kGroupsAtOnce, product.groups - first);
      for (unsigned i = 0; i < count; ++i) {
        ReadColumns<type>(product.b[first + i], product.chunks, b[i]);
        places[i] = PlacesOf(product, first + i, sums[i]);
      }
      if (count == kGroupsAtOnce) AddProducts<Order, kGroupsAtOnce>(a, b, product.chunks, places);
      else AddProducts<Order, 1>(a, b, product.chunks, places);
      for (unsigned i = 0; i < count; ++i) Finish(product, first + i, sums[i]);
    }
  }

  /// sums += a b, k ascending.
  template <typename Order, unsigned kGroups>
  static void AddProducts(const SpreadA& a, const Columns* b, unsigned chunks, const Places* places) {
    constexpr unsigned kParts = kHalfLanes / kWidth;  // vectors of a register
    for (unsigned first = 0; first < kAllSlices; first += kSlices) {
      Floats even[kGroups][kSlices], odd[kGroups][kSlices];
      for (unsigned g = 0; g < kGroups; ++g) {
        for (unsigned s = 0; s < kSlices; ++s) {
          const unsigned half = (first + s) / kParts, at = (first + s) % kParts * kWidth;
          std::memcpy(&even[g][s], places[g].from[half][0] + at, sizeof(Floats));
          std::memcpy(&odd[g][s], places[g].from[half][1] + at, sizeof(Floats));
        }
      }
      for (unsigned chunk = 0; chunk < chunks; ++chunk) {
        for (unsigned n = 0; n < Order::kElements; ++n) {
          const float* const rows = a.lanes[chunk * Order::kElements + n] + first * kWidth;
          Floats even_columns[kGroups], odd_columns[kGroups];
          for (unsigned g = 0; g < kGroups; ++g) {
            const float* const line = b[g].line[chunk * Order::kChunkStep + n * Order::kStep];
            even_columns[g] = V::RepeatFour(line);
            odd_columns[g] = V::RepeatFour(line + kQuadElements);
          }
          for (unsigned s = 0; s < kSlices; ++s) {
            Floats row;
            std::memcpy(&row, rows + s * kWidth, sizeof row);
            for (unsigned g = 0; g < kGroups; ++g) {
              even[g][s] = V::template MultiplyAdd<Order::kExact>(row, even_columns[g], even[g][s]);
              odd[g][s] = V::template MultiplyAdd<Order::kExact>(row, odd_columns[g], odd[g][s]);
            }
          }
        }
      }
      for (unsigned g = 0; g < kGroups; ++g) {
        for (unsigned s = 0; s < kSlices; ++s) {
          const unsigned half = (first + s) / kParts, at = (first + s) % kParts * kWidth;
          Store(V::Canonical(even[g][s]), places[g].to[half][0] + at);
          Store(V::Canonical(odd[g][s]), places[g].to[half][1] + at);
        }
      }
    }
  }
  // Accumulators: f32 where they are, others in `sums`.

  static Places PlacesOf(const RowProduct& product, unsigned group, Sums& sums) {
    Places places;
    for (unsigned half = 0; half < 2; ++half) {
      const bool counts = half == 0 || product.rows16;
      for (unsigned odd = 0; odd < 2; ++odd) {
        float* const here = sums.lanes[half][odd];
        places.from[half][odd] = kZeros.lanes[half][odd];
        places.to[half][odd] = counts && product.type_d == MatrixType::kF32
                                   ? Register<float>(product.d, group * product.step_d + half * 2 + odd)
                                   : here;
        if (!counts || !product.c || product.type_c == MatrixType::kS32) continue;
        places.from[half][odd] = product.type_c == MatrixType::kF32
                                     ? Register<float>(product.c, group * product.step_c + half * 2 + odd)
                                     : here;
      }
      if (counts && product.c && product.type_c == MatrixType::kF16)
        ReadPairs(Register<std::uint16_t>(product.c, group * product.step_c + half), sums.lanes[half]);
    }
    return places;
  }
  template <typename T>
  static T* Register(void* const* registers, unsigned n) {
    return static_cast<T*>(registers[n]);
  }
  /// f16: a word has an even and an odd column.
  static void ReadPairs(const std::uint16_t* from, float (&to)[2][kHalfLanes]) {
    alignas(64) float pairs[2 * kHalfLanes];
    for (unsigned n = 0; n < 2 * kHalfLanes; n += kWidth) Store(V::WidenHalves(from + n), pairs + n);
    for (unsigned lane = 0; lane < kHalfLanes; ++lane) to[0][lane] = pairs[2 * lane], to[1][lane] = pairs[2 * lane + 1];
  }
  static void WritePairs(const float (&from)[2][kHalfLanes], std::uint16_t* to) {
    alignas(64) float pairs[2 * kHalfLanes];
    for (unsigned lane = 0; lane < kHalfLanes; ++lane)
      pairs[2 * lane] = from[0][lane], pairs[2 * lane + 1] = from[1][lane];
    for (unsigned n = 0; n < 2 * kHalfLanes; n += kWidth) V::NarrowToHalves(pairs + n, to + n);
  }
  /// The sums of one product are exact as floats; they are added to what was there, wrapped or saturated.
  static void AddIntegers(const float* sums, const std::uint32_t* from, std::uint32_t* to, bool saturates) {
    for (unsigned lane = 0; lane < kHalfLanes; ++lane) {
      const auto sum = static_cast<std::int32_t>(sums[lane]);
      const std::uint32_t before = from ? from[lane] : 0;
      const std::uint32_t wrapped = before + static_cast<std::uint32_t>(sum);
      // Both have the sign that the result has not.
      const bool overflows = ((before ^ wrapped) & (static_cast<std::uint32_t>(sum) ^ wrapped)) >> 31;
      to[lane] = saturates && overflows ? (before >> 31) + 0x7fffffffu : wrapped;
    }
  }
  static void Finish(const RowProduct& product, unsigned group, const Sums& sums) {
    for (unsigned half = 0; half < (product.rows16 ? 2u : 1u); ++half) {
      if (product.type_d == MatrixType::kF16)
        WritePairs(sums.lanes[half], Register<std::uint16_t>(product.d, group * product.step_d + half));
      if (product.type_d != MatrixType::kS32) continue;
      for (unsigned odd = 0; odd < 2; ++odd) {
        const unsigned n = half * 2 + odd;
        AddIntegers(sums.lanes[half][odd],
                    product.c ? Register<std::uint32_t>(product.c, group * product.step_c + n) : nullptr,
                    Register<std::uint32_t>(product.d, group * product.step_d + n), product.saturates);
      }
    }
  }
};

}  // namespace gridloom::exec
