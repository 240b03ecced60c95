// Shared by the programs of tests/workloads: the sizes of their inputs, numbers of their command lines, arrays, and
// checks of a part of large results.
#pragma once

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string>
#include <utility>

#include "app.h"

/// One number that an input is made of.
struct Size {
  const char* name;
  long scaled;  ///< the default: same character, a fraction of the work
  long paper;   ///< with --paper
};

/// The sizes of a run: scaled ones, the paper's (--paper), and any of them set by hand (--NAME=VALUE).
class Sizes {
 public:
  Sizes(int argc, char** argv, std::initializer_list<Size> sizes) {
    const bool paper = argc > 1 && std::strcmp(argv[1], "--paper") == 0;
    for (const Size& size : sizes) values_.emplace_back(size.name, paper ? size.paper : size.scaled);
    for (int i = paper ? 2 : 1; i < argc; ++i) Set(argv[0], argv[i]);
  }

  int operator[](const char* name) const {
    for (const auto& [known, value] : values_) {
      if (known == name) return static_cast<int>(value);
    }
    std::printf("no size %s\n", name);
    std::exit(2);
  }

 private:
  void Set(const char* program, const char* argument) {
    const char* equals = std::strchr(argument, '=');
    char* end = nullptr;
    errno = 0;
    const long value = equals != nullptr ? std::strtol(equals + 1, &end, 10) : 0;
    const bool number =
        equals != nullptr && end != equals + 1 && *end == 0 && errno == 0 && value > 0 && value <= INT32_MAX;
    for (auto& [name, current] : values_) {
      if (number && std::string(argument, equals) == "--" + name) {
        current = value;
        return;
      }
    }
    std::printf("usage: %s [--paper]", program);
    for (const auto& [name, current] : values_) std::printf(" [--%s=%ld]", name.c_str(), current);
    std::printf("\n");
    std::exit(2);
  }

  std::vector<std::pair<std::string, long>> values_;
};

/// Tells any two results apart, in every bit (FNV-1a): runs of one program can be compared by what they print.
template <class T>
std::uint64_t Digest(const std::vector<T>& results) {
  std::uint64_t digest = 0xCBF29CE484222325u;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(results.data());
  for (std::size_t i = 0; i < results.size() * sizeof(T); ++i) digest = (digest ^ bytes[i]) * 0x100000001B3u;
  return digest;
}

template <class T>
void PrintDigest(const char* what, const std::vector<T>& results) {
  std::printf("%s: %016llx\n", what, static_cast<unsigned long long>(Digest(results)));
}

/// Step with which `count` results are looked at when a host reference of all of them would take minutes.
inline std::size_t CheckEvery(std::size_t count, std::size_t at_most) {
  return count <= at_most ? 1 : count / at_most | 1;
}

/// Ends a program that cannot run as it was asked to.
[[noreturn]] inline void Refuse(const std::string& sentence) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::exit(2);
}

/// One number that a run is made of: set with --NAME=VALUE.
struct Number {
  const char* name;
  int small;  ///< the default, and --small: same character, a fraction of the work
  int paper;  ///< with --paper: the paper's size, or as near as is known and possible; the program says what it is
  int least, most, step = 1;

  /// What `text` says, or the end of `program`.
  int Checked(const char* program, const std::string& text) const {
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text.c_str(), &end, 10);
    if (end != text.c_str() && *end == 0 && errno == 0 && value >= least && value <= most && value % step == 0) {
      return static_cast<int>(value);
    }
    const std::string multiple = step == 1 ? "a number" : "a multiple of " + std::to_string(step);
    Refuse(std::string(program) + ": --" + name + "=" + text + " is not " + multiple + " from " +
           std::to_string(least) + " to " + std::to_string(most));
  }
};

/// Pinned host memory, which begins at a page: what copies that overlap with the rest of a program need.
template <class T>
class HostArray {
 public:
  explicit HostArray(std::size_t count) : count_(count) {
    CU(cudaMallocHost(&data_, std::max<std::size_t>(count, 1) * sizeof(T)));
  }
  HostArray(const HostArray&) = delete;
  ~HostArray() { cudaFreeHost(data_); }
  T* data() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return count_; }
  std::vector<T> Values() const { return std::vector<T>(data_, data_ + count_); }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Device memory: as cudaMalloc leaves it, or a copy of host values.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    CU(cudaMalloc(&data_, std::max<std::size_t>(count, 1) * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { Write(values); }
  DeviceArray(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  operator T*() const { return data_; }
  void Write(const std::vector<T>& values) const {
    CU(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> Read() const { return Read(count_); }
  std::vector<T> Read(std::size_t count) const {
    std::vector<T> values(count);
    CU(cudaMemcpy(values.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  void CopyFrom(const T* host) const { CU(cudaMemcpyAsync(data_, host, count_ * sizeof(T), cudaMemcpyHostToDevice)); }
  void CopyTo(T* host) const { CU(cudaMemcpyAsync(host, data_, count_ * sizeof(T), cudaMemcpyDeviceToHost)); }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// What float inputs are made of where nothing else is said.
inline std::vector<float> UniformValues(std::size_t count, float low, float high, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Uniform(low, high);
  return values;
}

/// CTAs, of `each` elements, that `count` elements need.
inline int Ctas(int count, int each) { return (count + each - 1) / each; }
