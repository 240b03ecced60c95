// ld, ldu, st, atom, red, address conversion, alloca and fences (PTX ISA, 9.7.9, 9.7.13).
#include <algorithm>

#include "sim/exec/compiler/lift_fuse.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {
namespace {

// Accesses another thread may be watching: volatile, relaxed or stronger, and the cache operator that fetches again.
bool IsStrong(const Instruction& inst) {
  return inst.Has(Mod::kVolatile) || inst.Has(Mod::kRelaxed) || inst.Has(Mod::kAcquire) || inst.Has(Mod::kRelease) ||
         inst.Has(Mod::kMmio) || inst.Has(Mod::kCv) || inst.Has(Mod::kWt);
}

// Strong vector accesses are made as one: other threads never see half of one. The ISA leaves that open (9.7.9.8),
// hardware does it up to 16 bytes, and programs rely on it: tile descriptors of scans are pairs of status and value.
// Accesses of 16 bytes are the vectoriser's business.
bool IsOneAccess(std::size_t width, unsigned element_bytes) { return width > 1 && width * element_bytes <= 8; }

}  // namespace

template <>
void FunctionLifter::Lift<semantic::Ld>(const Instruction& inst) {
  const ScalarType type = inst.type();
  if (type == ScalarType::kNone) RefuseInstruction("has no type");
  const std::vector<Operand> dst = Components(Op(0));
  const unsigned width = inst.vector_width();
  if (dst.size() != width) RefuseInstruction("has a destination of another width");
  const Place place = Locate(Op(1), inst.space());
  llvm::Type* element = TypeOf(type);
  if (place.kind == Place::Kind::kMemory) {
    const bool strong = IsStrong(inst), whole = strong && IsOneAccess(width, ptx::BytesOf(type));
    llvm::Type* const loaded_type = whole ? b_.getIntNTy(width * ptx::BytesOf(type) * 8) : element;
    Value* loaded = b_.LoadMem(place.space, loaded_type, whole ? 1 : width, place.address, strong);
    std::vector<Value*> parts;
    if (whole) parts = SplitLanes(loaded, width);
    else if (width == 1) parts = {loaded};
    else
      for (unsigned i = 0; i < width; ++i) parts.push_back(b_.CreateExtractValue(loaded, i));
    for (unsigned i = 0; i < width; ++i) Write(dst[i], b_.CreateBitCast(parts[i], element), type);
    if (inst.Has(Mod::kAcquire)) Fence(kFenceOrder);
    return;
  }
  for (unsigned i = 0; i < width; ++i) {
    const std::uint64_t step = std::uint64_t{i} * ptx::BytesOf(type);
    Value* value = nullptr;
    if (place.kind == Place::Kind::kKernelParam) {
      value = b_.LoadParam(element, i == 0 ? place.address : b_.CreateAdd(place.address, b_.getInt64(step)));
    } else {
      value = b_.CreateLoad(
          element, b_.CreateConstGEP1_64(b_.getInt8Ty(), place.slot, static_cast<std::uint64_t>(place.offset) + step));
    }
    Write(dst[i], value, type);
  }
}

template <>
void FunctionLifter::Lift<semantic::St>(const Instruction& inst) {
  if (inst.Has(Mod::kBulk)) return LiftBulkStore(inst);
  const ScalarType type = inst.type();
  if (type == ScalarType::kNone) RefuseInstruction("has no type");
  const std::vector<Operand> src = Components(Op(1));
  if (src.size() != inst.vector_width()) RefuseInstruction("has a source of another width");
  const Place place = Locate(Op(0), inst.space());
  llvm::SmallVector<Value*, 8> values;
  for (const Operand& operand : src) values.push_back(Read(operand, type));
  switch (place.kind) {
    case Place::Kind::kMemory:
      if (inst.Has(Mod::kRelease)) Fence(kFenceOrder);
      if (IsStrong(inst) && IsOneAccess(values.size(), ptx::BytesOf(type))) {
        const unsigned bits = static_cast<unsigned>(values.size()) * ptx::BytesOf(type) * 8;
        values = {JoinLanes({values.begin(), values.end()}, b_.getIntNTy(bits))};
      }
      b_.StoreMem(place.space, values, place.address, IsStrong(inst));
      if (inst.Has(Mod::kAsync)) LiftAsyncTail(inst, values.size());
      return;
    case Place::Kind::kKernelParam: RefuseInstruction("stores to a kernel parameter");
    case Place::Kind::kScalarParam: break;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t offset = static_cast<std::uint64_t>(place.offset) + i * ptx::BytesOf(type);
    b_.CreateStore(values[i], b_.CreateConstGEP1_64(b_.getInt8Ty(), place.slot, offset));
  }
}

