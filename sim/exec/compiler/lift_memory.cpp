// ld, ldu, st, atom, red, address conversion, alloca and fences (PTX ISA, 9.7.9, 9.7.13).
#include <algorithm>

#include "sim/exec/compiler/lift_fuse.h"
#include "sim/exec/compiler/lift_parts.h"
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
void Lift<semantic::Ld>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  if (type == ScalarType::kNone) l.RefuseInstruction("has no type");
  const std::vector<Operand> dst = l.Components(l.Op(0));
  const unsigned width = inst.vector_width();
  if (dst.size() != width) l.RefuseInstruction("has a destination of another width");
  const Place place = Locate(l, l.Op(1), inst.space());
  llvm::Type* element = l.TypeOf(type);
  if (place.kind == Place::Kind::kMemory) {
    const bool strong = IsStrong(inst), whole = strong && IsOneAccess(width, ptx::BytesOf(type));
    llvm::Type* const loaded_type = whole ? l.b.getIntNTy(width * ptx::BytesOf(type) * 8) : element;
    Value* loaded = l.b.LoadMem(place.space, loaded_type, whole ? 1 : width, place.address, strong);
    std::vector<Value*> parts;
    if (whole) parts = l.SplitLanes(loaded, width);
    else if (width == 1) parts = {loaded};
    else
      for (unsigned i = 0; i < width; ++i) parts.push_back(l.b.CreateExtractValue(loaded, i));
    for (unsigned i = 0; i < width; ++i) l.Write(dst[i], l.b.CreateBitCast(parts[i], element), type);
    if (inst.Has(Mod::kAcquire)) Fence(l, kFenceOrder);
    return;
  }
  for (unsigned i = 0; i < width; ++i) {
    const std::uint64_t step = std::uint64_t{i} * ptx::BytesOf(type);
    Value* value = nullptr;
    if (place.kind == Place::Kind::kKernelParam) {
      value = l.b.LoadParam(element, i == 0 ? place.address : l.b.CreateAdd(place.address, l.b.getInt64(step)));
    } else {
      value = l.b.CreateLoad(element, l.b.CreateConstGEP1_64(l.b.getInt8Ty(), place.slot,
                                                             static_cast<std::uint64_t>(place.offset) + step));
    }
    l.Write(dst[i], value, type);
  }
}

template <>
void Lift<semantic::St>(Lifter& l, const Instruction& inst) {
  if (inst.Has(Mod::kBulk)) return LiftBulkStore(l, inst);
  const ScalarType type = inst.type();
  if (type == ScalarType::kNone) l.RefuseInstruction("has no type");
  const std::vector<Operand> src = l.Components(l.Op(1));
  if (src.size() != inst.vector_width()) l.RefuseInstruction("has a source of another width");
  const Place place = Locate(l, l.Op(0), inst.space());
  llvm::SmallVector<Value*, 8> values;
  for (const Operand& operand : src) values.push_back(l.Read(operand, type));
  switch (place.kind) {
    case Place::Kind::kMemory:
      if (inst.Has(Mod::kRelease)) Fence(l, kFenceOrder);
      if (IsStrong(inst) && IsOneAccess(values.size(), ptx::BytesOf(type))) {
        const unsigned bits = static_cast<unsigned>(values.size()) * ptx::BytesOf(type) * 8;
        values = {l.JoinLanes({values.begin(), values.end()}, l.b.getIntNTy(bits))};
      }
      l.b.StoreMem(place.space, values, place.address, IsStrong(inst));
      if (inst.Has(Mod::kAsync)) LiftAsyncTail(l, inst, values.size());
      return;
    case Place::Kind::kKernelParam: l.RefuseInstruction("stores to a kernel parameter");
    case Place::Kind::kScalarParam: break;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t offset = static_cast<std::uint64_t>(place.offset) + i * ptx::BytesOf(type);
    l.b.CreateStore(values[i], l.b.CreateConstGEP1_64(l.b.getInt8Ty(), place.slot, offset));
  }
}

// cvta.space: offset in the window -> generic; cvta.to.space: back. Global and constant addresses are generic as they
// are.
template <>
void Lift<semantic::Cvta>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const StateSpace space = inst.space();
  Value* address = l.Resize(l.Read(l.Op(1), l.Op(1).kind == OperandKind::kSymbol ? ScalarType::kB64 : type),
                            l.b.getInt64Ty(), false);
  switch (space) {
    case StateSpace::kGlobal:
    case StateSpace::kConst: break;
    case StateSpace::kShared:
    case StateSpace::kSharedCta:
    case StateSpace::kSharedCluster:
    case StateSpace::kLocal:
      address =
          inst.Has(Mod::kTo) ? l.b.FromGeneric(SpaceOf(l, space), address) : l.b.ToGeneric(SpaceOf(l, space), address);
      break;
    case StateSpace::kParam:
    case StateSpace::kParamEntry:
      // Kernel parameters have no address of their own: the frame holds a copy for those that ask (PlaceParams).
      if (!l.function.is_entry) {
        address = inst.Has(Mod::kTo) ? l.b.FromGeneric(Space::kLocal, address) : l.b.ToGeneric(Space::kLocal, address);
      } else if (inst.Has(Mod::kTo)) {
        address = l.b.CreateSub(l.b.FromGeneric(Space::kLocal, address), l.b.getInt64(l.frame.kernel_param_copy));
      } else {
        address = l.b.ToGeneric(Space::kLocal, l.b.CreateAdd(address, l.b.getInt64(l.frame.kernel_param_copy)));
      }
      break;
    default: l.RefuseInstruction();
  }
  l.Write(l.Op(0), l.Resize(address, l.TypeOf(type), false), type);
}

