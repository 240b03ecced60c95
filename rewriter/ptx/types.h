// Fundamental types and state spaces of PTX (ISA chapters 5.1 and 5.2), one table each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gridloom::ptx {

enum class TypeClass : std::uint8_t { kNone, kUnsigned, kSigned, kFloat, kBits, kPredicate, kOpaque };

//  X(enumerator, text, class, bits of a whole value, lanes packed in it)
#define GL_PTX_TYPES(X)                        \
  X(kNone, "", kNone, 0, 1)                    \
  X(kPred, "pred", kPredicate, 1, 1)           \
  X(kB1, "b1", kBits, 1, 1)                    \
  X(kU2, "u2", kUnsigned, 2, 1)                \
  X(kS2, "s2", kSigned, 2, 1)                  \
  X(kU4, "u4", kUnsigned, 4, 1)                \
  X(kS4, "s4", kSigned, 4, 1)                  \
  X(kU8, "u8", kUnsigned, 8, 1)                \
  X(kU16, "u16", kUnsigned, 16, 1)             \
  X(kU32, "u32", kUnsigned, 32, 1)             \
  X(kU64, "u64", kUnsigned, 64, 1)             \
  X(kS8, "s8", kSigned, 8, 1)                  \
  X(kS16, "s16", kSigned, 16, 1)               \
  X(kS32, "s32", kSigned, 32, 1)               \
  X(kS64, "s64", kSigned, 64, 1)               \
  X(kB8, "b8", kBits, 8, 1)                    \
  X(kB16, "b16", kBits, 16, 1)                 \
  X(kB32, "b32", kBits, 32, 1)                 \
  X(kB64, "b64", kBits, 64, 1)                 \
  X(kB128, "b128", kBits, 128, 1)              \
  X(kU16x2, "u16x2", kUnsigned, 32, 2)         \
  X(kS16x2, "s16x2", kSigned, 32, 2)           \
  X(kU8x4, "u8x4", kUnsigned, 32, 4)           \
  X(kS8x4, "s8x4", kSigned, 32, 4)             \
  X(kF16, "f16", kFloat, 16, 1)                \
  X(kF16x2, "f16x2", kFloat, 32, 2)            \
  X(kBF16, "bf16", kFloat, 16, 1)              \
  X(kBF16x2, "bf16x2", kFloat, 32, 2)          \
  X(kTF32, "tf32", kFloat, 32, 1)              \
  X(kF32, "f32", kFloat, 32, 1)                \
  X(kF32x2, "f32x2", kFloat, 64, 2)            \
  X(kF64, "f64", kFloat, 64, 1)                \
  X(kE4M3, "e4m3", kFloat, 8, 1)               \
  X(kE5M2, "e5m2", kFloat, 8, 1)               \
  X(kE4M3x2, "e4m3x2", kFloat, 16, 2)          \
  X(kE5M2x2, "e5m2x2", kFloat, 16, 2)          \
  X(kE4M3x4, "e4m3x4", kFloat, 32, 4)          \
  X(kE5M2x4, "e5m2x4", kFloat, 32, 4)          \
  X(kE2M3, "e2m3", kFloat, 6, 1)               \
  X(kE3M2, "e3m2", kFloat, 6, 1)               \
  X(kE2M1, "e2m1", kFloat, 4, 1)               \
  X(kE2M3x2, "e2m3x2", kFloat, 16, 2)          \
  X(kE3M2x2, "e3m2x2", kFloat, 16, 2)          \
  X(kE2M1x2, "e2m1x2", kFloat, 8, 2)           \
  X(kE2M3x4, "e2m3x4", kFloat, 32, 4)          \
  X(kE3M2x4, "e3m2x4", kFloat, 32, 4)          \
  X(kE2M1x4, "e2m1x4", kFloat, 16, 4)          \
  X(kE2M1P4x4, "e2m1p4x4", kFloat, 32, 4)      \
  X(kUE8M0, "ue8m0", kFloat, 8, 1)             \
  X(kUE4M3, "ue4m3", kFloat, 8, 1)             \
  X(kUE8M0x2, "ue8m0x2", kFloat, 16, 2)        \
  X(kUE8M0x4, "ue8m0x4", kFloat, 32, 4)        \
  X(kS2F6x2, "s2f6x2", kFloat, 16, 2)          \
  X(kB8x16, "b8x16", kBits, 128, 16)           \
  X(kB6x16P32, "b6x16_p32", kBits, 128, 16)    \
  X(kB4x16P64, "b4x16_p64", kBits, 128, 16)    \
  X(kTexRef, "texref", kOpaque, 64, 1)         \
  X(kSamplerRef, "samplerref", kOpaque, 64, 1) \
  X(kSurfRef, "surfref", kOpaque, 64, 1)

enum class ScalarType : std::uint8_t {
#define X(id, text, cls, bits, lanes) id,
  GL_PTX_TYPES(X)
#undef X
};

struct TypeInfo {
  std::string_view text;  ///< without the dot
  TypeClass cls;
  std::uint16_t bits;  ///< of the whole (packed) value
  std::uint8_t lanes;  ///< packed elements in it
};

const TypeInfo& Info(ScalarType type);
/// Type spelled by a modifier or declaration, without the dot ("u32").
std::optional<ScalarType> TypeFromText(std::string_view text);

inline unsigned BitsOf(ScalarType type) { return Info(type).bits; }
/// Storage bytes of one value; sub-byte types and predicates take one.
inline std::uint32_t BytesOf(ScalarType type) { return (Info(type).bits + 7u) / 8u; }
inline bool IsFloat(ScalarType type) { return Info(type).cls == TypeClass::kFloat; }
inline bool IsSigned(ScalarType type) { return Info(type).cls == TypeClass::kSigned; }
inline bool IsUnsigned(ScalarType type) { return Info(type).cls == TypeClass::kUnsigned; }
inline bool IsInteger(ScalarType type) {
  return IsSigned(type) || IsUnsigned(type) || Info(type).cls == TypeClass::kBits;
}

//  X(enumerator, text)
#define GL_PTX_SPACES(X)               \
  X(kNone, "")                         \
  X(kReg, "reg")                       \
  X(kSReg, "sreg")                     \
  X(kConst, "const")                   \
  X(kGlobal, "global")                 \
  X(kLocal, "local")                   \
  X(kParam, "param")                   \
  X(kParamEntry, "param::entry")       \
  X(kParamFunc, "param::func")         \
  X(kShared, "shared")                 \
  X(kSharedCta, "shared::cta")         \
  X(kSharedCluster, "shared::cluster") \
  X(kTex, "tex")                       \
  X(kGeneric, "generic")

enum class StateSpace : std::uint8_t {
#define X(id, text) id,
  GL_PTX_SPACES(X)
#undef X
};

std::string_view TextOf(StateSpace space);
std::optional<StateSpace> SpaceFromText(std::string_view text);

}  // namespace gridloom::ptx