// cvta.space: offset in the window -> generic; cvta.to.space: back. Global and constant addresses are generic as they
// are.
template <>
void FunctionLifter::Lift<semantic::Cvta>(const Instruction& inst) {
  const ScalarType type = inst.type();
  const StateSpace space = inst.space();
  Value* address =
      Resize(Read(Op(1), Op(1).kind == OperandKind::kSymbol ? ScalarType::kB64 : type), b_.getInt64Ty(), false);
  switch (space) {
    case StateSpace::kGlobal:
    case StateSpace::kConst: break;
    case StateSpace::kShared:
    case StateSpace::kSharedCta:
    case StateSpace::kSharedCluster:
    case StateSpace::kLocal:
      address = inst.Has(Mod::kTo) ? b_.FromGeneric(SpaceOf(space), address) : b_.ToGeneric(SpaceOf(space), address);
      break;
    case StateSpace::kParam:
    case StateSpace::kParamEntry:
      // Kernel parameters have no address of their own: the frame holds a copy for those that ask (PlaceParams).
      if (!function_.is_entry) {
        address = inst.Has(Mod::kTo) ? b_.FromGeneric(Space::kLocal, address) : b_.ToGeneric(Space::kLocal, address);
      } else if (inst.Has(Mod::kTo)) {
        address = b_.CreateSub(b_.FromGeneric(Space::kLocal, address), b_.getInt64(kernel_param_copy_));
      } else {
        address = b_.ToGeneric(Space::kLocal, b_.CreateAdd(address, b_.getInt64(kernel_param_copy_)));
      }
      break;
    default: RefuseInstruction();
  }
  Write(Op(0), Resize(address, TypeOf(type), false), type);
}

Value* FunctionLifter::IsBelow(Value* offset, Value* bytes) { return b_.CreateICmpULT(offset, bytes); }

// The module's .const variables. They lie among those of .global, but are in no other space.
Value* FunctionLifter::IsInConstants(Value* address) {
  Value* result = b_.getFalse();
  const std::vector<const ptx::Variable*>& variables = module_.symbols().variables;
  for (std::uint32_t number = 0; number < variables.size(); ++number) {
    const ptx::Variable& variable = *variables[number];
    if (variable.space != StateSpace::kConst) continue;
    Value* offset = b_.CreateSub(address, b_.SymbolAddress(number));
    result = b_.CreateOr(result, IsBelow(offset, b_.getInt64(std::max<std::uint64_t>(variable.bytes(), 1))));
  }
  return result;
}

Value* FunctionLifter::IsInParams(Value* address) {
  const ModuleLifter::ParamCopy& copy = module_.param_copy();
  if (copy.bytes == 0) return b_.getFalse();
  Value* offset = b_.CreateSub(b_.FromGeneric(Space::kLocal, address), b_.getInt64(copy.offset));
  return IsBelow(offset, b_.getInt64(copy.bytes));
}

