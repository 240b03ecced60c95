// Shared by the programs of tests/workloads/public, each of which runs one of several kernels by name.
#pragma once

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "workload.h"

/// A kernel that a program offers, and what runs it: takes the numbers of the command line.
template <class Run>
using Kernels = std::vector<std::pair<std::string, Run>>;

/// What runs the kernel that the command line names first. Ends the program, with the names, if there is none of that
/// name.
template <class Run>
Run Chosen(int argc, char** argv, const Kernels<Run>& kernels) {
  std::string names;
  for (const auto& [name, run] : kernels) {
    if (argc > 1 && name == argv[1]) return run;
    names += (names.empty() ? "" : "|") + name;
  }
  Refuse(std::string("usage: ") + argv[0] + " " + names + " [--NAME=VALUE…]");
}

/// a * b + c, as a device has it: rounded once, or wrapped around.
template <class T>
T MultiplyAdd(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) return std::fma(a, b, c);
  else return static_cast<T>(static_cast<unsigned>(a) * static_cast<unsigned>(b) + static_cast<unsigned>(c));
}
