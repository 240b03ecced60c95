// Immediates of the matrix helpers, and the sizes of fragments: what the lifter writes and the runtime reads.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

enum class MatrixType : std::uint8_t {
  kF16,
  kBF16,
  kTF32,
  kF32,
  kF64,
  kS8,
  kU8,
  kS4,
  kU4,
  kB1,
  kS32,
  kE4M3,
  kE5M2,
  kE3M2,
  kE2M3,
  kE2M1
};

/// Bits of an element in a register or in memory; kinds of 4 and 6 bits sit in bytes (.kind::f8f6f4).
constexpr unsigned BitsOf(MatrixType type) {
  switch (type) {
    case MatrixType::kF64: return 64;
    case MatrixType::kTF32:
    case MatrixType::kF32:
    case MatrixType::kS32: return 32;
    case MatrixType::kF16:
    case MatrixType::kBF16: return 16;
    case MatrixType::kS4:
    case MatrixType::kU4: return 4;
    case MatrixType::kB1: return 1;
    default: return 8;
  }
}
constexpr bool IsIntegerMatrix(MatrixType type) {
  return type == MatrixType::kS8 || type == MatrixType::kU8 || type == MatrixType::kS4 || type == MatrixType::kU4 ||
         type == MatrixType::kB1;
}

enum class MatrixRounding : std::uint8_t { kNearest, kZero, kDown, kUp };

/// imm of kMma: D = A B + C. in: registers of A, B, C, [metadata]; out: registers of D. Registers are i32, of f64
/// matrices i64. A sparse A has half of its elements, and k counts all.
struct MmaImm {
  std::uint8_t m = 0, n = 0;
  std::uint16_t k = 0;
  std::uint8_t types = 0;         ///< a | b << 4
  std::uint8_t accumulators = 0;  ///< c | d << 4
  MatrixRounding rounding = MatrixRounding::kNearest;
  std::uint8_t flags = 0;

  static constexpr std::uint8_t kSaturate = 1, kAndPopc = 2, kColumnA = 4, kRowB = 8, kSparse = 16;
  /// kSparse: which threads of a quad give the metadata (PTX ISA, 9.7.14.6.1), in two bits of `flags`.
  static constexpr unsigned kSelectorShift = 5;
  constexpr MatrixType a() const { return static_cast<MatrixType>(types & 15); }
  constexpr MatrixType b() const { return static_cast<MatrixType>(types >> 4); }
  constexpr MatrixType c() const { return static_cast<MatrixType>(accumulators & 15); }
  constexpr MatrixType d() const { return static_cast<MatrixType>(accumulators >> 4); }
  constexpr bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  constexpr unsigned selector() const { return flags >> kSelectorShift & 3; }
  /// mma.m8n8k4 of halves is four products at once, one per pair of quads, with fragments of its own.
  constexpr bool is_quad_pair() const { return m == 8 && n == 8 && k == 4 && a() == MatrixType::kF16; }
};

enum class MatrixRole : std::uint8_t { kA, kB, kAccumulator };

/// Registers per lane that hold `rows` x `columns` elements as A (rows by k) or B (columns of B by k) or accumulator: a
/// register of all lanes is a block of 8 rows, each 4 lanes wide.
constexpr unsigned FragmentRegisters(MatrixRole role, MatrixType type, unsigned rows, unsigned columns) {
  const unsigned bits = rows * columns * BitsOf(type) / 32;
  if (role == MatrixRole::kAccumulator) return type == MatrixType::kF16 ? rows * columns / 64 : rows * columns / 32;
  return bits / (type == MatrixType::kF64 ? 64 : 32);
}

/// Registers of each operand of a product.
constexpr unsigned RegistersOfA(const MmaImm& imm) {
  return imm.is_quad_pair()
             ? 2
             : FragmentRegisters(MatrixRole::kA, imm.a(), imm.m, imm.k) / (imm.has(MmaImm::kSparse) ? 2 : 1);
}
constexpr unsigned RegistersOfB(const MmaImm& imm) {
  return imm.is_quad_pair() ? 2 : FragmentRegisters(MatrixRole::kB, imm.b(), imm.n, imm.k);
}
constexpr unsigned AccumulatorRegisters(const MmaImm& imm, MatrixType type) {
  if (imm.is_quad_pair()) return type == MatrixType::kF16 ? 4 : 8;
  return FragmentRegisters(MatrixRole::kAccumulator, type, imm.m, imm.n);
}

/// Threads of each quad that hold the metadata of a sparse product: 1, 2 or 4 (PTX ISA, 9.7.14.6.1). A row of A has 4
/// bits for four elements (two of tf32, eight of 4 bits), 16 or 32 of them in a thread.
constexpr unsigned MetadataThreads(const MmaImm& imm) {
  const unsigned elements_of_4_bits = BitsOf(imm.a()) == 32 ? 2 : BitsOf(imm.a()) == 4 ? 8 : 4;
  return imm.m * (imm.k / elements_of_4_bits) * 4 / 32 / 8;
}

