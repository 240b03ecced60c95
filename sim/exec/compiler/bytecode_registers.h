// Registers of one function of bytecode: which type a value has, where it lives, and what constants there are.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/exec/contract/bytecode.h"

namespace gridloom::exec {

/// A value of a struct or vector type has a register for each of its parts.
using Registers = llvm::SmallVector<std::uint32_t, 4>;
using ByteTypes = llvm::SmallVector<ByteType, 4>;

/// The parts of a type; false when the interpreter has none for it (integers of odd widths, say).
bool AppendByteTypes(llvm::Type* type, ByteTypes& types);

/// Frame of a function. What is given back is used again.
class FrameLayout {
 public:
  std::uint32_t Take(ByteType type);
  void GiveBack(std::uint32_t place, ByteType type);
  /// What has been taken so far is used no more by others.
  void Close() { free_.clear(); }
  /// A multiple of 64.
  std::uint32_t bytes() const { return bytes_; }

 private:
  std::map<std::uint32_t, std::vector<std::uint32_t>> free_;  // by size
  std::uint32_t bytes_ = 0;
};

/// Constants, each in a register of its own with the same value for all lanes.
class ConstantPool {
 public:
  explicit ConstantPool(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  /// The operand for it.
  std::uint32_t Place(ByteType type, const llvm::APInt& bits);

 private:
  std::vector<std::uint8_t>& bytes_;
  std::map<std::pair<ByteType, std::array<std::uint64_t, 2>>, std::uint32_t> places_;
};

}  // namespace gridloom::exec
