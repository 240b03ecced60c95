// Shared by the programs of tests/workloads: the size of their inputs, and checks of a part of large results.
#pragma once

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
    const bool number = equals != nullptr && end != equals + 1 && *end == 0 && errno == 0 && value > 0 && value <= INT32_MAX;
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
inline std::size_t CheckEvery(std::size_t count, std::size_t at_most) { return count <= at_most ? 1 : count / at_most | 1; }
