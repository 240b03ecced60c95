// mma, wmma, ldmatrix, stmatrix and movmatrix (PTX ISA, 9.7.14) as calls of runtime helpers. All of them need the whole
// warp: the ISA lets a program reach them with all lanes or not at all. Block-scaled products of a sparse A
// are refused.
#include <algorithm>
#include <charconv>
#include <optional>

#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"
#include "sim/exec/compiler/matrix_forms.h"
#include "sim/exec/contract/tensor_immediates.h"

namespace gridloom::exec {

std::optional<MatrixShape> ShapeOf(const Instruction& inst) {
  for (const ptx::Modifier& modifier : inst.modifiers) {
    const char* at = modifier.text.data();
    const char* const end = at + modifier.text.size();
    MatrixShape shape;
    const auto take = [&](char letter, std::uint16_t& value) {
      if (at == end || *at != letter) return false;
      const auto [next, error] = std::from_chars(at + 1, end, value);
      at = next;
      return error == std::errc();
    };
    if (take('m', shape.m) && take('n', shape.n) && take('k', shape.k) && at == end) return shape;
  }
  return std::nullopt;
}

std::optional<MatrixType> MatrixTypeOf(ScalarType type) {
  switch (type) {
    case ScalarType::kF16: return MatrixType::kF16;
    case ScalarType::kBF16: return MatrixType::kBF16;
    case ScalarType::kTF32: return MatrixType::kTF32;
    case ScalarType::kF32: return MatrixType::kF32;
    case ScalarType::kF64: return MatrixType::kF64;
    case ScalarType::kS8: return MatrixType::kS8;
    case ScalarType::kU8: return MatrixType::kU8;
    case ScalarType::kS4: return MatrixType::kS4;
    case ScalarType::kU4: return MatrixType::kU4;
    case ScalarType::kB1: return MatrixType::kB1;
    case ScalarType::kS32: return MatrixType::kS32;
    case ScalarType::kE4M3: return MatrixType::kE4M3;
    case ScalarType::kE5M2: return MatrixType::kE5M2;
    case ScalarType::kE3M2: return MatrixType::kE3M2;
    case ScalarType::kE2M3: return MatrixType::kE2M3;
    case ScalarType::kE2M1: return MatrixType::kE2M1;
    default: return std::nullopt;
  }
}

namespace {

enum class MatrixInstruction : std::uint8_t { kMma, kSparse, kWmma };

/// Which shapes go with a factor's type: those of mma, mma.sp and wmma.
struct ShapeRow {
  std::initializer_list<MatrixType> types;
  std::initializer_list<MatrixShape> mma, sparse, wmma;
};

bool IsKnownShape(MatrixType type, const MatrixShape& shape, MatrixInstruction instruction) {
  static const ShapeRow kRows[] = {
      {{MatrixType::kF16},
       {{8, 8, 4}, {16, 8, 8}, {16, 8, 16}},
       {{16, 8, 16}, {16, 8, 32}},
       {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}},
      {{MatrixType::kBF16},
       {{16, 8, 8}, {16, 8, 16}},
       {{16, 8, 16}, {16, 8, 32}},
       {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}},
      {{MatrixType::kTF32}, {{16, 8, 4}, {16, 8, 8}}, {{16, 8, 8}, {16, 8, 16}}, {{16, 16, 8}}},
      {{MatrixType::kF64}, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}, {}, {{8, 8, 4}}},
      {{MatrixType::kS8, MatrixType::kU8},
       {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}},
       {{16, 8, 32}, {16, 8, 64}},
       {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}}},
      {{MatrixType::kS4, MatrixType::kU4},
       {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}},
       {{16, 8, 64}, {16, 8, 128}},
       {{8, 8, 32}}},
      {{MatrixType::kB1}, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}, {}, {{8, 8, 128}}},
      {{MatrixType::kE4M3, MatrixType::kE5M2, MatrixType::kE3M2, MatrixType::kE2M3, MatrixType::kE2M1},
       {{16, 8, 16}, {16, 8, 32}},
       {{16, 8, 64}},
       {}}};
  for (const ShapeRow& row : kRows) {
    if (std::find(row.types.begin(), row.types.end(), type) == row.types.end()) continue;
    const auto& shapes = instruction == MatrixInstruction::kWmma     ? row.wmma
                         : instruction == MatrixInstruction::kSparse ? row.sparse
                                                                     : row.mma;
    return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
  }
  return false;
}

