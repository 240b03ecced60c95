// Thousands of random kernels whose addresses are arithmetic, through an interpreter of PTX: as they are, with release
// code, and with release code in slices. The profiler's ranges hold every byte that a CTA touches, each CTA releases
// what it has set, after its last write, and the memory is the same in all three. More of them:
// GRIDLOOM_RANDOM_KERNELS=20000
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/slice_range.h"
#include "rewriter/ptx/parser.h"
#include "tests/rewriter/passes/interpreter.h"
#include "tests/rewriter/passes/range_watcher.h"
#include "tests/sim/exec/random_address.h"

namespace gridloom::test {
namespace {

using passes::GridShape;

std::uint64_t Kernels() {
  const char* wanted = std::getenv("GRIDLOOM_RANDOM_KERNELS");
  return wanted == nullptr ? 1500 : std::strtoull(wanted, nullptr, 10);
}

constexpr std::int64_t kReach = RandomAddressKernel::kReach;

/// Two arrays; kernels get pointers to their middles.
class Arrays {
 public:
  std::uint64_t Middle(int array) const { return Begin(array) + kReach; }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> Allocations() const {
    return {{Begin(0), 2 * kReach}, {Begin(1), 2 * kReach}};
  }
  /// What was written since the last call: places and words. The arrays are zero again afterwards.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> Take(const std::vector<std::uint64_t>& touched) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> words;
    for (const std::uint64_t address : touched) {
      auto& word = *reinterpret_cast<std::uint32_t*>(address);
      if (word != 0) words.emplace_back(address, word);
      word = 0;
    }
    return words;
  }

 private:
  std::uint64_t Begin(int array) const { return reinterpret_cast<std::uint64_t>(arrays_[array].data()); }
  std::array<std::vector<std::uint32_t>, 2> arrays_{std::vector<std::uint32_t>(kReach / 2),
                                                    std::vector<std::uint32_t>(kReach / 2)};
};

/// Range calls and accesses, and which words were written.
class Watcher final : public InterpreterWatcher {
 public:
  void OnAccess(std::uint64_t address, unsigned bytes, bool reads, bool writes) override {
    ranges.OnAccess(address, bytes, reads, writes);
    if (writes) written.push_back(address);
  }
  void OnCall(std::string_view function, std::span<const std::uint64_t> arguments) override {
    ranges.OnCall(function, arguments);
  }

  std::vector<std::uint64_t> Written() {
    std::ranges::sort(written);
    written.erase(std::ranges::unique(written).begin(), written.end());
    return std::exchange(written, {});
  }

  RangeWatcher ranges;
  std::vector<std::uint64_t> written;
};

class Case {
 public:
  Case(std::uint64_t seed, Arrays& arrays) : kernel_(seed), arrays_(arrays) {
    const auto small = [&](std::uint64_t salt) {
      return static_cast<std::uint32_t>((seed * 7 + salt) * 2654435761u % (RandomAddressKernel::kMostParam + 1));
    };
    n_ = small(1);
    m_ = small(2);
    grid_ = {1 + small(3) % 4, 1 + small(4) % 3, 1};
    block_ = {1 + small(5) % 5, 1 + small(6) % 3, 1};
  }

  const std::string& ptx() const { return kernel_.ptx(); }
  const GridShape& grid() const { return grid_; }

  std::vector<std::byte> Params(const std::vector<passes::HiddenParam>& hidden, std::uint64_t first = 0) const {
    std::vector<std::byte> params(160);
    const std::uint64_t a = arrays_.Middle(0), b = arrays_.Middle(1);
    std::memcpy(params.data(), &a, 8);
    std::memcpy(params.data() + 8, &b, 8);
    std::memcpy(params.data() + 16, &n_, 4);
    std::memcpy(params.data() + 20, &m_, 4);
    for (const passes::HiddenParam& one : hidden) {
      using passes::HiddenRole;
      const std::uint64_t value = one.role == HiddenRole::kBlockX   ? block_[0]
                                  : one.role == HiddenRole::kBlockY ? block_[1]
                                  : one.role == HiddenRole::kBlockZ ? block_[2]
                                                                    : passes::HiddenValue(one.role, grid_, first, 1);
      std::memcpy(params.data() + one.offset, &value, passes::Info(one.role).bytes);
    }
    return params;
  }

  /// One CTA of the whole grid.
  void RunCta(Interpreter& interpreter, const ptx::Function& kernel, const std::vector<std::byte>& params,
              std::uint64_t number, bool one_thread = false) const {
    const GridShape at = passes::CtaAt(grid_, number);
    interpreter.RunCta(kernel, params,
                       {.block = one_thread ? std::array<std::uint32_t, 3>{1, 1, 1} : block_,
                        .cta = {at.x, at.y, at.z},
                        .grid = {grid_.x, grid_.y, grid_.z}});
  }
  /// The same CTA as the only one of a slice.
  void RunSliced(Interpreter& interpreter, const ptx::Function& kernel, const std::vector<passes::HiddenParam>& hidden,
                 std::uint64_t number, bool one_thread = false) const {
    interpreter.RunCta(
        kernel, Params(hidden, number),
        {.block = one_thread ? std::array<std::uint32_t, 3>{1, 1, 1} : block_, .cta = {0, 0, 0}, .grid = {1, 1, 1}});
  }

