// Video instructions (PTX ISA, 9.7.16), written after the manual's pseudo-code.
#include <algorithm>
#include <array>

#include "tests/sim/exec/instruction_case.h"

namespace gridloom::exec {
namespace {

using Wide = __int128;

struct Part {
  std::string text;  ///< "" is the whole word
  unsigned bits = 32, shift = 0;
};
const Part kParts[] = {{"", 32, 0}, {".b0", 8, 0}, {".b2", 8, 16}, {".b3", 8, 24}, {".h0", 16, 0}, {".h1", 16, 16}};

Wide Select(std::uint32_t word, const Part& part, bool is_signed) {
  const std::uint32_t value = word >> part.shift & (part.bits == 32 ? ~0u : (1u << part.bits) - 1);
  if (!is_signed) return value;
  return static_cast<std::int32_t>(value << (32 - part.bits)) >> (32 - part.bits);
}

Wide Clamp(Wide value, unsigned bits, bool is_signed) {
  const Wide one = 1;
  if (is_signed) return std::clamp<Wide>(value, -(one << (bits - 1)), (one << (bits - 1)) - 1);
  return std::clamp<Wide>(value, 0, (one << bits) - 1);
}

Wide Compute(const std::string& op, Wide a, Wide b) {
  if (op == "vadd") return a + b;
  if (op == "vsub") return a - b;
  if (op == "vabsdiff") return a > b ? a - b : b - a;
  if (op == "vmin") return std::min(a, b);
  if (op == "vmax") return std::max(a, b);
  if (op == "vavrg") return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
  if (op == "vshl") return a * (Wide{1} << static_cast<int>(b));
  if (op == "vshr") return a >> static_cast<int>(b);
  return 0;
}

bool Holds(const std::string& cmp, Wide a, Wide b) {
  if (cmp == "eq") return a == b;
  if (cmp == "ne") return a != b;
  if (cmp == "lt") return a < b;
  if (cmp == "le") return a <= b;
  if (cmp == "gt") return a > b;
  return a >= b;
}

std::string Sign(bool is_signed) { return is_signed ? ".s32" : ".u32"; }

// The second operation on all bits of the first one's result. Of an unsigned destination, what is below zero counts as
// large.
std::uint64_t Secondary(const std::string& op2, Wide value, std::uint32_t c, bool is_signed) {
  if (op2 == ".add") return static_cast<std::uint64_t>(value + c);
  const bool less = is_signed ? value < static_cast<std::int32_t>(c) : value >= 0 && value < c;
  return less == (op2 == ".min") ? static_cast<std::uint64_t>(value) : c;
}

// A GPU has 32 bits of a sum or difference when its second operation comes.
Wide Cut(Wide value, bool is_signed) {
  const auto low = static_cast<std::uint32_t>(value);
  return is_signed ? Wide{static_cast<std::int32_t>(low)} : Wide{low};
}

void AddScalar(std::vector<InstructionCase>& cases, const std::string& op, bool ds, bool as, bool bs, const Part& pa,
               const Part& pb) {
  const bool shift = op == "vshl" || op == "vshr";
  const std::string types = Sign(ds) + Sign(as) + Sign(bs);
  const std::string sources = "%s0" + pa.text + ", %s1" + pb.text;
  for (const std::string& mode : shift ? std::vector<std::string>{".clamp", ".wrap"} : std::vector<std::string>{""}) {
    auto value = [=](const Values& in) {
      const Wide a = Select(in.u32(0), pa, as);
      Wide b = Select(in.u32(1), pb, bs);
      if (shift) b = mode == ".wrap" ? b & 31 : std::min<Wide>(b, 32);
      return Compute(op, a, b);
    };
    for (const bool sat : {false, true}) {
      const std::string head = op + types + (sat ? ".sat" : "") + mode;
      cases.push_back(Exact(head + " %d0, " + sources + ";", "b32", {"u32", "u32"}, [=](const Values& in) {
        return static_cast<std::uint64_t>(sat ? Clamp(value(in), 32, ds) : value(in));
      }));
      for (const std::string op2 : {".add", ".min", ".max"}) {
        cases.push_back(
            Exact(head + op2 + " %d0, " + sources + ", %s2;", "b32", {"u32", "u32", "u32"}, [=](const Values& in) {
              const Wide first = sat ? Clamp(value(in), 32, ds) : value(in);
              return Secondary(op2, op == "vadd" || op == "vsub" ? Cut(first, ds) : first, in.u32(2), ds);
            }));
      }
      const Part& into = pa.bits == 8 ? kParts[5] : kParts[2];
      cases.push_back(Exact(
          head + " %d0" + into.text + ", " + sources + ", %s2;", "b32", {"u32", "u32", "u32"}, [=](const Values& in) {
            const std::uint32_t mask = ((1u << into.bits) - 1) << into.shift;
            const auto tmp = static_cast<std::uint32_t>(sat ? Clamp(value(in), into.bits, ds) : value(in));
            return std::uint64_t{(tmp << into.shift & mask) | (in.u32(2) & ~mask)};
          }));
    }
  }
}

void AddScalars(std::vector<InstructionCase>& cases) {
  std::size_t turn = 0;
  for (const std::string op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"}) {
    for (int signs = 0; signs < 8; ++signs) {
      const bool shift = op == "vshl" || op == "vshr";
      if (shift && (signs & 4) != 0) continue;  // the count is unsigned
      ++turn;
      AddScalar(cases, op, (signs & 1) != 0, (signs & 2) != 0, (signs & 4) != 0, kParts[turn % 6],
                kParts[turn * 5 % 6]);
      if (turn % 6 != 0)  // whole words, of which the sum may need 33 bits
        AddScalar(cases, op, (signs & 1) != 0, (signs & 2) != 0, (signs & 4) != 0, kParts[0], kParts[0]);
    }
  }
  for (const std::string cmp : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    cases.push_back(Exact("vset.s32.u32." + cmp + " %d0, %s0.b1, %s1;", "b32", {"u32", "u32"}, [=](const Values& in) {
      return std::uint64_t{Holds(cmp, static_cast<std::int8_t>(in.u32(0) >> 8), in.u32(1))};
    }));
    cases.push_back(Exact(
        "vset.s32.s32." + cmp + ".add %d0, %s0, %s1.h1, %s2;", "b32", {"u32", "u32", "u32"}, [=](const Values& in) {
          return std::uint64_t{Holds(cmp, in.s32(0), static_cast<std::int16_t>(in.u32(1) >> 16)) + in.u32(2)};
        }));
    for (const std::string op2 : {".min", ".max"}) {
      cases.push_back(Exact(
          "vset.s32.u32." + cmp + op2 + " %d0, %s0, %s1, %s2;", "b32", {"u32", "u32", "u32"},
          [=](const Values& in) { return Secondary(op2, Wide{Holds(cmp, in.s32(0), in.u32(1))}, in.u32(2), false); }));
    }
  }
}

void AddMad(std::vector<InstructionCase>& cases) {
  for (int signs = 0; signs < 4; ++signs) {
    const bool as = (signs & 1) != 0, bs = (signs & 2) != 0;
    const std::string types = (as || bs ? ".s32" : ".u32") + Sign(as) + Sign(bs);
    for (const std::string scale : {"", ".shr7", ".shr15"}) {
      for (const bool sat : {false, true}) {
        for (int form = 0; form < 4; ++form) {  // plain, -a, -c, .po
          const std::string text = std::string("vmad") + types + (form == 3 ? ".po" : "") + (sat ? ".sat" : "") +
                                   scale + " %d0, " + (form == 1 ? "-" : "") + "%s0.h0, %s1, " +
                                   (form == 2 ? "-" : "") + "%s2;";
          if (form == 3 && !sat && !scale.empty()) continue;
          cases.push_back(Exact(text, "b32", {"u32", "u32", "u32"}, [=](const Values& in) {
            const bool final_signed = as || bs || form == 1 || form == 2;
            const Wide product = Select(in.u32(0), kParts[4], as) * Select(in.u32(1), kParts[0], bs);
            // Negation of c is of the 32-bit number, before it is extended.
            const std::uint32_t c_bits = form == 2 ? ~in.u32(2) : in.u32(2);
            const Wide c = final_signed ? Wide{static_cast<std::int32_t>(c_bits)} : Wide{c_bits};
            Wide sum = (form == 1 ? ~product : product) + c + (form == 0 ? 0 : 1);
            if (scale == ".shr7") sum >>= 7;
            if (scale == ".shr15") sum >>= 15;
            return static_cast<std::uint64_t>(sat ? Clamp(sum, 32, final_signed) : sum);
          }));
        }
      }
    }
  }
}

struct SimdForm {
  std::string d, a, b;                     ///< selectors
  std::vector<unsigned> lanes;             ///< written
  std::array<unsigned, 4> from_a, from_b;  ///< part of {b, a} for every lane
};

void AddSimd(std::vector<InstructionCase>& cases, unsigned lanes, const std::string& op, bool ds, bool as, bool bs,
             const SimdForm& form, const std::string& cmp) {
  const unsigned bits = 32 / lanes;
  const std::string types = (op == "vset" ? "" : Sign(ds)) + Sign(as) + Sign(bs) + (cmp.empty() ? "" : "." + cmp);
  for (const bool sat : {false, true}) {
    if (sat && op == "vset") continue;
    for (const bool add : {false, true}) {
      if (sat && add) continue;
      cases.push_back(
          Exact(op + std::to_string(lanes) + types + (sat ? ".sat" : "") + (add ? ".add" : "") + " %d0" + form.d +
                    ", %s0" + form.a + ", %s1" + form.b + ", %s2;",
                "b32", {"u32", "u32", "u32"}, [=](const Values& in) {
                  const std::uint64_t pool = in.v[1] << 32 | in.v[0];
                  auto part = [&](unsigned index, bool is_signed) {
                    return Select(static_cast<std::uint32_t>(pool >> (bits * index)), {"", bits, 0}, is_signed);
                  };
                  std::uint32_t merged = in.u32(2), sum = in.u32(2);
                  for (const unsigned lane : form.lanes) {
                    const Wide a = part(form.from_a[lane], as), b = part(form.from_b[lane], bs);
                    Wide t = op == "vset" ? Wide{Holds(cmp, a, b)} : Compute(op, a, b);
                    if (sat) t = Clamp(t, bits, ds);
                    sum += static_cast<std::uint32_t>(t);
                    const std::uint32_t mask = ((1u << bits) - 1) << (bits * lane);
                    merged = (merged & ~mask) | (static_cast<std::uint32_t>(t) << (bits * lane) & mask);
                  }
                  return std::uint64_t{add ? sum : merged};
                }));
    }
  }
}

void AddSimds(std::vector<InstructionCase>& cases) {
  const SimdForm pairs[] = {{"", "", "", {0, 1}, {0, 1}, {2, 3}},
                            {".h1", ".h23", ".h01", {1}, {3, 2}, {1, 0}},
                            {".h0", "", ".h21", {0}, {0, 1}, {1, 2}}};
  const SimdForm quads[] = {{"", "", "", {0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7}},
                            {".b310", ".b0246", ".b7531", {0, 1, 3}, {6, 4, 2, 0}, {1, 3, 5, 7}}};
  int turn = 0;
  for (const std::string op : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"}) {
    for (int signs = 0; signs < 8; ++signs) {
      const bool ds = (signs & 1) != 0, as = (signs & 2) != 0, bs = (signs & 4) != 0;
      ++turn;
      AddSimd(cases, 2, op, ds, as, bs, pairs[turn % 3], "");
      AddSimd(cases, 4, op, ds, as, bs, quads[turn % 2], "");
    }
  }
  for (const std::string cmp : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    ++turn;
    AddSimd(cases, 2, "vset", false, true, false, pairs[turn % 3], cmp);
    AddSimd(cases, 4, "vset", false, false, false, quads[turn % 2], cmp);
    AddSimd(cases, 4, "vset", false, true, true, quads[0], cmp);
  }
}

}  // namespace

std::vector<InstructionCase> VideoCases() {
  std::vector<InstructionCase> cases;
  AddScalars(cases);
  AddMad(cases);
  AddSimds(cases);
  return cases;
}

}  // namespace gridloom::exec