/// Whether some product has such an accumulator.
bool IsWmmaAccumulator(MatrixType type, const MatrixShape& shape) {
  using enum MatrixType;
  const auto has = [&](std::initializer_list<MatrixType> factors) {
    return std::ranges::any_of(factors,
                               [&](MatrixType one) { return IsKnownShape(one, shape, MatrixInstruction::kWmma); });
  };
  switch (type) {
    case kF16: return has({kF16});
    case kF32: return has({kF16, kBF16, kTF32});
    case kF64: return has({kF64});
    case kS32: return has({kS8, kS4, kB1});
    default: return false;
  }
}

bool IsWmmaMatrix(MatrixRole role, MatrixType type, const MatrixShape& shape) {
  return role == MatrixRole::kAccumulator ? IsWmmaAccumulator(type, shape)
                                          : IsKnownShape(type, shape, MatrixInstruction::kWmma);
}

bool IsAccumulator(MatrixType factor, MatrixType accumulator) {
  if (factor == MatrixType::kF64) return accumulator == MatrixType::kF64;
  if (IsIntegerMatrix(factor)) return accumulator == MatrixType::kS32;
  if (accumulator == MatrixType::kF16) return factor != MatrixType::kBF16 && factor != MatrixType::kTF32;
  return accumulator == MatrixType::kF32;
}

MatrixRounding MatrixRoundingOf(const Instruction& inst) {
  if (inst.Has(Mod::kRz)) return MatrixRounding::kZero;
  if (inst.Has(Mod::kRm)) return MatrixRounding::kDown;
  if (inst.Has(Mod::kRp)) return MatrixRounding::kUp;
  return MatrixRounding::kNearest;
}

std::uint8_t CountOf(const Instruction& inst) { return inst.Has(Mod::kX4) ? 4 : inst.Has(Mod::kX2) ? 2 : 1; }

/// The layouts of A and B: the first and the second of .row and .col.
std::uint8_t LayoutFlags(const Instruction& inst) {
  std::uint8_t flags = 0;
  unsigned seen = 0;
  for (const ptx::Modifier& modifier : inst.modifiers) {
    if (modifier.mod != Mod::kRow && modifier.mod != Mod::kCol) continue;
    if (seen == 0 && modifier.mod == Mod::kCol) flags |= MmaImm::kColumnA;
    if (seen == 1 && modifier.mod == Mod::kRow) flags |= MmaImm::kRowB;
    ++seen;
  }
  return flags;
}

