// ldmatrix, stmatrix, wmma.load and wmma.store: matrices between memory and fragments. Fragment registers are laid out
// as sim/exec/tensor/multiply.h says: as they lie in memory, rows of 16 bytes.
#include <cstring>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kRowBytes = 16, kMostRegisters = 8;

struct alignas(64) RegisterBlock {
  std::uint8_t byte[kWarpSize * 8];
};

// ---------------------------------------------------------------------------------------------------------------------
// ldmatrix, stmatrix: rows whose addresses the lanes give
// ---------------------------------------------------------------------------------------------------------------------

/// Six- or four-bit elements to bytes, where .kind::f8f6f4 wants them: in the low six, or the middle four bits. Signed
/// ones are extended.
void Unpack(RowFormat format, std::uint8_t (&row)[kRowBytes]) {
  if (format == RowFormat::kPlain) return;
  const unsigned bits = format == RowFormat::kSixBits ? 6 : 4, shift = format == RowFormat::kFourBits ? 2 : 0;
  std::uint8_t packed[kRowBytes];
  std::memcpy(packed, row, sizeof packed);
  for (unsigned i = 0; i < kRowBytes; ++i) {
    const unsigned at = i * bits;
    const unsigned pair = packed[at / 8] | (at / 8 + 1 < kRowBytes ? packed[at / 8 + 1] << 8 : 0);
    row[i] = static_cast<std::uint8_t>((pair >> at % 8 & ((1u << bits) - 1)) << shift);
    if (format == RowFormat::kSignedFourBits && (row[i] & 8) != 0) row[i] |= 0xf0;
  }
}

/// Rows that lanes of the mask point to; others are zero.
void ReadRows(Warp& warp, const MatrixRowsImm& imm, std::uint32_t mask, std::uint32_t line,
              const std::uint64_t* addresses, unsigned count, std::uint8_t (*rows)[kRowBytes]) {
  LaneAccess access(warp, line);
  OrderLanes(warp);
  std::memset(rows, 0, std::size_t{count} * kRowBytes);
  for (unsigned lane = 0; lane < count; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const std::uint8_t* const from =
        CheckedAddress(warp, lane, line, imm.space, addresses[lane], RowBytesOf(imm.format), AccessKind::kRead);
    access.At(lane);
    std::memcpy(rows[lane], from, RowBytesOf(imm.format));
    Unpack(imm.format, rows[lane]);
  }
  OrderLanes(warp);
  EndOfAccesses(warp, mask);
}

/// Byte matrices come transposed: 16 rows of 16, two registers, row g and g + 8 of the transposed one.
void TransposeBytes(const std::uint8_t (*rows)[kRowBytes], RegisterBlock* to) {
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 16; ++j) to[i / 8].byte[i % 8 * 16 + j] = rows[j][i];
  }
}

