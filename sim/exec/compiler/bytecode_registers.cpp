#include "sim/exec/compiler/bytecode_registers.h"

#include <cstring>

namespace gridloom::exec {

bool AppendByteTypes(llvm::Type* type, ByteTypes& types) {
  if (type->isVoidTy()) return true;
  if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
    return llvm::all_of(structure->elements(), [&](llvm::Type* element) { return AppendByteTypes(element, types); });
  }
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      if (!AppendByteTypes(vector->getElementType(), types)) return false;
    return true;
  }
  if (type->isHalfTy()) types.push_back(ByteType::kF16);
  else if (type->isFloatTy()) types.push_back(ByteType::kF32);
  else if (type->isDoubleTy()) types.push_back(ByteType::kF64);
  else if (type->isIntegerTy()) switch (type->getIntegerBitWidth()) {
      case 1: types.push_back(ByteType::kI1); break;
      case 8: types.push_back(ByteType::kI8); break;
      case 16: types.push_back(ByteType::kI16); break;
      case 32: types.push_back(ByteType::kI32); break;
      case 64: types.push_back(ByteType::kI64); break;
      case 128: types.push_back(ByteType::kI128); break;
      default: return false;
    }
  else return false;
  return true;
}

namespace {

// Predicates share lines of the cache; everything else begins at one.
std::uint32_t SizeOf(ByteType type) { return type == ByteType::kI1 ? 4 : (RegisterBytes(type) + 63) / 64 * 64; }

}  // namespace

std::uint32_t FrameLayout::Take(ByteType type) {
  const std::uint32_t size = SizeOf(type);
  std::vector<std::uint32_t>& free = free_[size];
  if (free.empty()) {
    if (size >= 64) {
      bytes_ += size;
      return bytes_ - size;
    }
    for (std::uint32_t at = 64; at != 0; at -= size) free.push_back(bytes_ + at - size);
    bytes_ += 64;
  }
  const std::uint32_t place = free.back();
  free.pop_back();
  return place;
}

void FrameLayout::GiveBack(std::uint32_t place, ByteType type) { free_[SizeOf(type)].push_back(place); }

std::uint32_t ConstantPool::Place(ByteType type, const llvm::APInt& bits) {
  const std::array<std::uint64_t, 2> words{
      bits.extractBitsAsZExtValue(std::min(64u, bits.getBitWidth()), 0),
      bits.getBitWidth() > 64 ? bits.extractBitsAsZExtValue(bits.getBitWidth() - 64, 64) : 0};
  auto [it, inserted] = places_.try_emplace({type, words}, static_cast<std::uint32_t>(bytes_.size()));
  if (inserted) {
    bytes_.resize(bytes_.size() + std::max(SizeOf(type), 64u));
    std::uint8_t* at = bytes_.data() + it->second;
    if (type == ByteType::kI1) {
      const std::uint32_t lanes = words[0] != 0 ? ~0u : 0;
      std::memcpy(at, &lanes, sizeof lanes);
    } else {
      for (unsigned lane = 0; lane < 32; ++lane)
        std::memcpy(at + std::size_t{lane} * BytesOf(type), words.data(), BytesOf(type));
    }
  }
  return it->second | kConstantOperand;
}

}  // namespace gridloom::exec
