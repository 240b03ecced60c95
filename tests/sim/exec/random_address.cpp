#include "tests/sim/exec/random_address.h"

#include <algorithm>

namespace gridloom::test {
namespace {

constexpr std::int64_t kMostIndex = RandomAddressKernel::kReach / 8;

std::int64_t Magnitude(std::int64_t low, std::int64_t high) { return std::max(std::abs(low), std::abs(high)); }

}  // namespace

RandomAddressKernel::RandomAddressKernel(std::uint64_t seed) : random_(seed) {
  const auto read = [&](const std::string& line, Bounds bounds) {
    const std::string reg = New("%r");
    Line(line.substr(0, line.find('$')) + reg + line.substr(line.find('$') + 1));
    variables_.push_back({reg, bounds});
  };
  read("mov.u32 $, %tid.x;", {0, 63});
  read("mov.u32 $, %tid.y;", {0, 7});
  read("mov.u32 $, %ctaid.x;", {0, 15});
  read("mov.u32 $, %ctaid.y;", {0, 3});
  read("mov.u32 $, %ntid.x;", {1, 64});
  read("mov.u32 $, %nctaid.x;", {1, 16});
  read("ld.param.u32 $, [n];", {0, kMostParam});
  read("ld.param.u32 $, [m];", {0, kMostParam});
  Line("ld.param.u64 %A, [A];");
  Line("ld.param.u64 %B, [B];");
  Statements(0, 1 + static_cast<unsigned>(Pick(4)));
  Access();
  text_ =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".func (.param .b32 result) scale(.param .b32 x, .param .b32 y)\n{\n\t.reg .b32 %r<4>;\n\tld.param.b32 %r1, "
      "[x];\n"
      "\tld.param.b32 %r2, [y];\n\tmad.lo.s32 %r3, %r1, 3, %r2;\n\tst.param.b32 [result], %r3;\n\tret;\n}\n"
      ".visible .entry k(.param .u64 A, .param .u64 B, .param .u32 n, .param .u32 m)\n{\n\t.reg .b64 %A, %B;\n";
  for (const auto& [prefix, count] : counts_) {
    const char* type = prefix == "%r" ? ".b32" : prefix == "%p" ? ".pred" : ".b64";
    text_ += "\t.reg " + std::string(type) + " " + prefix + "<" + std::to_string(count) + ">;\n";
  }
  text_ += body_ + "\tret;\n}\n";
}

std::string RandomAddressKernel::New(const char* prefix) { return prefix + std::to_string(counts_[prefix]++); }

RandomAddressKernel::Variable RandomAddressKernel::Leaf() {
  if (Pick(4) != 0) return variables_[Pick(variables_.size())];
  const std::int64_t value = static_cast<std::int64_t>(Pick(40)) - 8;
  return {std::to_string(value), {value, value}};
}

/// The variable made small enough by a mask, a remainder or a minimum.
RandomAddressKernel::Variable RandomAddressKernel::Fit(Variable variable, std::int64_t most) {
  if (Magnitude(variable.bounds.low, variable.bounds.high) <= most) return variable;
  const std::string reg = New("%r");
  switch (Pick(3)) {
    case 0: {
      std::int64_t mask = 1;
      while (2 * mask + 1 <= most) mask = 2 * mask + 1;
      Line("and.b32 " + reg + ", " + variable.reg + ", " + std::to_string(mask) + ";");
      return {reg, {0, mask}};
    }
    case 1:
      Line("rem.s32 " + reg + ", " + variable.reg + ", " + std::to_string(most) + ";");
      return {reg, {-most, most}};
    default: {
      const std::string at_most = New("%r");
      Line("min.s32 " + at_most + ", " + variable.reg + ", " + std::to_string(most) + ";");
      Line("max.s32 " + reg + ", " + at_most + ", " + std::to_string(-most / 2) + ";");
      return {reg, {-most / 2, most}};
    }
  }
}

RandomAddressKernel::Variable RandomAddressKernel::Expression(unsigned depth) {
  if (depth > 3 || Pick(4) == 0) return Leaf();
  Variable result = Combine(depth);
  return Fit(result, kMostIndex / 8);
}

RandomAddressKernel::Variable RandomAddressKernel::Combine(unsigned depth) {
  const Variable a = Expression(depth + 1), b = Expression(depth + 1);
  const auto [al, ah] = a.bounds;
  const auto [bl, bh] = b.bounds;
  const std::string r = New("%r");
  const auto line = [&](const std::string& opcode, const std::string& x, const std::string& y) {
    Line(opcode + " " + r + ", " + x + ", " + y + ";");
  };
  switch (Pick(14)) {
    case 0: line("add.s32", a.reg, b.reg); return {r, {al + bl, ah + bh}};
    case 1: line("sub.s32", a.reg, b.reg); return {r, {al - bh, ah - bl}};
    case 2: {
      const std::int64_t corners[] = {al * bl, al * bh, ah * bl, ah * bh};
      const auto [low, high] = std::ranges::minmax(corners);
      if (Magnitude(low, high) > kMostIndex) break;
      line("mul.lo.s32", a.reg, b.reg);
      return {r, {low, high}};
    }
    case 3: {
      const unsigned shift = static_cast<unsigned>(Pick(4));
      line("shl.b32", a.reg, std::to_string(shift));
      return {r, {al * (1 << shift), ah * (1 << shift)}};
    }
    case 4: {
      const unsigned shift = static_cast<unsigned>(Pick(5));
      line("shr.s32", a.reg, std::to_string(shift));
      return {r, {al >> shift, ah >> shift}};
    }
    case 5: line("min.s32", a.reg, b.reg); return {r, {std::min(al, bl), std::min(ah, bh)}};
    case 6: line("max.s32", a.reg, b.reg); return {r, {std::max(al, bl), std::max(ah, bh)}};
    case 7: {
      const std::int64_t divisor = 1 + static_cast<std::int64_t>(Pick(9));
      line(Pick(2) == 0 ? "div.s32" : "rem.s32", a.reg, std::to_string(divisor));
      const std::int64_t most = std::max<std::int64_t>(Magnitude(al, ah), divisor);
      return {r, {-most, most}};
    }
    case 8: {
      const std::string condition = Condition();
      line("selp.b32", a.reg, b.reg + ", " + condition);
      return {r, {std::min(al, bl), std::max(ah, bh)}};
    }
    case 9:
      if (al < 0 || bl < 0) break;
      line(Pick(2) == 0 ? "or.b32" : "xor.b32", a.reg, b.reg);
      return {r, {0, ah + bh}};
    case 10: {
      // Wraps round 32 bits on the way.
      const std::string far = New("%r");
      const std::string big = std::to_string(0x7FFFFF00 - static_cast<std::int64_t>(Pick(1000)));
      Line("add.s32 " + far + ", " + a.reg + ", " + big + ";");
      line("sub.s32", far, big);
      return {r, {al, ah}};
    }
    case 11: {
      const std::string call = New("%r");
      Line("{ .param .b32 p0; .param .b32 p1; .param .b32 q; st.param.b32 [p0], " + a.reg + "; st.param.b32 [p1], " +
           b.reg + "; call (q), scale, (p0, p1); ld.param.b32 " + call + ", [q]; }");
      line("add.s32", call, "1");
      return {r, {3 * al + bl + 1, 3 * ah + bh + 1}};
    }
    case 12: {
      // A border clamp, `a > b ? a + c : b`, by a select or a guarded move.
      const std::int64_t step = static_cast<std::int64_t>(Pick(5)) - 2;
      const std::string next = New("%r"), p = New("%p"), left = New("%r");
      Line("mov.u32 " + left + ", " + a.reg + ";");
      Line(std::string("setp.") + (Pick(2) == 0 ? "gt" : "lt") + ".s32 " + p + ", " + left + ", " + b.reg + ";");
      Line("add.s32 " + next + ", " + left + ", " + std::to_string(step) + ";");
      if (Pick(2) == 0) {
        line("selp.b32", next, b.reg + ", " + p);
      } else {
        Line("mov.u32 " + r + ", " + b.reg + ";");
        Line("@" + p + " mov.u32 " + r + ", " + next + ";");
      }
      return {r, {std::min(al + step, bl), std::max(ah + step, bh)}};
    }
    default: {
      const std::int64_t keep = ~((std::int64_t{1} << Pick(5)) - 1);
      line("and.b32", a.reg, std::to_string(keep));
      return {r, {al + keep, ah}};
    }
  }
  line("add.s32", a.reg, "5");
  return {r, {al + 5, ah + 5}};
}

std::string RandomAddressKernel::Condition() { return Condition(Leaf()); }

std::string RandomAddressKernel::Condition(const Variable& a) {
  static constexpr const char* kComparisons[] = {"lt", "le", "gt", "ge", "eq", "ne"};
  const Variable b = Leaf();
  const std::string p = New("%p"), left = New("%r");
  Line("mov.u32 " + left + ", " + a.reg + ";");
  Line(std::string("setp.") + kComparisons[Pick(6)] + (Pick(2) == 0 ? ".s32 " : ".u32 ") + p + ", " + left + ", " +
       b.reg + ";");
  return p;
}

void RandomAddressKernel::Access() {
  const Variable index = Fit(Expression(0), kMostIndex);
  const std::string wide = New("%rd"), address = New("%rd"), value = New("%r");
  Line("mov.u32 " + value + ", " + index.reg + ";");
  Line("mul.wide.s32 " + wide + ", " + value + ", 4;");
  std::string pointer = Pick(2) == 0 ? "%A" : "%B";
  if (Pick(5) == 0) {
    const std::string condition = Condition();
    pointer = New("%rd");
    Line("selp.b64 " + pointer + ", %A, %B, " + condition + ";");
  }
  Line("add.s64 " + address + ", " + pointer + ", " + wide + ";");
  const std::string offset = "+" + std::to_string(4 * Pick(8));
  const std::string result = New("%r");
  // Half of the guards are of the index itself, as in `if (i < n) a[i]`.
  const std::string not_negated = Pick(2) == 0 ? "@" : "@!";
  const std::string guard = Pick(3) != 0 ? "" : not_negated + (Pick(2) == 0 ? Condition() : Condition(index)) + " ";
  switch (Pick(3)) {
    case 0: return Line(guard + "ld.global.u32 " + result + ", [" + address + offset + "];");
    case 1: return Line(guard + "st.global.u32 [" + address + offset + "], 7;");
    default: return Line(guard + "red.global.add.u32 [" + address + offset + "], 1;");
  }
}

void RandomAddressKernel::Assign() { variables_.push_back(Fit(Expression(0), kMostIndex / 8)); }

void RandomAddressKernel::If(unsigned depth) {
  const std::string condition = Condition(), otherwise = "L" + std::to_string(labels_++),
                    end = "L" + std::to_string(labels_++);
  const std::string joined = New("%r");
  Line((Pick(2) == 0 ? "@" : "@!") + condition + " bra " + otherwise + ";");
  const auto outer = variables_;
  Statements(depth + 1, 1 + static_cast<unsigned>(Pick(2)));
  const Variable first = Fit(Expression(1), kMostIndex / 8);
  Line("mov.u32 " + joined + ", " + first.reg + ";");
  variables_ = outer;
  Line("bra " + end + ";");
  body_ += otherwise + ":\n";
  if (Pick(2) == 0) Statements(depth + 1, 1);
  const Variable second = Fit(Expression(1), kMostIndex / 8);
  Line("mov.u32 " + joined + ", " + second.reg + ";");
  variables_ = outer;
  body_ += end + ":\n";
  variables_.push_back(
      {joined, {std::min(first.bounds.low, second.bounds.low), std::max(first.bounds.high, second.bounds.high)}});
}

// for (v = start; v < end; v += step), tested at the top or at the bottom; w += add in each round.
void RandomAddressKernel::Loop(unsigned depth) {
  if (loops_ >= 2) return;
  ++loops_;
  const Variable start = Fit(Leaf(), 64), end = Fit(Leaf(), 64), sum = Fit(Leaf(), 64);
  const std::int64_t step = 1 + static_cast<std::int64_t>(Pick(5)), add = static_cast<std::int64_t>(Pick(9)) - 4;
  const std::int64_t rounds = std::max<std::int64_t>(0, end.bounds.high - start.bounds.low) / step + 2;
  const std::string v = New("%r"), w = New("%r"), p = New("%p"), head = "L" + std::to_string(labels_++),
                    done = "L" + std::to_string(labels_++);
  Line("mov.u32 " + v + ", " + start.reg + ";");
  Line("mov.u32 " + w + ", " + sum.reg + ";");
  const bool at_top = Pick(2) == 0;
  const Bounds v_bounds{start.bounds.low, std::max(start.bounds.high, end.bounds.high) + step};
  const Bounds w_bounds{sum.bounds.low + std::min<std::int64_t>(0, add * rounds),
                        sum.bounds.high + std::max<std::int64_t>(0, add * rounds)};
  body_ += head + ":\n";
  if (at_top) {
    Line("setp.ge.s32 " + p + ", " + v + ", " + end.reg + ";");
    Line("@" + p + " bra " + done + ";");
  }
  const auto outer = variables_;
  variables_.push_back({v, v_bounds});
  variables_.push_back({w, w_bounds});
  if (Pick(5) == 0) Line("@" + Condition() + " bra " + done + ";");
  Statements(depth + 1, 1 + static_cast<unsigned>(Pick(2)));
  Access();
  if (Pick(8) == 0) Line("@" + Condition() + " exit;");
  variables_ = outer;
  const std::string guard = Pick(3) == 0 ? "@" + Condition() + " " : "";
  Line(guard + "add.s32 " + w + ", " + w + ", " + std::to_string(add) + ";");
  Line("add.s32 " + v + ", " + v + ", " + std::to_string(step) + ";");
  if (at_top) {
    Line("bra " + head + ";");
  } else {
    Line("setp.lt.s32 " + p + ", " + v + ", " + end.reg + ";");
    Line("@" + p + " bra " + head + ";");
  }
  body_ += done + ":\n";
  variables_.push_back({v, v_bounds});
  variables_.push_back({w, w_bounds});
  --loops_;
}

void RandomAddressKernel::Statements(unsigned depth, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    switch (depth > 2 ? Pick(2) : Pick(5)) {
      case 0: Access(); break;
      case 1: Assign(); break;
      case 2: If(depth); break;
      case 3: Loop(depth); break;
      default:
        if (Pick(6) == 0) Line("@" + Condition() + " exit;");
        else Access();
        break;
    }
  }
}

}  // namespace gridloom::test
