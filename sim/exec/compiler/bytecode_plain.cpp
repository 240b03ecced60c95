// Plain computation: LLVM's instructions and intrinsics as steps.
#include <llvm/IR/Operator.h>

#include <optional>

#include "sim/exec/compiler/bytecode_function.h"

namespace gridloom::exec {

namespace {

std::optional<ByteCode> BinaryCode(unsigned opcode) {
  switch (opcode) {
    case llvm::Instruction::Add: return ByteCode::kAdd;
    case llvm::Instruction::Sub: return ByteCode::kSub;
    case llvm::Instruction::Mul: return ByteCode::kMul;
    case llvm::Instruction::UDiv: return ByteCode::kUDiv;
    case llvm::Instruction::SDiv: return ByteCode::kSDiv;
    case llvm::Instruction::URem: return ByteCode::kURem;
    case llvm::Instruction::SRem: return ByteCode::kSRem;
    case llvm::Instruction::Shl: return ByteCode::kShl;
    case llvm::Instruction::LShr: return ByteCode::kLShr;
    case llvm::Instruction::AShr: return ByteCode::kAShr;
    case llvm::Instruction::And: return ByteCode::kAnd;
    case llvm::Instruction::Or: return ByteCode::kOr;
    case llvm::Instruction::Xor: return ByteCode::kXor;
    case llvm::Instruction::FAdd: return ByteCode::kFAdd;
    case llvm::Instruction::FSub: return ByteCode::kFSub;
    case llvm::Instruction::FMul: return ByteCode::kFMul;
    case llvm::Instruction::FDiv: return ByteCode::kFDiv;
    default: return std::nullopt;
  }
}

std::optional<ByteCode> CastCode(unsigned opcode) {
  switch (opcode) {
    case llvm::Instruction::Trunc: return ByteCode::kTrunc;
    case llvm::Instruction::ZExt: return ByteCode::kZExt;
    case llvm::Instruction::SExt: return ByteCode::kSExt;
    case llvm::Instruction::FPTrunc: return ByteCode::kFTrunc;
    case llvm::Instruction::FPExt: return ByteCode::kFExt;
    case llvm::Instruction::FPToUI: return ByteCode::kFToU;
    case llvm::Instruction::FPToSI: return ByteCode::kFToS;
    case llvm::Instruction::UIToFP: return ByteCode::kUToF;
    case llvm::Instruction::SIToFP: return ByteCode::kSToF;
    default: return std::nullopt;
  }
}

std::optional<ByteCode> IntrinsicCode(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::umin: return ByteCode::kUMin;
    case llvm::Intrinsic::umax: return ByteCode::kUMax;
    case llvm::Intrinsic::smin: return ByteCode::kSMin;
    case llvm::Intrinsic::smax: return ByteCode::kSMax;
    case llvm::Intrinsic::uadd_sat: return ByteCode::kUAddSat;
    case llvm::Intrinsic::usub_sat: return ByteCode::kUSubSat;
    case llvm::Intrinsic::sadd_sat: return ByteCode::kSAddSat;
    case llvm::Intrinsic::ssub_sat: return ByteCode::kSSubSat;
    case llvm::Intrinsic::fshl: return ByteCode::kFShl;
    case llvm::Intrinsic::fshr: return ByteCode::kFShr;
    case llvm::Intrinsic::abs: return ByteCode::kIAbs;
    case llvm::Intrinsic::ctpop: return ByteCode::kPopCount;
    case llvm::Intrinsic::ctlz: return ByteCode::kCountLeading;
    case llvm::Intrinsic::cttz: return ByteCode::kCountTrailing;
    case llvm::Intrinsic::bitreverse: return ByteCode::kReverseBits;
    case llvm::Intrinsic::bswap: return ByteCode::kReverseBytes;
    case llvm::Intrinsic::fabs: return ByteCode::kFAbs;
    case llvm::Intrinsic::sqrt: return ByteCode::kSqrt;
    case llvm::Intrinsic::fma: return ByteCode::kFma;
    case llvm::Intrinsic::copysign: return ByteCode::kCopySign;
    case llvm::Intrinsic::floor: return ByteCode::kFloor;
    case llvm::Intrinsic::ceil: return ByteCode::kCeil;
    case llvm::Intrinsic::trunc: return ByteCode::kTruncate;
    case llvm::Intrinsic::rint:
    case llvm::Intrinsic::nearbyint:
    case llvm::Intrinsic::roundeven: return ByteCode::kRint;
    default: return std::nullopt;
  }
}

/// How many operands of an intrinsic are values; what follows are flags that allow more than is made use of.
unsigned ValuesOf(llvm::Intrinsic::ID id, unsigned arguments) {
  const bool has_flag = id == llvm::Intrinsic::abs || id == llvm::Intrinsic::ctlz || id == llvm::Intrinsic::cttz;
  return has_flag ? 1 : arguments;
}

}  // namespace

