// What all emitters of a function share: where code goes, for which lanes, and what has been made there already.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "sim/exec/compiler/warp_source.h"

namespace gridloom::exec {

class WarpBuilder {
 public:
  using Value = llvm::Value;

  explicit WarpBuilder(WarpSource& source) : module(source.module), source(source), b(source.function.getContext()) {}
  WarpBuilder(const WarpBuilder&) = delete;
  WarpBuilder& operator=(const WarpBuilder&) = delete;

  /// The warp form to fill, before code is emitted.
  void SetTarget(llvm::Function& function) {
    target = &function;
    warp = function.getArg(0);
  }
  /// From here on code of a copy of a block is emitted, of which nothing is made yet.
  void BeginBlock(unsigned index, bool in_divergent_copy);
  llvm::BasicBlock* NewBlock(const char* name);
  llvm::MDNode* Unlikely();
  llvm::MDNode* Likely();

  // Fields of the warp, its CTA and its launch: read once where they do not change while the warp runs.
  Value* ExitedMask();  ///< where the warp keeps it
  Value* WarpField(std::size_t offset, llvm::Type* type);
  Value* LaunchField(std::size_t offset, llvm::Type* type);
  Value* CtaField(std::size_t offset, llvm::Type* type);
  Value* FieldOf(Value* base, char which, std::size_t offset, llvm::Type* type);
  static std::string FieldKey(char which, std::size_t offset) { return std::string(1, which) + std::to_string(offset); }
  /// A value computed once, in the entry block, and remembered by `key`.
  Value* AtEntry(const std::string& key, const std::function<Value*()>& make);

  // Lanes and masks.
  Value* MaskLanes();
  Value* ActiveLanes();  ///< the same; all lanes in the converged copy
  Value* ToLaneMask(Value* mask);
  Value* ToBits(Value* lane_mask);
  Value* SelectLanes(Value* lanes, Value* chosen, Value* otherwise);
  Value* Splat(Value* scalar);
  Value* PatternVector(const LanePattern& pattern, llvm::Type* element);

  // Half warps (warp_half_loop.cpp).
  bool half_warp() const { return width != kWarpSize; }
  llvm::Type* LanesType(llvm::Type* type) const { return WarpType(type, width); }
  Value* PlacesOf(Value* mask);
  void BeginHalfWarp();
  Value* Pack(Value* lanes);
  Value* Unpack(Value* half);
  Value* UnpackMask(Value* mask);
  Value* WarpMask() { return half_warp() ? UnpackMask(mask) : mask; }

  // Buffers of the function's frame that go to helpers.
  Value* Scratch(unsigned slot, unsigned bytes);  ///< stack buffer shared by all helper calls of the function
  Value* SpillLanes(unsigned slot, Value* lanes);
  Value* ReloadLanes(Value* buffer, llvm::Type* warp_type);

  WarpModule& module;
  const WarpSource& source;
  llvm::IRBuilder<> b;
  llvm::Function* target = nullptr;
  Value* warp = nullptr;
  llvm::BasicBlock* entry = nullptr;
  llvm::BasicBlock* head = nullptr;  ///< where a warp starts: the entry, or the head of the loop over the CTA's warps
  std::map<std::string, Value*> entry_values;                          ///< of AtEntry, by key
  std::map<unsigned, std::pair<llvm::AllocaInst*, unsigned>> scratch;  ///< of Scratch, with their bytes

  // The block copy being emitted.
  unsigned current = 0;
  bool divergent = false;
  bool divergent_copy = false;  ///< of the block; a small arm is divergent in either
  Value* mask = nullptr;        ///< active mask (i32); constant -1 in the converged copy
  Value* mask_lanes = nullptr;
  unsigned width = kWarpSize;  ///< lanes of a value; half of that in a half warp, whose mask has as many bits
  Value* packed = nullptr;     ///< half warp: which lanes of the warp it consists of (i32)
  Value* places = nullptr;     ///< half warp: their numbers, <16 x i32>
  llvm::DenseMap<const Value*, Value*> base_cache, lanes_cache;
  llvm::DenseMap<const Value*, Value*> lanes_of_mask;  ///< what ToBits made masks of: it is there wherever the mask is
};

/// What each emitter has of the builder at hand. The emitters that it needs it has by reference as well; it owns none.
class Emitter {
 protected:
  using Value = llvm::Value;

  explicit Emitter(WarpBuilder& w) : w_(w), b_(w.b), module_(w.module), source_(w.source) {}

  WarpBuilder& w_;
  llvm::IRBuilder<>& b_;
  WarpModule& module_;
  const WarpSource& source_;
};

/// What is loaded or materialised while a side block is emitted must not be used after it: it does not dominate.
class Scope {
 public:
  explicit Scope(WarpBuilder& w) : w_(w), base_(w.base_cache), lanes_(w.lanes_cache), mask_lanes_(w.mask_lanes) {}
  ~Scope() {
    w_.base_cache = std::move(base_);
    w_.lanes_cache = std::move(lanes_);
    w_.mask_lanes = mask_lanes_;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  WarpBuilder& w_;
  llvm::DenseMap<const llvm::Value*, llvm::Value*> base_, lanes_;
  llvm::Value* mask_lanes_;
};

/// For code that deals with the whole warp while a half is being emitted.
class WholeWarp {
 public:
  explicit WholeWarp(WarpBuilder& w) : w_(w), width_(w.width), mask_(w.mask), mask_lanes_(w.mask_lanes) {
    if (!w.half_warp()) return;
    w.mask = w.WarpMask();
    w.mask_lanes = nullptr;
    std::swap(w.lanes_cache, lanes_);
    w.width = kWarpSize;
  }
  ~WholeWarp() {
    if (width_ == kWarpSize) return;
    w_.lanes_cache = std::move(lanes_);
    w_.width = width_;
    w_.mask = mask_;
    w_.mask_lanes = mask_lanes_;
  }
  WholeWarp(const WholeWarp&) = delete;
  WholeWarp& operator=(const WholeWarp&) = delete;

 private:
  WarpBuilder& w_;
  unsigned width_;
  llvm::Value *mask_, *mask_lanes_;
  llvm::DenseMap<const llvm::Value*, llvm::Value*> lanes_;
};

}  // namespace gridloom::exec