MmaImm MmaImmOf(Lifter& l, const Instruction& inst) {
  const bool wmma = inst.opcode == Opcode::kWmma, sparse = inst.Has(Mod::kSp) || HasText(inst, "sp::ordered_metadata");
  const MatrixInstruction instruction = wmma     ? MatrixInstruction::kWmma
                                        : sparse ? MatrixInstruction::kSparse
                                                 : MatrixInstruction::kMma;
  const std::optional<MatrixShape> shape = ShapeOf(inst);
  if (!shape) l.RefuseInstruction();
  // d, a, b, c; wmma with halves names only d and c.
  const bool halves = inst.type(2) == ScalarType::kNone;
  const auto type = [&](std::size_t n, std::size_t of_halves) {
    const std::optional<MatrixType> found =
        halves ? (of_halves == 2 ? MatrixType::kF16 : MatrixTypeOf(inst.type(of_halves))) : MatrixTypeOf(inst.type(n));
    if (!found) l.RefuseInstruction();
    return *found;
  };
  const MatrixType d = type(0, 0), a = type(1, 2), b = type(2, 2), c = type(3, 1);
  // Factors of two types: 8-bit floats, and signed beside unsigned integers, but for wmma. Accumulators of two types:
  // those of wmma and of quads.
  const bool mixes = !wmma && (BitsOf(a) == 8 || IsIntegerMatrix(a));
  const bool matching = BitsOf(a) == BitsOf(b) && IsIntegerMatrix(a) == IsIntegerMatrix(b) && (mixes || a == b) &&
                        (c == d || wmma || shape->k == 4);
  if (!matching || !IsKnownShape(a, *shape, instruction) || !IsAccumulator(a, c) || !IsAccumulator(a, d))
    l.RefuseInstruction();
  MmaImm imm{.m = static_cast<std::uint8_t>(shape->m), .n = static_cast<std::uint8_t>(shape->n), .k = shape->k};
  imm.types = static_cast<std::uint8_t>(static_cast<unsigned>(a) | static_cast<unsigned>(b) << 4);
  imm.accumulators = static_cast<std::uint8_t>(static_cast<unsigned>(c) | static_cast<unsigned>(d) << 4);
  imm.rounding = MatrixRoundingOf(inst);
  // wmma's fragments do not depend on the layout their matrix was loaded with.
  imm.flags = wmma ? 0 : LayoutFlags(inst);
  if (!wmma && !imm.is_quad_pair() && imm.flags != 0) l.RefuseInstruction();
  if (inst.Has(Mod::kSatfinite)) imm.flags |= MmaImm::kSaturate;
  if (inst.Has(Mod::kAnd)) imm.flags |= MmaImm::kAndPopc;
  if (!sparse) return imm;
  // d, a, b, c, metadata, selector
  if (l.OpCount() != 6 || l.Op(5).kind != OperandKind::kInt)
    l.RefuseInstruction("needs metadata and a constant selector");
  imm.flags |= MmaImm::kSparse;
  if (l.Op(5).int_literal.value >= 4 / MetadataThreads(imm))
    l.RefuseInstruction("has a selector beyond the threads of a quad");
  imm.flags |= static_cast<std::uint8_t>(l.Op(5).int_literal.value << MmaImm::kSelectorShift);
  return imm;
}

}  // namespace

/// Appends the `count` different registers of a fragment; the instruction has each `repeats` times.
void ReadFragment(Lifter& l, const Operand& operand, unsigned count, bool wide, llvm::SmallVectorImpl<Value*>& out,
                  unsigned repeats) {
  const std::vector<Operand> registers = l.Components(operand);
  if (registers.size() != std::size_t{count} * repeats) l.RefuseInstruction("has a fragment of another size");
  for (unsigned i = 0; i < count; ++i)
    out.push_back(l.AsInt(l.Read(registers[i], wide ? ScalarType::kB64 : ScalarType::kB32)));
}

void WriteFragment(Lifter& l, const Operand& operand, Value* result, unsigned count, bool wide, unsigned repeats) {
  const std::vector<Operand> registers = l.Components(operand);
  if (registers.size() != std::size_t{count} * repeats) l.RefuseInstruction("has a fragment of another size");
  for (unsigned i = 0; i < registers.size(); ++i) {
    l.Write(registers[i], count == 1 ? result : l.b.CreateExtractValue(result, i % count),
            wide ? ScalarType::kB64 : ScalarType::kB32);
  }
}

