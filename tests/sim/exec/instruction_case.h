// Tables of instruction semantics: a PTX snippet, the types of its operands and what it must compute, written against
// the host's arithmetic. How a case is run (lifter alone, or the whole executor) is the harness's business.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gridloom::exec {

/// Operand values of one execution, as bits.
struct Values {
  std::uint64_t v[8] = {};

  std::uint64_t u64(int i) const { return v[i]; }
  std::int64_t s64(int i) const { return static_cast<std::int64_t>(v[i]); }
  std::uint32_t u32(int i) const { return static_cast<std::uint32_t>(v[i]); }
  std::int32_t s32(int i) const { return static_cast<std::int32_t>(v[i]); }
  std::uint16_t u16(int i) const { return static_cast<std::uint16_t>(v[i]); }
  std::int16_t s16(int i) const { return static_cast<std::int16_t>(v[i]); }
  std::uint8_t u8(int i) const { return static_cast<std::uint8_t>(v[i]); }
  std::int8_t s8(int i) const { return static_cast<std::int8_t>(v[i]); }
  bool pred(int i) const { return (v[i] & 1) != 0; }
  float f32(int i) const { return std::bit_cast<float>(u32(i)); }
  double f64(int i) const { return std::bit_cast<double>(v[i]); }
};

inline std::uint64_t Bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t Bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// Destinations are %d0, %d1 …, sources %s0, %s1 …, each a register of the type given: "u32", "f16x2", "pred" …
struct InstructionCase {
  std::string ptx;
  std::vector<std::string_view> dst, src;
  /// Whether `out` is right for `in`. When it is not, it puts the right bits (or a bound) into `wanted`.
  std::function<bool(const Values& in, const Values& out, Values& wanted)> check;
};

/// Exactly one value is right. Where it is a NaN, that of a GPU is (0x7fffffff, 0x7fff), or the very bits; of f64 and
/// f32x2 any NaN.
InstructionCase Exact(std::string ptx, std::string_view dst, std::vector<std::string_view> src,
                      std::function<std::uint64_t(const Values&)> expected);
/// Two destinations.
InstructionCase Exact2(std::string ptx, std::vector<std::string_view> dst, std::vector<std::string_view> src,
                       std::function<void(const Values& in, Values& out)> expected);
/// An f32 result within `ulps` units in the last place, or `absolute`, of the true value.
InstructionCase Near(std::string ptx, std::vector<std::string_view> src, double ulps, double absolute,
                     std::function<double(const Values&)> expected);

/// All tables by name.
struct InstructionTable {
  std::string_view name;
  std::vector<InstructionCase> (*cases)();
};
const std::vector<InstructionTable>& InstructionTables();

std::vector<InstructionCase> IntegerCases();
std::vector<InstructionCase> LogicCases();
std::vector<InstructionCase> CompareCases();
std::vector<InstructionCase> FloatCases();
std::vector<InstructionCase> HalfCases();
std::vector<InstructionCase> FusedCases();
std::vector<InstructionCase> ApproxCases();
std::vector<InstructionCase> ConvertCases();
std::vector<InstructionCase> PackedConvertCases();
std::vector<InstructionCase> VideoCases();

/// What went wrong, for a message.
std::string Describe(const InstructionCase& test, const Values& in, const Values& out, const Values& wanted);

/// Bits of a register of that type.
unsigned TypeBits(std::string_view type);
/// Whether the bits of a result are those wanted, NaNs as Exact says.
bool SameValue(std::string_view type, std::uint64_t got, std::uint64_t wanted);

/// Input tuples of a case: edge values against each other, then random ones, always the same.
std::vector<Values> InputsOf(const InstructionCase& test, std::size_t count);

/// One kernel that runs all cases of a batch, an input tuple per thread of a one-dimensional grid. Parameters: u64 in,
/// u64 out: arrays of Values indexed [case * threads + thread]; u32 threads.
std::string BatchKernel(const std::vector<InstructionCase>& cases);

}  // namespace gridloom::exec
