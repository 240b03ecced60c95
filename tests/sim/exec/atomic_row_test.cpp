// Atomics of a warp on neighbouring places of global memory, which are made 16 bytes at a time where they begin at a
// multiple of that.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

struct RowCase {
  const char* op;
  const char* type;
  std::uint64_t (*combine)(std::uint64_t old, std::uint64_t operand);
};

template <typename T, typename Op>
std::uint64_t As(std::uint64_t old, std::uint64_t operand) {
  T a, b;
  std::memcpy(&a, &old, sizeof a);
  std::memcpy(&b, &operand, sizeof b);
  const T result = Op()(a, b);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &result, sizeof result);
  return bits;
}
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct Second {
  template <typename T>
  T operator()(T, T b) const {
    return b;
  }
};

constexpr RowCase kCases[] = {
    {"add", "u32", As<std::uint32_t, std::plus<>>},
    {"add", "u64", As<std::uint64_t, std::plus<>>},
    {"add", "f32", As<float, std::plus<>>},
    {"add", "f64", As<double, std::plus<>>},
    {"min", "s32", As<std::int32_t, Min>},
    {"min", "u32", As<std::uint32_t, Min>},
    {"max", "s64", As<std::int64_t, Max>},
    {"max", "u64", As<std::uint64_t, Max>},
    {"and", "b32", As<std::uint32_t, std::bit_and<>>},
    {"or", "b64", As<std::uint64_t, std::bit_or<>>},
    {"xor", "b32", As<std::uint32_t, std::bit_xor<>>},
    {"exch", "b64", As<std::uint64_t, Second>},
    {"exch", "b32", As<std::uint32_t, Second>},
};

unsigned BytesOf(const RowCase& row) { return row.type[1] == '6' ? 8 : 4; }

/// The thread's operand is operands[thread]; it works on places[skip + thread] and, when `wanted`, leaves the old value
/// in old[thread].
std::string Kernel(const RowCase& row, bool wanted) {
  const std::string bits = std::to_string(BytesOf(row) * 8);
  return ".version 8.0\n.target sm_75\n.address_size 64\n"
         ".visible .entry rows(.param .u64 places, .param .u64 operands, .param .u64 old, .param .u32 skip)\n{\n"
         ".reg .b32 %r<9>; .reg .b64 %rd<19>; .reg .b" +
         bits +
         " %v<4>;\n"
         "ld.param.u64 %rd1, [places]; ld.param.u64 %rd2, [operands]; ld.param.u64 %rd3, [old]; ld.param.u32 %r1, "
         "[skip];\n"
         "mov.u32 %r2, %tid.x;\nadd.u32 %r3, %r2, %r1;\n"
         "mul.wide.u32 %rd4, %r3, " +
         std::to_string(BytesOf(row)) +
         ";\nadd.u64 %rd5, %rd1, %rd4;\n"
         "mul.wide.u32 %rd6, %r2, " +
         std::to_string(BytesOf(row)) +
         ";\nadd.u64 %rd7, %rd2, %rd6;\nadd.u64 %rd8, %rd3, %rd6;\n"
         "ld.global.b" +
         bits + " %v1, [%rd7];\n" +
         (wanted ? std::string("atom.global.") + row.op + "." + row.type + " %v2, [%rd5], %v1;\nst.global.b" + bits +
                       " [%rd8], %v2;\n"
                 : (std::string(row.op) == "exch"
                        ? std::string("atom.global.") + row.op + "." + row.type + " %v2, [%rd5], %v1;\n"
                        : std::string("red.global.") + row.op + "." + row.type + " [%rd5], %v1;\n")) +
         "ret;\n}\n";
}

/// Small whole numbers, so that sums of floats are exact in any order.
template <typename T>
std::vector<T> Numbers(const RowCase& row, std::uint32_t count, std::uint32_t factor) {
  std::vector<T> numbers(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t value = (i * factor + 3) % 101;
    if (row.type[0] != 'f') {
      numbers[i] =
          static_cast<T>(row.type[0] == 's' && i % 2 != 0 ? -static_cast<std::int64_t>(value) : std::int64_t{value});
    } else if constexpr (sizeof(T) == 8) {
      const auto number = static_cast<double>(value);
      std::memcpy(&numbers[i], &number, sizeof(T));
    } else {
      const auto number = static_cast<float>(value);
      std::memcpy(&numbers[i], &number, sizeof(T));
    }
  }
  return numbers;
}

template <typename T>
void Check(Executor& executor, const RowCase& row, std::uint32_t ctas, std::uint32_t threads, std::uint32_t skip,
           bool wanted) {
  const std::vector<T> places = Numbers<T>(row, threads + skip + 4, 37), operands = Numbers<T>(row, threads, 11);
  const std::uint64_t places_at = executor.Upload(places), old_at = executor.Upload(std::vector<T>(threads));
  const exec::LaunchFault fault =
      executor.Launch(Kernel(row, wanted), "rows", {ctas, 1, 1}, {threads, 1, 1},
                      ParamBlock().Add(places_at).Add(executor.Upload(operands)).Add(old_at).Add(skip));
  INFO(row.op << "." << row.type << ", " << ctas << " CTAs of " << threads << ", from place " << skip
              << (wanted ? ", old values" : "") << ": " << fault.text);
  REQUIRE(fault.kind == exec::FaultKind::kNone);
  std::vector<T> want = places, found(places.size()), old(threads);
  for (std::uint32_t cta = 0; cta < ctas; ++cta)
    for (std::uint32_t t = 0; t < threads; ++t)
      want[skip + t] = static_cast<T>(row.combine(want[skip + t], operands[t]));
  executor.Download(places_at, found);
  executor.Download(old_at, old);
  CHECK(found == want);
  if (wanted && ctas == 1) CHECK(std::equal(old.begin(), old.end(), places.begin() + skip));
}

}  // namespace

TEST_CASE("AtomicRow_NeighbouringPlaces_EachLaneOnce") {
  for (const RowCase& row : kCases) {
    for (const bool wanted : {false, true}) {
      Executor executor;
      for (const std::uint32_t skip : {0u, 1u, 2u}) {
        if (BytesOf(row) == 8) Check<std::uint64_t>(executor, row, 1, 75, skip, wanted);
        else Check<std::uint32_t>(executor, row, 1, 75, skip, wanted);
      }
    }
  }
}

TEST_CASE("AtomicRow_ManyCtasOnTheSamePlaces_NoneIsLost") {
  for (const RowCase& row : kCases) {
    Executor executor;
    for (const std::uint32_t skip : {0u, 1u}) {
      if (BytesOf(row) == 8) Check<std::uint64_t>(executor, row, 400, 64, skip, false);
      else Check<std::uint32_t>(executor, row, 400, 64, skip, false);
    }
  }
}