namespace {

/// {byte, thread} as one word. `scales`: of a line; `threads`: of a quad, one of which or a pair of which is selected.
Value* ReadSelector(Lifter& l, const Operand& operand, unsigned scales, unsigned threads) {
  const std::vector<Operand> parts = l.Components(operand);
  if (parts.size() != 2) l.RefuseInstruction("has a selector without a byte and a thread");
  const auto is_beyond = [&](std::size_t i, unsigned end, unsigned step) {
    const std::uint64_t value = parts[i].kind == OperandKind::kInt ? parts[i].int_literal.value : 0;
    return value >= end || value % step != 0;
  };
  if (is_beyond(0, 4, scales) || is_beyond(1, threads, 1)) l.RefuseInstruction("has a selector that selects nothing");
  const auto part = [&](std::size_t i) {
    return l.Resize(l.AsInt(l.Read(parts[i], ScalarType::kB16)), l.b.getInt32Ty(), false);
  };
  Value* const byte = part(0);
  return l.b.CreateOr(byte, l.b.CreateShl(part(1), 16));
}

// mma.sync.aligned.shape.row.col.kind.block_scale{.scale_vec_size}.f32.atype.btype.f32.stype d, a, b, c, scale-a,
// {byte, thread}, scale-b, {byte, thread}
void LiftScaledMma(Lifter& l, const Instruction& inst) {
  const std::optional<MatrixShape> shape = ShapeOf(inst);
  const auto type = [&](std::size_t n) { return MatrixTypeOf(inst.type(n)); };
  const bool bytes = HasText(inst, "kind::mxf8f6f4"), of_e4m3 = inst.type(4) == ScalarType::kUE4M3;
  const auto is_small = [](std::optional<MatrixType> small) { return small && *small >= MatrixType::kE4M3; };
  ScaledMmaImm imm{.four_bits = !bytes, .unsigned_e4m3 = of_e4m3};
  imm.scales = bytes ? 1 : HasText(inst, "scale_vec::4X") ? 4 : 2;
  const MatrixShape wanted{16, 8, static_cast<std::uint16_t>(imm.k())};
  const bool fits = shape == wanted && type(0) == MatrixType::kF32 && type(3) == MatrixType::kF32 &&
                    is_small(type(1)) && is_small(type(2)) &&
                    (bytes || (type(1) == type(2) && type(1) == MatrixType::kE2M1)) &&
                    (of_e4m3 ? imm.scales == 4 : inst.type(4) == ScalarType::kUE8M0);
  if (!fits || inst.Has(Mod::kSp) || HasText(inst, "sp::ordered_metadata") || l.OpCount() != 8) l.RefuseInstruction();
  imm.a = *type(1), imm.b = *type(2);
  llvm::SmallVector<Value*, kScaledMmaInputs> inputs;
  ReadFragment(l, l.Op(1), 4, false, inputs);
  ReadFragment(l, l.Op(2), 2, false, inputs);
  ReadFragment(l, l.Op(3), 4, false, inputs);
  for (const auto& [scale, threads] : {std::pair(std::size_t{4}, 2u), std::pair(std::size_t{6}, 4u)}) {
    ReadFragment(l, l.Op(scale), 1, false, inputs);
    inputs.push_back(ReadSelector(l, l.Op(scale + 1), imm.scales, threads));
  }
  const llvm::SmallVector<llvm::Type*, 8> outputs(kScaledMmaOutputs, l.b.getInt32Ty());
  WriteFragment(l, l.Op(0), l.b.CallHelper(Helper::kScaledMma, outputs, inputs, PackImm(imm)), kScaledMmaOutputs,
                false);
}

/// wmma has eight registers for factors of halves, whatever their shape.
unsigned WmmaRepeats(MatrixType type, unsigned registers) { return type == MatrixType::kF16 ? 8 / registers : 1; }

}  // namespace

// mma{.sp}.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c {, metadata, selector};  wmma.mma
// likewise
template <>
void Lift<semantic::Mma>(Lifter& l, const Instruction& inst) {
  if (HasText(inst, "block_scale")) return LiftScaledMma(l, inst);
  const MmaImm imm = MmaImmOf(l, inst);
  const bool wide = imm.a() == MatrixType::kF64, wmma = inst.opcode == Opcode::kWmma;
  const unsigned of_a = RegistersOfA(imm), of_b = RegistersOfB(imm);
  llvm::SmallVector<Value*, 24> inputs;
  ReadFragment(l, l.Op(1), of_a, wide, inputs, wmma ? WmmaRepeats(imm.a(), of_a) : 1);
  ReadFragment(l, l.Op(2), of_b, wide, inputs, wmma ? WmmaRepeats(imm.b(), of_b) : 1);
  ReadFragment(l, l.Op(3), AccumulatorRegisters(imm, imm.c()), wide, inputs);
  if (imm.has(MmaImm::kSparse)) inputs.push_back(l.Read(l.Op(4), ScalarType::kB32));
  const unsigned count = AccumulatorRegisters(imm, imm.d());
  const llvm::SmallVector<llvm::Type*, 8> outputs(count, l.b.getIntNTy(wide ? 64 : 32));
  WriteFragment(l, l.Op(0), l.b.CallHelper(Helper::kMma, outputs, inputs, PackImm(imm)), count, wide);
}

