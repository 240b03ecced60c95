// Random kernels whose addresses are arithmetic on indices: branches, loops, minima, shifts, choices of pointers,
// calls, early exits; every address stays inside the array by construction. For the soundness of profiled ranges.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace gridloom::test {

class RandomAddressKernel {
 public:
  /// `.entry k(.param .u64 A, .param .u64 B, .param .u32 n, .param .u32 m)`; A and B point to the middle of arrays of
  /// 2 * kReach bytes; n and m are at most kMostParam.
  static constexpr std::int64_t kReach = std::int64_t{1} << 21;
  static constexpr std::int64_t kMostParam = 40;
  explicit RandomAddressKernel(std::uint64_t seed);
  const std::string& ptx() const { return text_; }

 private:
  struct Bounds {
    std::int64_t low = 0, high = 0;
  };
  struct Variable {
    std::string reg;
    Bounds bounds;
  };

  std::uint64_t Pick(std::uint64_t count) { return random_() % count; }
  std::string New(const char* prefix);
  void Line(const std::string& line) { body_ += "\t" + line + "\n"; }
  Variable Leaf();
  Variable Expression(unsigned depth);
  Variable Combine(unsigned depth);
  Variable Fit(Variable variable, std::int64_t most);
  std::string Condition();
  /// `a` compared with something.
  std::string Condition(const Variable& a);
  void Statements(unsigned depth, unsigned count);
  void If(unsigned depth);
  void Loop(unsigned depth);
  void Access();
  void Assign();

  std::mt19937_64 random_;
  std::string text_, body_;
  std::map<std::string, unsigned> counts_;
  std::vector<Variable> variables_;  ///< those that may be read
  unsigned labels_ = 0, loops_ = 0;
};

}  // namespace gridloom::test
