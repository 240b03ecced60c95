// Shared by the programs of tests/apps: checked calls, device buffers, comparison with a host result, a verdict.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

/// Runs a runtime API call and ends the program when it fails.
#define CU(call)                                                                                    \
  do {                                                                                              \
    const cudaError_t cu_error = (call);                                                            \
    if (cu_error != cudaSuccess) {                                                                  \
      std::printf("FAIL %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(cu_error)); \
      std::exit(1);                                                                                 \
    }                                                                                               \
  } while (0)

/// Checks the launch before it and waits for it.
#define CU_LAUNCHED()            \
  do {                           \
    CU(cudaGetLastError());      \
    CU(cudaDeviceSynchronize()); \
  } while (0)

struct Tally {
  long checks = 0, bad = 0;
};
inline Tally& Checks() {
  static Tally tally;
  return tally;
}

inline bool Note(bool good, const char* what, long index, double got, double want) {
  ++Checks().checks;
  if (!good && ++Checks().bad <= 10) {
    std::printf("%s[%ld]: got %.17g, want %.17g\n", what, index, got, want);
    std::fflush(stdout);  // it stands even if what follows never ends
  }
  return good;
}
/// Equal bit by bit (so that -0 differs from 0 and NaN equals itself).
template <class T>
bool Same(const char* what, long index, T got, T want) {
  const bool good = std::memcmp(&got, &want, sizeof(T)) == 0;
  if (!good && Checks().bad < 10) {
    unsigned long long g = 0, w = 0;
    std::memcpy(&g, &got, sizeof(T) < 8 ? sizeof(T) : 8);
    std::memcpy(&w, &want, sizeof(T) < 8 ? sizeof(T) : 8);
    std::printf("  bits 0x%llx, want 0x%llx: ", g, w);
  }
  return Note(good, what, index, static_cast<double>(got), static_cast<double>(want));
}
inline bool Near(const char* what, long index, double got, double want, double relative, double absolute = 0) {
  const bool good = (std::isnan(got) && std::isnan(want)) || got == want ||
                    std::fabs(got - want) <= relative * std::fabs(want) + absolute;
  return Note(good, what, index, got, want);
}
inline bool True(const char* what, bool good) { return Note(good, what, 0, good, 1); }
inline bool Error(const char* what, cudaError_t got, cudaError_t want) { return Note(got == want, what, 0, got, want); }

/// The program's last line and its exit status.
inline int Verdict() {
  const Tally& tally = Checks();
  if (tally.bad == 0) std::printf("PASS: %ld checks\n", tally.checks);
  else std::printf("FAIL: %ld of %ld checks\n", tally.bad, tally.checks);
  return tally.bad != 0;
}

/// Device memory that lives as long as the object.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) {
    CU(cudaMalloc(&data_, count * sizeof(T)));
    CU(cudaMemset(data_, 0, count * sizeof(T)));
  }
  explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) {
    CU(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }
  operator T*() const { return data_; }
  std::size_t size() const { return count_; }
  std::vector<T> Read() const {
    std::vector<T> host(count_);
    CU(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Small reproducible generator (xorshift64*).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::uint64_t Next64() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }
  std::uint32_t Next() { return static_cast<std::uint32_t>(Next64() >> 32); }
  float Uniform(float low, float high) { return low + (high - low) * (Next() >> 8) * (1.0f / (1 << 24)); }

 private:
  std::uint64_t state_;
};
