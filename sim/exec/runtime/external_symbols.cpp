#include "sim/exec/runtime/external_symbols.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sim/exec/runtime/half.h"

// 128-bit division and the conversions below come from the compiler's own library.
extern "C" {
__extension__ typedef __int128 GlInt128;
__extension__ typedef unsigned __int128 GlUInt128;
GlInt128 __divti3(GlInt128, GlInt128);
GlInt128 __modti3(GlInt128, GlInt128);
GlUInt128 __udivti3(GlUInt128, GlUInt128);
GlUInt128 __umodti3(GlUInt128, GlUInt128);
}

namespace gridloom::exec {
namespace {

// LLVM passes half and bfloat in the low 16 bits of an xmm register; a float argument or result is the same register.
std::uint16_t Low16(float carrier) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(carrier)); }
float Carrier(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits}); }

float ExtendHalfToFloat(float half) { return HalfToFloat(Low16(half)); }
double ExtendHalfToDouble(float half) { return HalfToFloat(Low16(half)); }
float TruncFloatToHalf(float value) { return Carrier(FloatToHalf(value)); }
float TruncDoubleToHalf(double value) { return Carrier(DoubleToHalf(value)); }
float TruncFloatToBfloat(float value) { return Carrier(FloatToBfloat(value)); }
float TruncDoubleToBfloat(double value) { return Carrier(DoubleToBfloat(value)); }

GlInt128 Multiply128(GlInt128 a, GlInt128 b) {
  return static_cast<GlInt128>(static_cast<GlUInt128>(a) * static_cast<GlUInt128>(b));
}

struct External {
  std::string_view name;
  const void* address;
};

template <typename F>
const void* Address(F* function) {
  return reinterpret_cast<const void*>(function);
}
using FloatFn = float(float);
using DoubleFn = double(double);
using Float2Fn = float(float, float);
using Double2Fn = double(double, double);
using Float3Fn = float(float, float, float);
using Double3Fn = double(double, double, double);

#define GL_FLOAT(name) \
  {#name "f", Address<FloatFn>(::name##f)}, { #name, Address < DoubleFn>(::name) }

const External kExternals[] = {
    {"memcpy", Address<void*(void*, const void*, std::size_t)>(::memcpy)},
    {"memmove", Address<void*(void*, const void*, std::size_t)>(::memmove)},
    {"memset", Address<void*(void*, int, std::size_t)>(::memset)},
    {"memcmp", Address<int(const void*, const void*, std::size_t)>(::memcmp)},
    {"fmaf", Address<Float3Fn>(::fmaf)},
    {"fma", Address<Double3Fn>(::fma)},
    {"fmodf", Address<Float2Fn>(::fmodf)},
    {"fmod", Address<Double2Fn>(::fmod)},
    {"fminf", Address<Float2Fn>(::fminf)},
    {"fmin", Address<Double2Fn>(::fmin)},
    {"fmaxf", Address<Float2Fn>(::fmaxf)},
    {"fmax", Address<Double2Fn>(::fmax)},
    GL_FLOAT(floor),
    GL_FLOAT(ceil),
    GL_FLOAT(trunc),
    GL_FLOAT(rint),
    GL_FLOAT(nearbyint),
    GL_FLOAT(round),
    GL_FLOAT(sqrt),
    GL_FLOAT(exp2),
    GL_FLOAT(log2),
    GL_FLOAT(sin),
    GL_FLOAT(cos),
    {"roundevenf", Address<FloatFn>(::rintf)},  // the executor never leaves the round-to-nearest-even mode
    {"roundeven", Address<DoubleFn>(::rint)},
    {"__divti3", Address(__divti3)},
    {"__modti3", Address(__modti3)},
    {"__udivti3", Address(__udivti3)},
    {"__umodti3", Address(__umodti3)},
    {"__multi3", Address(Multiply128)},
    {"__extendhfsf2", Address(ExtendHalfToFloat)},
    {"__extendhfdf2", Address(ExtendHalfToDouble)},
    {"__truncsfhf2", Address(TruncFloatToHalf)},
    {"__truncdfhf2", Address(TruncDoubleToHalf)},
    {"__truncsfbf2", Address(TruncFloatToBfloat)},
    {"__truncdfbf2", Address(TruncDoubleToBfloat)},
};
#undef GL_FLOAT

}  // namespace

const void* FindExternalSymbol(std::string_view name) {
  for (const External& external : kExternals)
    if (external.name == name) return external.address;
  return nullptr;
}

}  // namespace gridloom::exec
