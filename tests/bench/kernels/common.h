// What the benchmarks' inputs and C++ forms share. Their files are compiled with -O3 -march=native; cores are shared
// out with OpenMP.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/benchmarks.h"

namespace bench {

using Floats = std::vector<float>;
using Ints = std::vector<int>;
using Words = std::vector<std::uint32_t>;
using Pointer = Device::Pointer;

inline unsigned Hash(unsigned v) {
  v = (v ^ 61) ^ (v >> 16);
  v *= 9;
  v ^= v >> 4;
  v *= 0x27d4eb2d;
  return v ^ (v >> 15);
}
inline Floats RandomFloats(int n, float low, float high, unsigned seed) {
  Floats v(n);
  for (int i = 0; i < n; ++i)
    v[i] = low + (high - low) * static_cast<float>(Hash(i * 2 + seed * 7919) & 0xffffff) / 0x1000000;
  return v;
}
inline unsigned Blocks(int n, int block) { return static_cast<unsigned>((n + block - 1) / block); }
inline int Scaled(double scale, int n, int multiple) {
  return std::max(multiple, static_cast<int>(n * scale) / multiple * multiple);
}

/// Device memory, input and output of one benchmark; shared by its functions.
template <class T>
struct State {
  std::vector<std::uint64_t> memory;
  std::vector<T> out, scratch;
};
template <class T>
std::vector<double> Doubles(const std::vector<T>& v) {
  return {v.begin(), v.end()};
}
template <class T>
std::vector<double> Download(Device& device, std::uint64_t memory, std::size_t count) {
  std::vector<T> host(count);
  device.Read(host.data(), memory, count * sizeof(T));
  return Doubles(host);
}

}  // namespace bench