void TransposeHalves(const std::uint8_t (*rows)[kRowBytes], RegisterBlock& to) {
  for (unsigned i = 0; i < 8; ++i) {
    for (unsigned j = 0; j < 8; ++j) std::memcpy(to.byte + i * 16 + j * 2, rows[j] + i * 2, 2);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// wmma.load, wmma.store: a matrix at one address with a distance between its rows or columns
// ---------------------------------------------------------------------------------------------------------------------

/// The matrix in memory. "Lines" are what lies together: rows of a row-major matrix, columns of a column-major one.
struct MatrixInMemory {
  const MatrixMemoryImm& imm;
  std::uint64_t base;
  std::uint64_t stride;  ///< elements
  bool write;

  unsigned lines() const { return imm.column_major ? imm.columns : imm.rows; }
  unsigned line_bytes() const { return (imm.column_major ? imm.rows : imm.columns) * BitsOf(imm.type) / 8; }
  std::uint8_t* line(unsigned i) const {
    return reinterpret_cast<std::uint8_t*>(base + i * stride * BitsOf(imm.type) / 8);
  }
};

/// Every line lies in memory the kernel may touch, and elements are aligned.
void CheckLines(Warp& warp, std::uint32_t lane, std::uint32_t line, const MatrixInMemory& matrix) {
  const unsigned element = BitsOf(matrix.imm.type) < 8 ? 4 : BitsOf(matrix.imm.type) / 8;
  const AccessKind kind = matrix.write ? AccessKind::kWrite : AccessKind::kRead;
  const bool every_word = ServicesOf(warp).memcheck != nullptr;
  CheckedAddress(warp, lane, line, matrix.imm.space, matrix.base, element, kind);
  for (unsigned i = 0; i < matrix.lines(); ++i) {
    const auto first = reinterpret_cast<std::uint64_t>(matrix.line(i));
    for (unsigned at = 0; every_word && at < matrix.line_bytes(); at += 4)
      CheckedAddress(warp, lane, line, matrix.imm.space, first + at, 4, kind);
    if (every_word) continue;
    CheckedAddress(warp, lane, line, matrix.imm.space, first, 1, kind);
    CheckedAddress(warp, lane, line, matrix.imm.space, first + matrix.line_bytes() - 1, 1, kind);
  }
}

/// Where element (row, column) of the matrix lies in the fragment: register and byte in it. Not for elements under a
/// byte.
struct FragmentPlace {
  unsigned reg, byte;
};
FragmentPlace PlaceInFragment(const MatrixMemoryImm& imm, unsigned row, unsigned column) {
  const unsigned bytes = BitsOf(imm.type) / 8;
  if (imm.role == MatrixRole::kAccumulator) {
    const unsigned block = column / 8 * (imm.rows / 8u) + row / 8;
    if (imm.type == MatrixType::kF16) return {block, row % 8 * 16 + column % 8 * 2};
    return {block * 2 + column % 2, (row % 8 * 4 + column % 8 / 2) * bytes};
  }
  const unsigned across = imm.role == MatrixRole::kA ? row : column, along = imm.role == MatrixRole::kA ? column : row;
  const unsigned step = imm.type == MatrixType::kF64 ? 4 : kRowBytes / bytes;
  const unsigned depth_blocks = (imm.role == MatrixRole::kA ? imm.columns : imm.rows) / step,
                 row_blocks = (imm.role == MatrixRole::kA ? imm.rows : imm.columns) / 8u;
  const unsigned reg =
      imm.role == MatrixRole::kA ? along / step * row_blocks + across / 8 : across / 8 * depth_blocks + along / step;
  return {reg, across % 8 * step * bytes + along % step * bytes};
}

/// Lines of a factor that run along k are rows of its blocks: whole pieces of 16 bytes, the only case for elements
/// under a byte.
bool LinesAreRows(const MatrixMemoryImm& imm) {
  if (imm.role == MatrixRole::kAccumulator || imm.type == MatrixType::kF64) return false;
  return imm.column_major == (imm.role == MatrixRole::kB);
}

/// Calls copy(bytes in memory, bytes in a fragment register, how many) for everything there is.
template <typename Copy>
void ForEachPiece(const MatrixInMemory& matrix, RegisterBlock* registers, Copy&& copy) {
  const MatrixMemoryImm& imm = matrix.imm;
  if (LinesAreRows(imm)) {
    const unsigned blocks = matrix.lines() / 8, pieces = matrix.line_bytes() / kRowBytes;
    for (unsigned i = 0; i < matrix.lines(); ++i) {
      for (unsigned piece = 0; piece < pieces; ++piece) {
        const unsigned reg = imm.role == MatrixRole::kA ? piece * blocks + i / 8 : i / 8 * pieces + piece;
        copy(matrix.line(i) + piece * kRowBytes, registers[reg].byte + i % 8 * kRowBytes, kRowBytes);
      }
    }
    return;
  }
  const unsigned bytes = BitsOf(imm.type) / 8;
  for (unsigned i = 0; i < matrix.lines(); ++i) {
    for (unsigned j = 0; j < matrix.line_bytes() / bytes; ++j) {
      const FragmentPlace place = imm.column_major ? PlaceInFragment(imm, j, i) : PlaceInFragment(imm, i, j);
      copy(matrix.line(i) + j * bytes, registers[place.reg].byte + place.byte, bytes);
    }
  }
}

unsigned RegistersOf(const MatrixMemoryImm& imm) {
  return FragmentRegisters(imm.role, imm.type, imm.rows, imm.columns);
}

MatrixInMemory MatrixAt(Warp& warp, const MatrixMemoryImm& imm, std::uint32_t mask, std::uint32_t line,
                        const void* address, const void* stride, bool write) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));  // all lanes give the same
  const MatrixInMemory matrix{imm, static_cast<const std::uint64_t*>(address)[lane],
                              static_cast<const std::uint32_t*>(stride)[lane], write};
  OrderLanes(warp);
  CheckLines(warp, lane, line, matrix);
  OrderLanes(warp);
  EndOfAccesses(warp, mask);
  return matrix;
}

}  // namespace

