// Which member function lifts which opcode. An opcode that is missing is refused by name.
#include <array>

#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {
namespace {

struct Row {
  Opcode opcode;
  FunctionLifter::Handler handler;
};

constexpr Row kRows[] = {
    {Opcode::kAdd, &FunctionLifter::LiftAddSub},
    {Opcode::kAddc, &FunctionLifter::LiftAddSub},
    {Opcode::kSub, &FunctionLifter::LiftAddSub},
    {Opcode::kSubc, &FunctionLifter::LiftAddSub},
    {Opcode::kMul, &FunctionLifter::LiftMul},
    {Opcode::kMad, &FunctionLifter::LiftMad},
    {Opcode::kMadc, &FunctionLifter::LiftMad},
    {Opcode::kMul24, &FunctionLifter::LiftMul24},
    {Opcode::kMad24, &FunctionLifter::LiftMul24},
    {Opcode::kDiv, &FunctionLifter::LiftDivRem},
    {Opcode::kRem, &FunctionLifter::LiftDivRem},
    {Opcode::kSad, &FunctionLifter::LiftSad},
    {Opcode::kAbs, &FunctionLifter::LiftAbsNeg},
    {Opcode::kNeg, &FunctionLifter::LiftAbsNeg},
    {Opcode::kMin, &FunctionLifter::LiftMinMax},
    {Opcode::kMax, &FunctionLifter::LiftMinMax},
    {Opcode::kDp2a, &FunctionLifter::LiftDotProduct},
    {Opcode::kDp4a, &FunctionLifter::LiftDotProduct},
    {Opcode::kAnd, &FunctionLifter::LiftLogic},
    {Opcode::kOr, &FunctionLifter::LiftLogic},
    {Opcode::kXor, &FunctionLifter::LiftLogic},
    {Opcode::kNot, &FunctionLifter::LiftLogic},
    {Opcode::kCnot, &FunctionLifter::LiftCnot},
    {Opcode::kShl, &FunctionLifter::LiftShift},
    {Opcode::kShr, &FunctionLifter::LiftShift},
    {Opcode::kShf, &FunctionLifter::LiftFunnelShift},
    {Opcode::kLop3, &FunctionLifter::LiftLop3},
    {Opcode::kPrmt, &FunctionLifter::LiftPrmt},
    {Opcode::kPopc, &FunctionLifter::LiftBitCount},
    {Opcode::kClz, &FunctionLifter::LiftBitCount},
    {Opcode::kBrev, &FunctionLifter::LiftBitCount},
    {Opcode::kBfind, &FunctionLifter::LiftBfind},
    {Opcode::kFns, &FunctionLifter::LiftFns},
    {Opcode::kBfe, &FunctionLifter::LiftBfe},
    {Opcode::kBfi, &FunctionLifter::LiftBfi},
    {Opcode::kSzext, &FunctionLifter::LiftSzext},
    {Opcode::kBmsk, &FunctionLifter::LiftBmsk},
    {Opcode::kSetp, &FunctionLifter::LiftSetp},
    {Opcode::kSet, &FunctionLifter::LiftSet},
    {Opcode::kSelp, &FunctionLifter::LiftSelp},
    {Opcode::kSlct, &FunctionLifter::LiftSlct},
    {Opcode::kMov, &FunctionLifter::LiftMov},
    {Opcode::kCvt, &FunctionLifter::LiftCvt},
    {Opcode::kFma, &FunctionLifter::LiftFma},
    {Opcode::kRcp, &FunctionLifter::LiftFloatUnary},
    {Opcode::kSqrt, &FunctionLifter::LiftFloatUnary},
    {Opcode::kRsqrt, &FunctionLifter::LiftFloatUnary},
    {Opcode::kSin, &FunctionLifter::LiftFloatUnary},
    {Opcode::kCos, &FunctionLifter::LiftFloatUnary},
    {Opcode::kLg2, &FunctionLifter::LiftFloatUnary},
    {Opcode::kEx2, &FunctionLifter::LiftFloatUnary},
    {Opcode::kTanh, &FunctionLifter::LiftFloatUnary},
    {Opcode::kTestp, &FunctionLifter::LiftTestp},
    {Opcode::kCopysign, &FunctionLifter::LiftCopysign},
    {Opcode::kLd, &FunctionLifter::LiftLd},
    {Opcode::kLdu, &FunctionLifter::LiftLd},
    {Opcode::kSt, &FunctionLifter::LiftSt},
    {Opcode::kAtom, &FunctionLifter::LiftAtom},
    {Opcode::kRed, &FunctionLifter::LiftAtom},
    {Opcode::kCvta, &FunctionLifter::LiftCvta},
    {Opcode::kIsspacep, &FunctionLifter::LiftIsspacep},
    {Opcode::kAlloca, &FunctionLifter::LiftAlloca},
    {Opcode::kStacksave, &FunctionLifter::LiftAlloca},
    {Opcode::kStackrestore, &FunctionLifter::LiftAlloca},
    {Opcode::kMembar, &FunctionLifter::LiftFence},
    {Opcode::kFence, &FunctionLifter::LiftFence},
    {Opcode::kPrefetch, &FunctionLifter::LiftNoOp},
    {Opcode::kPrefetchu, &FunctionLifter::LiftNoOp},
    {Opcode::kApplypriority, &FunctionLifter::LiftNoOp},
    {Opcode::kDiscard, &FunctionLifter::LiftNoOp},
    {Opcode::kSetmaxnreg, &FunctionLifter::LiftNoOp},
    {Opcode::kPmevent, &FunctionLifter::LiftNoOp},
    {Opcode::kGriddepcontrol, &FunctionLifter::LiftNoOp},
    {Opcode::kCreatepolicy, &FunctionLifter::LiftCreatepolicy},
    {Opcode::kBra, &FunctionLifter::LiftBra},
    {Opcode::kBrx, &FunctionLifter::LiftBrx},
    {Opcode::kRet, &FunctionLifter::LiftRet},
    {Opcode::kExit, &FunctionLifter::LiftExit},
    {Opcode::kTrap, &FunctionLifter::LiftTrap},
    {Opcode::kBrkpt, &FunctionLifter::LiftTrap},
    {Opcode::kCall, &FunctionLifter::LiftCall},
    {Opcode::kBar, &FunctionLifter::LiftBar},
    {Opcode::kBarrier, &FunctionLifter::LiftBar},
    {Opcode::kNanosleep, &FunctionLifter::LiftNanosleep},
    {Opcode::kVote, &FunctionLifter::LiftVote},
    {Opcode::kShfl, &FunctionLifter::LiftShfl},
    {Opcode::kActivemask, &FunctionLifter::LiftActivemask},
    {Opcode::kElect, &FunctionLifter::LiftElect},
    {Opcode::kTex, &FunctionLifter::LiftTexture},
    {Opcode::kTld4, &FunctionLifter::LiftTexture},
    {Opcode::kTxq, &FunctionLifter::LiftImageQuery},
    {Opcode::kSuq, &FunctionLifter::LiftImageQuery},
    {Opcode::kIstypep, &FunctionLifter::LiftIstypep},
    {Opcode::kSuld, &FunctionLifter::LiftSurface},
    {Opcode::kSust, &FunctionLifter::LiftSurface},
    {Opcode::kSured, &FunctionLifter::LiftSurfaceReduce},
    {Opcode::kMma, &FunctionLifter::LiftMma},
    {Opcode::kWmma, &FunctionLifter::LiftWmma},
    {Opcode::kLdmatrix, &FunctionLifter::LiftLdmatrix},
    {Opcode::kStmatrix, &FunctionLifter::LiftStmatrix},
    {Opcode::kMovmatrix, &FunctionLifter::LiftMovmatrix},
};

constexpr auto MakeTable() {
  std::array<FunctionLifter::Handler, 256> table{};
  for (const Row& row : kRows) table[static_cast<std::size_t>(row.opcode)] = row.handler;
  return table;
}

}  // namespace

FunctionLifter::Handler FunctionLifter::HandlerFor(Opcode opcode) {
  static constexpr auto kTable = MakeTable();
  return kTable[static_cast<std::size_t>(opcode)];
}

}  // namespace gridloom::exec