/// One step for each part of the result.
void ByteFunctionMaker::Elementwise(const llvm::Instruction& instruction, ByteCode code,
                                    llvm::ArrayRef<const Value*> operands, std::uint64_t imm) {
  const ByteTypes types = module_.TypesOf(operands[0]->getType());
  llvm::SmallVector<Registers, 3> read;
  for (const Value* operand : operands) read.push_back(Read(operand));
  const Registers out = Define(instruction);
  const auto part = [&](std::size_t operand, std::size_t i) {
    if (operand >= read.size()) return kNoRegister;
    return read[operand][read[operand].size() == 1 ? 0 : i];
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    Add({.code = code,
         .type = types[i],
         .from = types[i],
         .dst = out[i],
         .a = part(0, i),
         .b = part(1, i),
         .c = part(2, i),
         .imm = imm});
  }
}

void ByteFunctionMaker::MakePlain(llvm::Instruction& instruction) {
  if (auto* compare = llvm::dyn_cast<llvm::CmpInst>(&instruction)) return MakeCompare(*compare);
  if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) return MakeCast(*cast);
  if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction))
    return Elementwise(instruction, ByteCode::kSelect,
                       {select->getTrueValue(), select->getFalseValue(), select->getCondition()});
  if (instruction.getOpcode() == llvm::Instruction::FNeg)
    return Elementwise(instruction, ByteCode::kFNeg, {instruction.getOperand(0)});
  if (const auto code = BinaryCode(instruction.getOpcode()))
    return Elementwise(instruction, *code, {instruction.getOperand(0), instruction.getOperand(1)});
  if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) return MakeIntrinsic(*intrinsic);
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) return MakeCall(*call);
  MakeElement(instruction);
}

/// Parts of structs and vectors: registers are moved.
void ByteFunctionMaker::MakeElement(llvm::Instruction& instruction) {
  const auto first_of = [&](llvm::Type* type,
                            unsigned index) -> std::size_t {  // part with which element `index` begins
    std::size_t first = 0;
    if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
      for (unsigned i = 0; i < index; ++i) first += module_.TypesOf(structure->getElementType(i)).size();
      return first;
    }
    return index;
  };
  const auto move = [&](const Registers& out, const Registers& from) {
    const ByteTypes& types = module_.TypesOf(instruction.getType());
    for (std::size_t i = 0; i < out.size(); ++i)
      Add({.code = ByteCode::kMove, .type = types[i], .dst = out[i], .a = from[i]});
  };
  const Value* source = instruction.getNumOperands() != 0 ? instruction.getOperand(0) : nullptr;
  const auto constant_index = [&](unsigned operand) -> std::optional<unsigned> {
    const auto* index = llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(operand));
    if (!index) return std::nullopt;
    return static_cast<unsigned>(index->getZExtValue());
  };
  std::optional<std::size_t> at;
  const Value* inserted = nullptr;
  if (auto* extract = llvm::dyn_cast<llvm::ExtractValueInst>(&instruction)) {
    if (extract->getNumIndices() == 1) at = first_of(source->getType(), extract->getIndices()[0]);
  } else if (auto* insert = llvm::dyn_cast<llvm::InsertValueInst>(&instruction)) {
    inserted = insert->getInsertedValueOperand();
    if (insert->getNumIndices() == 1) at = first_of(source->getType(), insert->getIndices()[0]);
  } else if (llvm::isa<llvm::ExtractElementInst>(instruction)) {
    if (const auto index = constant_index(1)) at = first_of(source->getType(), *index);
  } else if (llvm::isa<llvm::InsertElementInst>(instruction)) {
    inserted = instruction.getOperand(1);
    if (const auto index = constant_index(2)) at = first_of(source->getType(), *index);
  } else if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction)) {
    Registers both = Read(source);
    const Registers second = Read(instruction.getOperand(1));
    both.append(second.begin(), second.end());
    Registers picked;
    for (const int which : shuffle->getShuffleMask())
      picked.push_back(both[which < 0 ? 0 : static_cast<unsigned>(which)]);
    return move(Define(instruction), picked);
  } else if (llvm::isa<llvm::FreezeInst>(instruction)) {
    const Registers from = Read(source);
    return move(Define(instruction), from);
  }
  if (!at) return module_.Refuse(std::string("an instruction '") + instruction.getOpcodeName() + "'");
  Registers from = Read(source);
  if (inserted) {
    const Registers part = Read(inserted);
    std::copy(part.begin(), part.end(), from.begin() + static_cast<std::ptrdiff_t>(*at));
    return move(Define(instruction), from);
  }
  const std::size_t parts = module_.TypesOf(instruction.getType()).size();
  move(Define(instruction), Registers(from.begin() + static_cast<std::ptrdiff_t>(*at),
                                      from.begin() + static_cast<std::ptrdiff_t>(*at + parts)));
}