void Helper_kLoadRows(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  const auto rows_imm = UnpackImm<MatrixRowsImm>(imm);
  const unsigned registers = rows_imm.matrices * (rows_imm.bytes ? 2u : 1u);
  const unsigned rows_each = rows_imm.bytes ? 16 : 8;
  std::uint8_t rows[kWarpSize][kRowBytes];
  ReadRows(WarpOf(ctx), rows_imm, mask, line, static_cast<const std::uint64_t*>(args[registers]),
           rows_imm.matrices * rows_each, rows);
  for (unsigned matrix = 0; matrix < rows_imm.matrices; ++matrix) {
    const std::uint8_t(*const from)[kRowBytes] = rows + matrix * rows_each;
    RegisterBlock blocks[2];
    if (rows_imm.bytes) TransposeBytes(from, blocks);
    else if (rows_imm.transposed) TransposeHalves(from, blocks[0]);
    else std::memcpy(blocks[0].byte, from, 8 * kRowBytes);
    for (unsigned i = 0; i < (rows_imm.bytes ? 2u : 1u); ++i) {
      auto* const out = static_cast<std::uint8_t*>(args[rows_imm.bytes ? matrix * 2 + i : matrix]);
      ForEachLane(mask, [&](std::uint32_t lane) { std::memcpy(out + lane * 4, blocks[i].byte + lane * 4, 4); });
    }
  }
}

void Helper_kStoreRows(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const auto rows_imm = UnpackImm<MatrixRowsImm>(imm);
  const auto* const addresses = static_cast<const std::uint64_t*>(args[0]);
  LaneAccess access(warp, line);
  OrderLanes(warp);
  for (unsigned matrix = 0; matrix < rows_imm.matrices; ++matrix) {
    const auto* const from = static_cast<const std::uint8_t*>(args[1 + matrix]);
    for (unsigned row = 0; row < 8; ++row) {
      const std::uint32_t lane = matrix * 8 + row;
      if ((mask >> lane & 1) == 0) continue;
      std::uint8_t bytes[kRowBytes];
      if (rows_imm.bytes) {
        // A lane's four bytes are those of an accumulator: rows g and g + 8, columns 2t and 2t + 1; columns become
        // rows.
        for (unsigned i = 0; i < kRowBytes; ++i) bytes[i] = from[(i % 8 * 4 + row / 2) * 4 + i / 8 * 2 + row % 2];
      } else if (rows_imm.transposed) {
        for (unsigned i = 0; i < 8; ++i) std::memcpy(bytes + i * 2, from + i * 16 + row * 2, 2);
      } else {
        std::memcpy(bytes, from + row * kRowBytes, kRowBytes);
      }
      std::uint8_t* const to =
          CheckedAddress(warp, lane, line, rows_imm.space, addresses[lane], kRowBytes, AccessKind::kWrite);
      access.At(lane);
      std::memcpy(to, bytes, kRowBytes);
    }
  }
  OrderLanes(warp);
  EndOfAccesses(warp, mask);
}

void Helper_kMatrixLoad(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  if (mask == 0) return;
  Warp& warp = WarpOf(ctx);
  const auto matrix_imm = UnpackImm<MatrixMemoryImm>(imm);
  const unsigned count = RegistersOf(matrix_imm);
  const MatrixInMemory matrix = MatrixAt(warp, matrix_imm, mask, line, args[count], args[count + 1], false);
  RegisterBlock registers[kMostRegisters];
  {
    LaneAccess access(warp, line);
    access.At(static_cast<std::uint32_t>(std::countr_zero(mask)));
    ForEachPiece(matrix, registers, [](const std::uint8_t* memory, std::uint8_t* fragment, unsigned bytes) {
      std::memcpy(fragment, memory, bytes);
    });
  }
  const std::size_t bytes = matrix_imm.type == MatrixType::kF64 ? 8 : 4;
  for (unsigned i = 0; i < count; ++i) {
    auto* const out = static_cast<std::uint8_t*>(args[i]);
    ForEachLane(mask,
                [&](std::uint32_t lane) { std::memcpy(out + lane * bytes, registers[i].byte + lane * bytes, bytes); });
  }
}

void Helper_kMatrixStore(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  if (mask == 0) return;
  Warp& warp = WarpOf(ctx);
  const auto matrix_imm = UnpackImm<MatrixMemoryImm>(imm);
  const MatrixInMemory matrix = MatrixAt(warp, matrix_imm, mask, line, args[0], args[1], true);
  RegisterBlock registers[kMostRegisters];
  const std::size_t bytes = matrix_imm.type == MatrixType::kF64 ? 8 : 4;
  for (unsigned i = 0; i < RegistersOf(matrix_imm); ++i) std::memcpy(registers[i].byte, args[2 + i], kWarpSize * bytes);
  LaneAccess access(warp, line);
  access.At(static_cast<std::uint32_t>(std::countr_zero(mask)));
  ForEachPiece(matrix, registers, [](std::uint8_t* memory, const std::uint8_t* fragment, unsigned n) {
    std::memcpy(memory, fragment, n);
  });
}

}  // namespace gridloom::exec