// Whether an address in a cluster's shared memory belongs to this CTA.
Value* FunctionLifter::IsInOwnShared(Value* address) {
  Value* shared = b_.IsSpace(Space::kShared, address);
  if (!module_.options().clusters) return shared;
  auto special = [&](Special which) { return b_.CreateZExt(b_.SpecialReg(which), b_.getInt64Ty()); };
  Value* offset = b_.CreateSub(b_.FromGeneric(Space::kShared, address), special(Special::kSharedOffset));
  return b_.CreateAnd(shared, IsBelow(offset, special(Special::kTotalSharedBytes)));
}

// Each address is in one space; those of parameters, however, are global, too (PTX ISA, isspacep).
Value* FunctionLifter::IsIn(StateSpace space, Value* address) {
  switch (space) {
    case StateSpace::kConst: return IsInConstants(address);
    case StateSpace::kParam:
    case StateSpace::kParamEntry: return IsInParams(address);
    case StateSpace::kShared:
    case StateSpace::kSharedCta: return IsInOwnShared(address);
    case StateSpace::kLocal: return b_.CreateAnd(b_.IsSpace(Space::kLocal, address), b_.CreateNot(IsInParams(address)));
    case StateSpace::kGlobal: {
      Value* global = b_.CreateAnd(b_.IsSpace(Space::kGlobal, address), b_.CreateNot(IsInConstants(address)));
      return b_.CreateOr(global, IsInParams(address));
    }
    default: return b_.IsSpace(SpaceOf(space), address);
  }
}

template <>
void FunctionLifter::Lift<semantic::Isspacep>(const Instruction& inst) {
  Write(Op(0), IsIn(inst.space(), Read(Op(1), ScalarType::kB64)), ScalarType::kPred);
}

// alloca d, size {, align}; stacksave, stackrestore: the top of the thread's local memory above this function's frame.
template <>
void FunctionLifter::Lift<semantic::Alloca>(const Instruction& inst) {
  const ScalarType type = inst.type();
  llvm::Type* i64 = b_.getInt64Ty();
  if (inst.opcode == Opcode::kStackrestore) {
    b_.CreateStore(Read(Op(0), ScalarType::kB64), dynamic_top_);
    return;
  }
  Value* top = b_.CreateLoad(i64, dynamic_top_);
  if (inst.opcode == Opcode::kStacksave) {
    Write(Op(0), Resize(top, TypeOf(type), false), type);
    return;
  }
  std::uint64_t align = 8;
  if (OpCount() > 2) align = std::max<std::uint64_t>(align, Op(2).int_literal.value);
  Value* start = b_.CreateAnd(b_.CreateAdd(top, b_.getInt64(align - 1)), b_.getInt64(~(align - 1)));
  Value* end = b_.CreateAdd(start, Resize(Read(Op(1), type), i64, false));
  b_.CreateStore(end, dynamic_top_);
  Write(Op(0), Resize(start, TypeOf(type), false), type);
}

void FunctionLifter::Fence(std::uint64_t imm) { b_.CallHelper(Helper::kFence, {}, {}, imm); }

// membar and fence.sc order everything; the weaker fences, and those between proxies (which are one and the same memory
// here), only keep accesses in order.
template <>
void FunctionLifter::Lift<semantic::Fence>(const Instruction& inst) {
  MarkBranches(b_);
  const bool full = inst.opcode == Opcode::kMembar ? !inst.Has(Mod::kProxy) : inst.Has(Mod::kSc);
  Fence(full && !inst.Has(Mod::kCta) ? kFenceFull : kFenceOrder);
}

// Caches are not modelled: hints to them are legal no-ops (prefetch, prefetchu, applypriority), and discard leaves
// undefined bytes as they are. So are setmaxnreg (there is no register file to share), pmevent (no counters),
// griddepcontrol (grids that depend on each other run one after the other).
template <>
void FunctionLifter::Lift<semantic::NoOp>(const Instruction&) {}

// A cache policy is only ever passed on to cache hints.
template <>
void FunctionLifter::Lift<semantic::Createpolicy>(const Instruction&) {
  Write(Op(0), b_.getInt64(0), ScalarType::kB64);
}

}  // namespace gridloom::exec