namespace {

/// In records every lane has an equal piece of the matrix, neighbours in a line lying together.
void RecordMatrix(Lifter& l, const MatrixMemoryImm& imm, const Place& place, Value* stride, AccessKind kind) {
  if (l.b.record == Recording::kNone) return;
  const unsigned lines = imm.column_major ? imm.columns : imm.rows,
                 elements = imm.column_major ? imm.rows : imm.columns;
  const unsigned pieces = std::max(kWarpSize / lines, 1u);
  const unsigned piece_bytes = std::max(elements * BitsOf(imm.type) / 8 / pieces, 1u);
  llvm::Type* i64 = l.b.getInt64Ty();
  Value* lane = l.b.CreateZExt(l.b.SpecialReg(Special::kLaneId), i64);
  Value* line_bytes =
      l.b.CreateUDiv(l.b.CreateMul(l.b.CreateZExt(stride, i64), l.b.getInt64(BitsOf(imm.type))), l.b.getInt64(8));
  Value* line = l.b.CreateMul(l.b.CreateUDiv(lane, l.b.getInt64(pieces)), line_bytes);
  Value* piece = l.b.CreateMul(l.b.CreateURem(lane, l.b.getInt64(pieces)), l.b.getInt64(piece_bytes));
  l.b.RecordAccess(kind, place.space, piece_bytes, l.b.CreateAdd(place.address, l.b.CreateAdd(line, piece)));
}

}  // namespace

template <>
void Lift<semantic::Wmma>(Lifter& l, const Instruction& inst) {
  if (inst.Has(Mod::kMma)) return Lift<semantic::Mma>(l, inst);
  const bool load = inst.Has(Mod::kLoad);
  const std::optional<MatrixShape> shape = ShapeOf(inst);
  const std::optional<MatrixType> type = MatrixTypeOf(inst.type());
  if (!shape || !type) l.RefuseInstruction();
  MatrixMemoryImm imm{.role = MatrixRole::kAccumulator, .type = *type};
  if (load && HasText(inst, "a")) imm.role = MatrixRole::kA;
  if (load && HasText(inst, "b")) imm.role = MatrixRole::kB;
  if (!IsWmmaMatrix(imm.role, *type, *shape)) l.RefuseInstruction();
  imm.rows = static_cast<std::uint8_t>(imm.role == MatrixRole::kB ? shape->k : shape->m);
  imm.columns = static_cast<std::uint8_t>(imm.role == MatrixRole::kA ? shape->k : shape->n);
  imm.column_major = inst.Has(Mod::kCol);
  const bool along_k = imm.column_major == (imm.role == MatrixRole::kB);
  if (BitsOf(*type) < 8 && !along_k) l.RefuseInstruction();
  const Place place = Locate(l, l.Op(load ? 1 : 0), inst.space());
  imm.space = place.space;
  Value* stride =
      l.OpCount() > 2 ? l.Read(l.Op(2), ScalarType::kU32) : l.b.getInt32(imm.column_major ? imm.rows : imm.columns);
  llvm::SmallVector<Value*, 12> inputs{HostAddress(l, place), stride};
  RecordMatrix(l, imm, place, stride, load ? AccessKind::kRead : AccessKind::kWrite);
  const unsigned count = FragmentRegisters(imm.role, imm.type, imm.rows, imm.columns);
  const unsigned repeats = imm.role == MatrixRole::kAccumulator ? 1 : WmmaRepeats(*type, count);
  const bool wide = *type == MatrixType::kF64;
  if (!load) {
    ReadFragment(l, l.Op(1), count, wide, inputs);
    l.b.CallHelper(Helper::kMatrixStore, {}, inputs, PackImm(imm));
    return;
  }
  const llvm::SmallVector<llvm::Type*, 8> outputs(count, l.b.getIntNTy(wide ? 64 : 32));
  WriteFragment(l, l.Op(0), l.b.CallHelper(Helper::kMatrixLoad, outputs, inputs, PackImm(imm)), count, wide, repeats);
}

namespace {

/// In records, only lanes that give a row's address access anything.
void RecordRows(Lifter& l, const MatrixRowsImm& imm, const Place& place, AccessKind kind) {
  const unsigned rows = imm.matrices * (imm.bytes ? 16u : 8u);
  const auto record = [&] { l.b.RecordAccess(kind, place.space, RowBytesOf(imm.format), place.address); };
  if (l.b.record == Recording::kNone || rows >= kWarpSize) return record();
  auto* then = l.NewBlock("rows");
  auto* next = l.NewBlock("next");
  l.b.CreateCondBr(l.b.CreateICmpULT(l.b.SpecialReg(Special::kLaneId), l.b.getInt32(rows)), then, next);
  l.b.SetInsertPoint(then);
  record();
  l.b.CreateBr(next);
  l.b.SetInsertPoint(next);
}

}  // namespace

