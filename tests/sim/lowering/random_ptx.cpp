#include "tests/sim/lowering/random_ptx.h"

namespace gridloom::test {
namespace {

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  std::string Kernel(unsigned blocks, unsigned instructions) {
    text_ = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) {
.reg .pred %p<4>;
.reg .b32 %r<10>, %s<2000>;
.reg .b64 %d<6>, %e<2000>;
.reg .f32 %f<10>;
.shared .b32 tile[64];
ld.param.u64 %d0, [a];
ld.param.u64 %e0, [b];
cvta.to.global.u64 %d1, %d0;
cvta.to.global.u64 %d2, %e0;
ld.param.u32 %r0, [n];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, tile;
)";
    for (unsigned block = 0; block < blocks; ++block) {
      text_ += "B" + std::to_string(block) + ":\n";
      for (unsigned i = 0; i < instructions; ++i) Instruction();
      if (Pick(3) != 0) text_ += "@" + Predicate() + " bra B" + std::to_string(Pick(blocks)) + ";\n";
    }
    return text_ + "ret;\n}\n";
  }

 private:
  unsigned Pick(unsigned most) { return static_cast<unsigned>(random_() % most); }
  std::string Predicate() { return "%p" + std::to_string(Pick(4)); }
  std::string Old32() { return "%r" + std::to_string(Pick(10)); }
  std::string Old64() { return "%d" + std::to_string(Pick(6)); }
  /// Registers that are written once come beside those that are written again and again.
  std::string Read32() { return values32_ != 0 && Pick(2) == 0 ? "%s" + std::to_string(Pick(values32_)) : Old32(); }
  std::string Read64() { return Pick(2) == 0 ? "%e" + std::to_string(Pick(values64_)) : Old64(); }
  std::string Write32() { return Pick(2) == 0 && values32_ < 2000 ? "%s" + std::to_string(values32_++) : Old32(); }
  std::string Write64() { return Pick(2) == 0 && values64_ < 2000 ? "%e" + std::to_string(values64_++) : Old64(); }
  std::string Offset() { return std::to_string(Pick(5) * 4); }
  std::string Address() { return "[" + Read64() + "+" + Offset() + "]"; }
  std::string Number() { return std::to_string(Pick(6)); }

  void Instruction() {
    std::string line = Pick(8) == 0 ? "@" + std::string(Pick(2) == 0 ? "!" : "") + Predicate() + " " : "";
    // What a line reads is chosen before what it writes: a new value is not read in its own line.
    const std::string a = Read32(), b = Pick(3) == 0 ? Number() : Read32(), x = Read64(), y = Read64();
    const std::string address = Address(), near = "[%r3+" + Offset() + "]", number = Number(), offset = Offset();
    const auto write32 = [&](const std::string& name, const std::string& rest) {
      line += name + " " + Write32() + ", " + rest;
    };
    const auto write64 = [&](const std::string& name, const std::string& rest) {
      line += name + " " + Write64() + ", " + rest;
    };
    switch (Pick(22)) {
      case 0: write32("mov.u32", a); break;
      case 1: write64("mov.b64", x); break;
      case 2: write32("mov.u32", number); break;
      case 3: write64("add.s64", x + ", " + offset); break;
      case 4: write64("add.s64", x + ", " + y); break;
      case 5: write32("add.s32", a + ", " + b); break;
      case 6: write32("mul.lo.s32", a + ", " + b); break;
      case 7: write64("mul.wide.s32", a + ", 4"); break;
      case 8: write32("xor.b32", a + ", " + b); break;
      case 9: write32("shl.b32", a + ", " + number); break;
      case 10: line += "setp.lt.s32 " + Predicate() + ", " + a + ", " + b; break;
      case 11: write32("selp.b32", a + ", " + b + ", " + Predicate()); break;
      case 12:
      case 13: write32("ld.global.u32", address); break;
      case 14: line += "st.global.u32 " + address + ", " + a; break;
      case 15: write32("ld.shared.u32", near); break;
      case 16: line += "st.shared.u32 " + near + ", " + a; break;
      case 17: write32("ld.global.nc.u32", address); break;
      case 18:
        if (Pick(4) == 0) line = "bar.sync 0";
        else write32("ld.volatile.global.u32", address);
        break;
      case 19: write32("atom.global.add.u32", address + ", " + a); break;
      case 20: write32("add.cc.u32", a + ", " + b + ";\naddc.u32 " + Old32() + ", " + a + ", 0"); break;
      default: write64("sub.s64", x + ", " + offset); break;
    }
    text_ += line + ";\n";
  }

  std::mt19937_64 random_;
  std::string text_;
  unsigned values32_ = 0, values64_ = 1;
};

}  // namespace

std::string RandomPtx(std::uint64_t seed, unsigned blocks, unsigned instructions) {
  return Writer(seed).Kernel(blocks, instructions);
}

}  // namespace gridloom::test