void ByteFunctionMaker::MakeCompare(llvm::CmpInst& compare) {
  using P = llvm::CmpInst::Predicate;
  struct Row {
    P predicate;
    ByteCode code;
    bool swapped;
  };
  static constexpr Row kRows[] = {
      {P::ICMP_EQ, ByteCode::kEq, false},    {P::ICMP_NE, ByteCode::kNe, false},
      {P::ICMP_ULT, ByteCode::kULt, false},  {P::ICMP_ULE, ByteCode::kULe, false},
      {P::ICMP_UGT, ByteCode::kULt, true},   {P::ICMP_UGE, ByteCode::kULe, true},
      {P::ICMP_SLT, ByteCode::kSLt, false},  {P::ICMP_SLE, ByteCode::kSLe, false},
      {P::ICMP_SGT, ByteCode::kSLt, true},   {P::ICMP_SGE, ByteCode::kSLe, true},
      {P::FCMP_OEQ, ByteCode::kFOEq, false}, {P::FCMP_OLT, ByteCode::kFOLt, false},
      {P::FCMP_OLE, ByteCode::kFOLe, false}, {P::FCMP_OGT, ByteCode::kFOLt, true},
      {P::FCMP_OGE, ByteCode::kFOLe, true},  {P::FCMP_ONE, ByteCode::kFONe, false},
      {P::FCMP_ORD, ByteCode::kFOrd, false}, {P::FCMP_UNO, ByteCode::kFUno, false},
      {P::FCMP_UEQ, ByteCode::kFUEq, false}, {P::FCMP_ULT, ByteCode::kFULt, false},
      {P::FCMP_ULE, ByteCode::kFULe, false}, {P::FCMP_UGT, ByteCode::kFULt, true},
      {P::FCMP_UGE, ByteCode::kFULe, true},  {P::FCMP_UNE, ByteCode::kFUNe, false},
  };
  for (const Row& row : kRows) {
    if (row.predicate != compare.getPredicate()) continue;
    return Elementwise(compare, row.code,
                       {compare.getOperand(row.swapped ? 1 : 0), compare.getOperand(row.swapped ? 0 : 1)});
  }
  module_.Refuse("a comparison that is always true or false");
}

void ByteFunctionMaker::MakeCast(llvm::CastInst& cast) {
  if (cast.getOpcode() == llvm::Instruction::BitCast) return MakeBitCast(cast);
  const auto code = CastCode(cast.getOpcode());
  if (!code) return module_.Refuse(std::string("a conversion '") + cast.getOpcodeName() + "'");
  const ByteTypes to = module_.TypesOf(cast.getType()), from = module_.TypesOf(cast.getOperand(0)->getType());
  const Registers read = Read(cast.getOperand(0)), out = Define(cast);
  for (std::size_t i = 0; i < out.size(); ++i)
    Add({.code = *code, .type = to[i], .from = from[i], .dst = out[i], .a = read[i]});
}

/// Between types of one part each a move; else through one integer of all bits.
void ByteFunctionMaker::MakeBitCast(llvm::CastInst& cast) {
  const ByteTypes to = module_.TypesOf(cast.getType()), from = module_.TypesOf(cast.getOperand(0)->getType());
  const Registers read = Read(cast.getOperand(0));
  const bool bits = llvm::is_contained(to, ByteType::kI1) || llvm::is_contained(from, ByteType::kI1);
  if (bits && to != from) return module_.Refuse("a cast between predicates and bits");
  const Registers out = Define(cast);
  if (to.size() == from.size()) {
    for (std::size_t i = 0; i < out.size(); ++i)
      Add({.code = ByteCode::kMove, .type = to[i], .dst = out[i], .a = read[i]});
    return;
  }
  const unsigned width = cast.getType()->getPrimitiveSizeInBits().getFixedValue();
  const ByteType whole = width == 16   ? ByteType::kI16
                         : width == 32 ? ByteType::kI32
                         : width == 64 ? ByteType::kI64
                                       : ByteType::kI128;
  if (width != BytesOf(whole) * 8) return module_.Refuse("a cast of " + std::to_string(width) + " bits");
  std::uint32_t joined = read[0];
  if (from.size() > 1) {
    joined = to.size() == 1 ? out[0] : frame_.Take(whole);
    Add({.code = ByteCode::kJoin,
         .type = whole,
         .from = from[0],
         .dst = joined,
         .b = List(read),
         .c = static_cast<std::uint32_t>(read.size())});
  }
  if (to.size() > 1) {
    for (std::size_t i = 0; i < out.size(); ++i)
      Add({.code = ByteCode::kPart, .type = to[i], .from = whole, .dst = out[i], .a = joined, .imm = i});
    if (from.size() > 1) frame_.GiveBack(joined, whole);
  }
}

void ByteFunctionMaker::MakeIntrinsic(llvm::IntrinsicInst& call) {
  const llvm::Intrinsic::ID id = call.getIntrinsicID();
  if (llvm::isa<llvm::DbgInfoIntrinsic>(call) || call.isAssumeLikeIntrinsic()) return;
  if (id == llvm::Intrinsic::is_fpclass) {
    const auto classes = llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->getZExtValue();
    return Elementwise(call, ByteCode::kFClass, {call.getArgOperand(0)}, classes);
  }
  const auto code = IntrinsicCode(id);
  if (!code) return module_.Refuse("the intrinsic " + call.getCalledFunction()->getName().str());
  llvm::SmallVector<const Value*, 3> operands;
  for (unsigned i = 0; i < ValuesOf(id, call.arg_size()); ++i) operands.push_back(call.getArgOperand(i));
  Elementwise(call, *code, operands);
}

}  // namespace gridloom::exec