namespace {

Value* IsBelow(Lifter& l, Value* offset, Value* bytes) { return l.b.CreateICmpULT(offset, bytes); }

// The module's .const variables. They lie among those of .global, but are in no other space.
Value* IsInConstants(Lifter& l, Value* address) {
  Value* result = l.b.getFalse();
  const std::vector<const ptx::Variable*>& variables = l.module.symbols().variables;
  for (std::uint32_t number = 0; number < variables.size(); ++number) {
    const ptx::Variable& variable = *variables[number];
    if (variable.space != StateSpace::kConst) continue;
    Value* offset = l.b.CreateSub(address, l.b.SymbolAddress(number));
    result = l.b.CreateOr(result, IsBelow(l, offset, l.b.getInt64(std::max<std::uint64_t>(variable.bytes(), 1))));
  }
  return result;
}

Value* IsInParams(Lifter& l, Value* address) {
  const ModuleLifter::ParamCopy& copy = l.module.param_copy();
  if (copy.bytes == 0) return l.b.getFalse();
  Value* offset = l.b.CreateSub(l.b.FromGeneric(Space::kLocal, address), l.b.getInt64(copy.offset));
  return IsBelow(l, offset, l.b.getInt64(copy.bytes));
}

// Whether an address in a cluster's shared memory belongs to this CTA.
Value* IsInOwnShared(Lifter& l, Value* address) {
  Value* shared = l.b.IsSpace(Space::kShared, address);
  if (!l.module.options().clusters) return shared;
  auto special = [&](Special which) { return l.b.CreateZExt(l.b.SpecialReg(which), l.b.getInt64Ty()); };
  Value* offset = l.b.CreateSub(l.b.FromGeneric(Space::kShared, address), special(Special::kSharedOffset));
  return l.b.CreateAnd(shared, IsBelow(l, offset, special(Special::kTotalSharedBytes)));
}

// Each address is in one space; those of parameters, however, are global, too (PTX ISA, isspacep).
Value* IsIn(Lifter& l, StateSpace space, Value* address) {
  switch (space) {
    case StateSpace::kConst: return IsInConstants(l, address);
    case StateSpace::kParam:
    case StateSpace::kParamEntry: return IsInParams(l, address);
    case StateSpace::kShared:
    case StateSpace::kSharedCta: return IsInOwnShared(l, address);
    case StateSpace::kLocal:
      return l.b.CreateAnd(l.b.IsSpace(Space::kLocal, address), l.b.CreateNot(IsInParams(l, address)));
    case StateSpace::kGlobal: {
      Value* global = l.b.CreateAnd(l.b.IsSpace(Space::kGlobal, address), l.b.CreateNot(IsInConstants(l, address)));
      return l.b.CreateOr(global, IsInParams(l, address));
    }
    default: return l.b.IsSpace(SpaceOf(l, space), address);
  }
}

}  // namespace

template <>
void Lift<semantic::Isspacep>(Lifter& l, const Instruction& inst) {
  l.Write(l.Op(0), IsIn(l, inst.space(), l.Read(l.Op(1), ScalarType::kB64)), ScalarType::kPred);
}

// alloca d, size {, align}; stacksave, stackrestore: the top of the thread's local memory above this function's frame.
template <>
void Lift<semantic::Alloca>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  llvm::Type* i64 = l.b.getInt64Ty();
  if (inst.opcode == Opcode::kStackrestore) {
    l.b.CreateStore(l.Read(l.Op(0), ScalarType::kB64), l.frame.dynamic_top);
    return;
  }
  Value* top = l.b.CreateLoad(i64, l.frame.dynamic_top);
  if (inst.opcode == Opcode::kStacksave) {
    l.Write(l.Op(0), l.Resize(top, l.TypeOf(type), false), type);
    return;
  }
  std::uint64_t align = 8;
  if (l.OpCount() > 2) align = std::max<std::uint64_t>(align, l.Op(2).int_literal.value);
  Value* start = l.b.CreateAnd(l.b.CreateAdd(top, l.b.getInt64(align - 1)), l.b.getInt64(~(align - 1)));
  Value* end = l.b.CreateAdd(start, l.Resize(l.Read(l.Op(1), type), i64, false));
  l.b.CreateStore(end, l.frame.dynamic_top);
  l.Write(l.Op(0), l.Resize(start, l.TypeOf(type), false), type);
}

void Fence(Lifter& l, std::uint64_t imm) { l.b.CallHelper(Helper::kFence, {}, {}, imm); }

// membar and fence.sc order everything; the weaker fences, and those between proxies (which are one and the same memory
// here), only keep accesses in order.
template <>
void Lift<semantic::Fence>(Lifter& l, const Instruction& inst) {
  MarkBranches(l.b);
  const bool full = inst.opcode == Opcode::kMembar ? !inst.Has(Mod::kProxy) : inst.Has(Mod::kSc);
  Fence(l, full && !inst.Has(Mod::kCta) ? kFenceFull : kFenceOrder);
}

// Caches are not modelled: hints to them are legal no-ops (prefetch, prefetchu, applypriority), and discard leaves
// undefined bytes as they are. So are setmaxnreg (there is no register file to share), pmevent (no counters),
// griddepcontrol (grids that depend on each other run one after the other).
template <>
void Lift<semantic::NoOp>(Lifter& l, const Instruction&) {}

// A cache policy is only ever passed on to cache hints.
template <>
void Lift<semantic::Createpolicy>(Lifter& l, const Instruction&) {
  l.Write(l.Op(0), l.b.getInt64(0), ScalarType::kB64);
}

}  // namespace gridloom::exec