/// Helpers take host addresses.
Value* HostAddress(Lifter& l, const Place& place) {
  if (place.kind != Place::Kind::kMemory) l.RefuseInstruction("cannot access a parameter");
  return place.space == Space::kShared || place.space == Space::kLocal ? l.b.ToGeneric(place.space, place.address)
                                                                       : place.address;
}

namespace {

MatrixRowsImm MatrixRowsImmOf(Lifter& l, const Instruction& inst, Space space) {
  MatrixRowsImm imm{.matrices = CountOf(inst), .transposed = inst.Has(Mod::kTrans), .space = space};
  if (HasText(inst, "b6x16_p32")) imm.format = RowFormat::kSixBits;
  if (HasText(inst, "b4x16_p64")) imm.format = RowFormat::kFourBits;
  if (inst.type(0) == ScalarType::kS8 && inst.type(1) == ScalarType::kS4) imm.format = RowFormat::kSignedFourBits;
  imm.bytes = HasText(inst, "m16n16") || HasText(inst, "m16n8");
  // Matrices of bytes exist transposed only; 8 x 16 ones of packed elements only as they are.
  const bool packed_rows = HasText(inst, "m8n16") && imm.format != RowFormat::kPlain && !imm.transposed;
  const bool halves = HasText(inst, "m8n8") && inst.type() == ScalarType::kB16;
  const bool bytes = imm.bytes && imm.transposed && (imm.format != RowFormat::kPlain || inst.type() == ScalarType::kB8);
  if (!packed_rows && !halves && !bytes) l.RefuseInstruction();
  if (HasText(inst, "m16n16") && imm.matrices == 4) l.RefuseInstruction();
  return imm;
}

}  // namespace

// ldmatrix.sync.aligned.shape.num{.trans}{.ss}.type r, [p]
template <>
void Lift<semantic::Ldmatrix>(Lifter& l, const Instruction& inst) {
  const Place place = Locate(l, l.Op(1), inst.space());
  const MatrixRowsImm imm = MatrixRowsImmOf(l, inst, place.space);
  const unsigned count = imm.matrices * (imm.bytes ? 2u : 1u);
  if (l.Components(l.Op(0)).size() != count) l.RefuseInstruction("has a destination of another size");
  RecordRows(l, imm, place, AccessKind::kRead);
  const llvm::SmallVector<llvm::Type*, 4> outputs(count, l.b.getInt32Ty());
  WriteFragment(l, l.Op(0), l.b.CallHelper(Helper::kLoadRows, outputs, {HostAddress(l, place)}, PackImm(imm)), count,
                false);
}

// stmatrix.sync.aligned.shape.num{.trans}{.ss}.type [p], r
template <>
void Lift<semantic::Stmatrix>(Lifter& l, const Instruction& inst) {
  const Place place = Locate(l, l.Op(0), inst.space());
  const MatrixRowsImm imm = MatrixRowsImmOf(l, inst, place.space);
  if (l.Components(l.Op(1)).size() != imm.matrices) l.RefuseInstruction("has a source of another size");
  RecordRows(l, imm, place, AccessKind::kWrite);
  llvm::SmallVector<Value*, 5> inputs{HostAddress(l, place)};
  ReadFragment(l, l.Op(1), imm.matrices, false, inputs);
  l.b.CallHelper(Helper::kStoreRows, {}, inputs, PackImm(imm));
}

// movmatrix.sync.aligned.m8n8.trans.b16 d, a
template <>
void Lift<semantic::Movmatrix>(Lifter& l, const Instruction&) {
  l.Write(l.Op(0), l.b.CallHelper(Helper::kTransposeMatrix, {l.b.getInt32Ty()}, {l.Read(l.Op(1), ScalarType::kB32)}),
          ScalarType::kB32);
}

}  // namespace gridloom::exec
