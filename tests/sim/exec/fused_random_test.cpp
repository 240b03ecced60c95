// Random expressions of products and sums against the rule of sim/exec/compiler/lift_fuse.h, worked out on the
// expression itself: a list of nodes with their readers, evaluated by std::fma where the rule fuses and by single
// operations elsewhere.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/exec/spmd_runner.h"

namespace gridloom::exec {
namespace {

struct Node {
  enum Kind { kInput, kMul, kAdd, kSub } kind = kInput;
  std::size_t operand[2] = {};
  int fused = -1;
};

class Expression {
 public:
  static constexpr std::size_t kInputs = 4;

  explicit Expression(std::mt19937& random) : nodes_(kInputs) {
    const std::size_t count = 2 + random() % 14;
    std::vector<std::size_t> products;
    for (std::size_t n = 0; n < count; ++n) {
      const bool product = products.empty() || random() % 2 == 0;
      // A sum reads a product mostly, in either place; a product reads inputs and sums.
      const auto any = [&] { return random() % nodes_.size(); };
      Node node{product ? Node::kMul : random() % 2 == 0 ? Node::kAdd : Node::kSub, {any(), any()}};
      if (!product) node.operand[random() % 2] = products[random() % products.size()];
      if (product) products.push_back(nodes_.size());
      nodes_.push_back(node);
    }
    FindLive(random);
    Fuse();
  }

  const std::vector<std::size_t>& outputs() const { return outputs_; }

  std::string Ptx() const {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
        "  .reg .b64 %in, %out; .reg .f64 %x<64>;\n  ld.param.u64 %in, [in];\n  ld.param.u64 %out, [out];\n";
    const auto reg = [](std::size_t n) { return "%x" + std::to_string(n); };
    for (std::size_t i = 0; i < kInputs; ++i)
      text += "  ld.global.f64 " + reg(i) + ", [%in+" + std::to_string(i * 8) + "];\n";
    for (std::size_t n = kInputs; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      text += std::string("  ") +
              (node.kind == Node::kMul   ? "mul"
               : node.kind == Node::kAdd ? "add"
                                         : "sub") +
              ".f64 " + reg(n) + ", " + reg(node.operand[0]) + ", " + reg(node.operand[1]) + ";\n";
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      text += "  st.global.f64 [%out+" + std::to_string(i * 8) + "], " + reg(outputs_[i]) + ";\n";
    return text + "  ret;\n}\n";
  }

  std::vector<double> Evaluate(const double* in) const {
    std::vector<double> value(in, in + kInputs);
    for (std::size_t n = kInputs; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      volatile double a = value[node.operand[0]], b = value[node.operand[1]], result = 0;
      if (node.fused >= 0) {
        const Node& product = nodes_[node.operand[node.fused]];
        const double x = value[product.operand[0]], y = value[product.operand[1]];
        const bool sub = node.kind == Node::kSub;
        if (node.fused == 0) result = std::fma(x, y, sub ? -b : b);
        else result = std::fma(sub ? -x : x, y, a);
      } else {
        result = node.kind == Node::kMul ? a * b : node.kind == Node::kAdd ? a + b : a - b;
      }
      value.push_back(static_cast<double>(result));
    }
    std::vector<double> out;
    for (const std::size_t n : outputs_) out.push_back(value[n]);
    return out;
  }

 private:
  // What nobody reads is stored, and some of what is read.
  void FindLive(std::mt19937& random) {
    std::vector<bool> read(nodes_.size());
    for (std::size_t n = kInputs; n < nodes_.size(); ++n)
      read[nodes_[n].operand[0]] = read[nodes_[n].operand[1]] = true;
    for (std::size_t n = kInputs; n < nodes_.size(); ++n) {
      if (!read[n] ? random() % 8 != 0 : random() % 10 == 0) outputs_.push_back(n);
    }
    live_.assign(nodes_.size(), false);
    for (const std::size_t n : outputs_) live_[n] = true;
    for (std::size_t n = nodes_.size(); n-- > kInputs;) {
      if (live_[n]) live_[nodes_[n].operand[0]] = live_[nodes_[n].operand[1]] = true;
    }
  }

  // Whether everything that reads the product is a sum that can still be, or is, fused with it; and how many do.
  bool Fits(std::size_t product, std::size_t* readers) const {
    if (nodes_[product].kind != Node::kMul) return false;
    *readers = 0;
    for (const std::size_t n : outputs_) {
      if (n == product) return false;
    }
    for (std::size_t n = kInputs; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      if (!live_[n] || (node.operand[0] != product && node.operand[1] != product)) continue;
      if (node.kind == Node::kMul || node.operand[0] == node.operand[1]) return false;
      if (node.fused >= 0 && node.operand[node.fused] != product) return false;
      ++*readers;
    }
    return true;
  }

  void Fuse() {
    for (const bool alone : {true, false}) {
      for (std::size_t n = kInputs; n < nodes_.size(); ++n) {
        Node& node = nodes_[n];
        if (!live_[n] || node.kind == Node::kMul) continue;
        for (int side = 0; side < 2 && node.fused < 0; ++side) {
          std::size_t readers = 0;
          if (Fits(node.operand[side], &readers) && (!alone || readers == 1)) node.fused = side;
        }
      }
    }
  }

  std::vector<Node> nodes_;
  std::vector<std::size_t> outputs_;
  std::vector<bool> live_;
};

}  // namespace

TEST_CASE("Fused_RandomExpressions_AreAsTheRuleSays") {
  std::mt19937 random(24);
  std::uniform_real_distribution<double> number(-2, 2);
  for (int round = 0; round < 150; ++round) {
    const Expression expression(random);
    if (expression.outputs().empty()) continue;
    SpmdRunner runner(expression.Ptx(), "k");
    REQUIRE(runner.error() == "");
    for (int values = 0; values < 20; ++values) {
      double in[Expression::kInputs];
      for (double& x : in) x = number(random);
      std::vector<double> out(expression.outputs().size());
      struct {
        const double* in;
        double* out;
      } params{in, out.data()};
      runner.Run(&params);
      INFO("round " << round << "\n" << expression.Ptx());
      REQUIRE(out == expression.Evaluate(in));
    }
  }
}

}  // namespace gridloom::exec