 private:
  RandomAddressKernel kernel_;
  Arrays& arrays_;
  std::uint32_t n_ = 0, m_ = 0;
  GridShape grid_;
  std::array<std::uint32_t, 3> block_{};
};

/// The module of a kernel, rewritten.
passes::Rewritten Rewrite(const ptx::Module& module, const std::string& pipeline) {
  auto rewritten = passes::Run(*passes::Pipeline::Parse(pipeline), module);
  REQUIRE(rewritten.ok());
  return std::move(*rewritten);
}

/// Whole, with release code, and with it in slices.
void CheckKernel(const Case& test, Arrays& arrays, const ptx::Module& module, const std::string& form) {
  const passes::Rewritten ranged = Rewrite(module, "profile" + form + ",release" + form);
  const bool slice_first = test.grid().count() % 2 == 0;
  const std::string both = "profile" + form + ",release" + form;
  const passes::Rewritten sliced = Rewrite(module, slice_first ? "slice," + both : both + ",slice");
  const passes::KernelOutcome &outcome = *ranged.Find("k"), &sliced_outcome = *sliced.Find("k");
  INFO(outcome.reason << sliced_outcome.reason);
  REQUIRE(outcome.status == passes::KernelStatus::kChanged);
  REQUIRE(sliced_outcome.status == passes::KernelStatus::kChanged);
  REQUIRE(ranged.added.size() == 1);
  REQUIRE(sliced.added.size() == 1);

  Watcher whole, released, in_slices;
  Interpreter original(module, &whole), with_release(*ranged.module, &released), with_both(*sliced.module, &in_slices);
  const ptx::Function &k = *module.FindFunction("k"), &k_released = *ranged.module->FindFunction("k"),
                      &k_sliced = *sliced.module->FindFunction("k"),
                      &profiler = *ranged.module->FindFunction(ranged.added[0].name),
                      &profiler_sliced = *sliced.module->FindFunction(sliced.added[0].name);
  // A profiler that was there before slicing was sliced, too, with parameters of its own.
  auto profiler_hidden = sliced.Find(slice_first ? "k" : sliced.added[0].name)->hidden;
  std::ranges::copy(sliced.added[0].hidden, std::back_inserter(profiler_hidden));
  const auto params = test.Params({}), profile_params = test.Params(ranged.added[0].hidden);
  for (std::uint64_t cta = 0; cta < test.grid().count(); ++cta) {
    released.ranges.Begin();
    test.RunCta(with_release, profiler, profile_params, cta, true);
    const auto sets = released.ranges.Sets();
    CHECK(released.ranges.Releases().empty());

    whole.ranges.Begin();
    test.RunCta(original, k, params, cta);
    CHECK(whole.ranges.Check(sets, arrays.Allocations()) == "");
    const auto memory = arrays.Take(whole.Written());

    released.ranges.Begin();
    test.RunCta(with_release, k_released, params, cta);
    CHECK(released.ranges.Releases() == sets);
    CHECK(released.ranges.Check(sets, arrays.Allocations()) == "");
    CHECK(arrays.Take(released.Written()) == memory);

    in_slices.ranges.Begin();
    test.RunSliced(with_both, profiler_sliced, profiler_hidden, cta, true);
    const auto sets_of_slice = in_slices.ranges.Sets();
    in_slices.ranges.Begin();
    test.RunSliced(with_both, k_sliced, sliced_outcome.hidden, cta);
    CHECK(in_slices.ranges.Releases() == sets_of_slice);
    CHECK(in_slices.ranges.Check(sets_of_slice, arrays.Allocations()) == "");
    CHECK(arrays.Take(in_slices.Written()) == memory);
  }
}

}  // namespace

TEST_CASE("RandomAddresses_ProfiledReleasedAndSliced_HoldEveryByte") {
  Arrays arrays;
  const std::uint64_t kernels = Kernels();
  for (std::uint64_t seed = 0; seed < kernels; ++seed) {
    const Case test(seed, arrays);
    INFO("seed " << seed << "\n" << test.ptx());
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(test.ptx(), sink);
    REQUIRE(!sink.has_errors());
    CheckKernel(test, arrays, *module, seed % 2 == 0 ? "" : "-strided");
  }
  std::printf("%llu kernels with profilers and release code, whole and in slices\n",
              static_cast<unsigned long long>(kernels));
}

}  // namespace gridloom::test