/// imm of kScaledMma: D = (A scale_A) (B scale_B) + C (PTX ISA 9.4, 9.7.16.3), m16n8k32 of bytes, m16n8k64 of 4 bits.
/// in: 4 registers of A, 2 of B, 4 of C, scales of A, selector, scales of B, selector; out: 4 registers of D. A
/// selector has the byte in its lower half and the thread in its upper one.
struct ScaledMmaImm {
  MatrixType a = MatrixType::kE2M1, b = MatrixType::kE2M1;
  bool four_bits = false;      ///< elements lie two to a byte
  bool unsigned_e4m3 = false;  ///< scales are ue4m3, else ue8m0
  std::uint8_t scales = 1;     ///< of a row of A and a column of B: 1, 2 or 4
  std::uint8_t unused[3] = {};
  constexpr unsigned k() const { return four_bits ? 64 : 32; }
};
inline constexpr unsigned kScaledMmaOutputs = 4, kScaledMmaInputs = 14;

/// imm of kGroupMma (wgmma.mma_async): D = A B {+ D} of a warp group, 64 rows, of which each warp has 16. A row of A
/// and a column of B have kGroupDepthBytes of any type. in and out: registers of D; in: 4 registers of A or an i64
/// descriptor, i64 descriptor of B, i32 whether D counts as an accumulator.
inline constexpr unsigned kGroupDepthBytes = 32, kGroupRows = 16, kMostGroupColumns = 256;
struct GroupMmaImm {
  std::uint8_t columns8 = 1;  ///< n / 8
  std::uint8_t types = 0;     ///< a | b << 4
  MatrixType accumulator = MatrixType::kF32;
  std::uint8_t flags = 0;
  std::uint8_t unused[4] = {};

  /// kColumnA, kRowB: not along k, which only 16-bit types may be in memory.
  static constexpr std::uint8_t kSaturate = 1, kRegistersA = 2, kNegateA = 4, kNegateB = 8, kColumnA = 16, kRowB = 32;
  constexpr MatrixType a() const { return static_cast<MatrixType>(types & 15); }
  constexpr MatrixType b() const { return static_cast<MatrixType>(types >> 4); }
  constexpr bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  constexpr unsigned columns() const { return columns8 * 8u; }
  constexpr unsigned accumulator_registers() const { return columns() / (accumulator == MatrixType::kF16 ? 4 : 2); }
};

/// A matrix in shared memory as wgmma takes it (PTX ISA, 9.7.15.5.1.2, "Matrix Descriptor Format").
struct MatrixDescriptor {
  std::uint64_t bits = 0;

  constexpr std::uint32_t address() const { return static_cast<std::uint32_t>(bits & 0x3fff) << 4; }
  constexpr std::uint32_t leading_bytes() const { return static_cast<std::uint32_t>(bits >> 16 & 0x3fff) << 4; }
  constexpr std::uint32_t stride_bytes() const { return static_cast<std::uint32_t>(bits >> 32 & 0x3fff) << 4; }
  constexpr std::uint32_t base_offset() const { return static_cast<std::uint32_t>(bits >> 49 & 7); }
  /// Chunks of 16 bytes that change places: 1 (none), 8, 4 or 2.
  constexpr std::uint32_t swizzle_chunks() const {
    constexpr std::uint32_t kChunks[] = {1, 8, 4, 2};
    return kChunks[bits >> 62];
  }
};

/// imm of kMatrixLoad and kMatrixStore (wmma.load, wmma.store). in: i64 host address, i32 distance of two rows or
/// columns in elements, [registers]; out of kMatrixLoad: registers.
struct MatrixMemoryImm {
  MatrixRole role = MatrixRole::kA;
  MatrixType type = MatrixType::kF16;
  std::uint8_t rows = 0, columns = 0;  ///< of A: m, k; of B: k, n; of an accumulator: m, n
  bool column_major = false;
  Space space = Space::kGeneric;
  std::uint8_t unused[2] = {};
};

/// What a row's elements are unpacked to bytes from: b6x16_p32, b4x16_p64, s4.
enum class RowFormat : std::uint8_t { kPlain, kSixBits, kFourBits, kSignedFourBits };

/// Bytes of a row in memory that are read. Rows of s4 lie densely; the others of packed elements are padded.
constexpr unsigned RowBytesOf(RowFormat format) { return format == RowFormat::kSignedFourBits ? 8 : 16; }

/// imm of kLoadRows and kStoreRows (ldmatrix, stmatrix). in: i64 host address of a row, [registers]; out: registers.
struct MatrixRowsImm {
  std::uint8_t matrices = 1;
  bool transposed = false;
  /// 16 x 16 matrices to load, 16 x 8 ones to store, of bytes, transposed; else 8 rows.
  bool bytes = false;
  RowFormat format = RowFormat::kPlain;
  Space space = Space::kShared;
  std::uint8_t unused[3] = {};
};

}  // namespace gridloom::exec
