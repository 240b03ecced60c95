// Checked loads and stores of lanes that follow no pattern: rows where they turn out to be some, else gathers and
// scatters.
#pragma once

#include <array>
#include <vector>

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_rows.h"

namespace gridloom::exec {

class WarpValues;
class MemoryWindows;
class HalfAccess;
class IrregularPlaces;

/// What a lane loads in one piece.
struct PieceLoads {
  llvm::Value* offsets = nullptr;  ///< where they lie, one a lane
  llvm::Type* offset_type = nullptr;
  unsigned shift = 0;  ///< offsets from `starts` are in units of 1 << shift bytes
  llvm::Type* piece = nullptr;
  llvm::Align align{};
  std::vector<llvm::Value*> starts{};  ///< by place; empty: offsets are addresses
};

class IrregularAccess : Emitter {
 public:
  IrregularAccess(WarpBuilder& w, WarpValues& values, MemoryWindows& windows, HalfAccess& halves,
                  IrregularPlaces& places, RowAccess& rows)
      : Emitter(w), values_(values), windows_(windows), halves_(halves), places_(places), rows_(rows) {}

  std::vector<Value*> LoadIrregularGroup(llvm::ArrayRef<Irregular> places, const Access& whole, const Access& row,
                                         const Window& window, llvm::AllocaInst* in_rows);
  void StoreIrregular(const Irregular& at, const Access& access, const Window& window,
                      const std::vector<Value*>& values, Value* rows);

 private:
  Value* GatherSmall(const Irregular& at, const Access& access, const Window& window);
  Value* GatherWhole(const Irregular& at, const Access& access, const Window& window);
  PieceLoads PiecesAt(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  Value* OffsetOf(const PieceLoads& pieces, unsigned lane);
  Value* LoadPiece(const PieceLoads& pieces, std::size_t place, Value* offset);
  Value* LoadFour(const PieceLoads& pieces, std::size_t place, llvm::ArrayRef<Value*> offsets);
  std::vector<Value*> LoadQuads(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  std::vector<Value*> LoadPairs(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  Value* Concatenate(Value* a, Value* b);
  std::array<Value*, 4> Transpose(const std::array<Value*, 4>& rows);
  std::vector<Value*> Gather(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  void Scatter(const Irregular& at, const Access& access, const Window& window, const std::vector<Value*>& values);

  WarpValues& values_;
  MemoryWindows& windows_;
  HalfAccess& halves_;
  IrregularPlaces& places_;
  RowAccess& rows_;
};

}  // namespace gridloom::exec
