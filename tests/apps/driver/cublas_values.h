// Matrices for the tests of cuBLAS's products: elements of every type as complex numbers, exactly, and the product on
// the host.
#pragma once

#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "cublas.h"

using Number = std::complex<double>;

inline std::size_t SizeOf(Data type) {
  switch (type) {
    case kI8:
    case kE4m3:
    case kE5m2: return 1;
    case kF16:
    case kBf16: return 2;
    case kF64:
    case kC32: return 8;
    case kC64: return 16;
    default: return 4;
  }
}
inline bool IsComplex(Data type) { return type == kC32 || type == kC64; }

template <typename T>
T Get(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T>
void Put(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

/// The value of an 8-bit number with `mantissa` bits of mantissa.
inline double Small(unsigned char bits, int mantissa, int bias) {
  const int exponent = (bits & 0x7f) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  const double size = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                    : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
  return (bits & 0x80) != 0 ? -size : size;
}

inline Number Load(const char* data, std::size_t i, Data type) {
  const char* const at = data + i * SizeOf(type);
  switch (type) {
    case kF64: return Get<double>(at);
    case kF16: return static_cast<double>(Get<_Float16>(at));
    case kBf16: {
      const std::uint32_t bits = static_cast<std::uint32_t>(Get<std::uint16_t>(at)) << 16;
      return Get<float>(reinterpret_cast<const char*>(&bits));
    }
    case kI8: return Get<signed char>(at);
    case kI32: return Get<int>(at);
    case kC32: return Number(Get<std::complex<float>>(at));
    case kC64: return Get<Number>(at);
    case kE4m3: return Small(Get<unsigned char>(at), 3, 7);
    case kE5m2: return Small(Get<unsigned char>(at), 2, 15);
    default: return Get<float>(at);
  }
}

/// Random bytes that are elements of small size: eighths up to 2, integers up to 9.
inline void Fill(std::vector<char>* data, Data type, std::mt19937* random) {
  const std::size_t size = SizeOf(type), count = data->size() / size;
  for (std::size_t i = 0; i < count; ++i) {
    char* const at = data->data() + i * size;
    const double re = static_cast<int>((*random)() % 33) / 8.0 - 2, im = static_cast<int>((*random)() % 33) / 8.0 - 2;
    switch (type) {
      case kF64: Put(at, re); break;
      case kF16: Put(at, static_cast<_Float16>(re)); break;
      case kBf16: {
        const float value = static_cast<float>(re);  // eighths have few bits: the lower half is empty
        Put(at, static_cast<std::uint16_t>(Get<std::uint32_t>(reinterpret_cast<const char*>(&value)) >> 16));
        break;
      }
      case kI8: Put(at, static_cast<signed char>(static_cast<int>((*random)() % 19) - 9)); break;
      case kI32: Put(at, static_cast<int>((*random)() % 19) - 9); break;
      case kC32: Put(at, std::complex<float>(static_cast<float>(re), static_cast<float>(im))); break;
      case kC64: Put(at, Number(re, im)); break;
      case kE4m3: Put(at, static_cast<unsigned char>((*random)() & 0xbf)); break;  // up to 1.875, subnormal ones, too
      case kE5m2: Put(at, static_cast<unsigned char>(((*random)() & 0x83) | 0x38)); break;  // 0.5 to 0.875
      default: Put(at, static_cast<float>(re)); break;
    }
  }
}

/// How far a result of this type may be from the exact one of size `size`.
inline double Tolerance(Data type, double size) {
  switch (type) {
    case kF64:
    case kC64: return 1e-13 * (size + 1);
    case kF16: return 1e-3 * size + 1e-4;
    case kBf16: return 8e-3 * size + 1e-4;
    case kE4m3: return 0.0626 * size + 1e-3;
    case kE5m2: return 0.126 * size + 1e-4;
    case kI32: return 0;
    default: return 2e-6 * (size + 1);
  }
}
