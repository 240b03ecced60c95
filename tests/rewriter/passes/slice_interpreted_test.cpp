// Thousands of random kernels, as they are, in slices, with release code and with both, through an interpreter of PTX:
// all give what the same program gives on the host, and CTAs release what their profilers have set. Flow graphs of any
// shape, threads that leave anywhere, grids of up to three dimensions, calls, calls by pointer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>

#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/slice_range.h"
#include "rewriter/ptx/parser.h"
#include "tests/rewriter/passes/interpreter.h"
#include "tests/rewriter/passes/range_watcher.h"
#include "tests/sim/exec/random_kernel.h"

namespace gridloom::test {
namespace {

using passes::GridShape;

constexpr unsigned kKernels = 4000;
constexpr std::uint32_t kThreads = 3;

RandomKernelOptions Options(std::uint64_t seed) {
  RandomKernelOptions options;
  options.blocks = 2 + static_cast<unsigned>(seed % 12);
  options.step_limit = 25;
  options.uniform_bias = seed % 3 == 0;
  options.grid_reads = true;
  options.data_addresses = seed % 2 == 0;
  return options;
}

class Case {
 public:
  explicit Case(std::uint64_t seed)
      : kernel_(seed, Options(seed)), random_(seed * 131 + 5), input_(RandomKernel::kInputs) {
    static constexpr GridShape kGrids[] = {{9, 1, 1}, {3, 4, 1}, {1, 5, 2}, {2, 2, 3}, {1, 1, 7}, {5, 1, 2}};
    grid_ = kGrids[random_() % 6];
    parameter_ = static_cast<std::uint32_t>(random_());
    before_.resize(kThreads * grid_.count() * RandomKernel::kRegisters);
    for (auto& word : input_) word = static_cast<std::uint32_t>(random_());
    for (auto& word : before_) word = static_cast<std::uint32_t>(random_());
    out_ = before_;
  }

  std::string Ptx() const { return kernel_.Ptx(); }
  const GridShape& grid() const { return grid_; }

  /// The parameter block: the kernel's own parameters, then those of a slice.
  std::vector<std::byte> Params(const std::vector<passes::HiddenParam>& hidden, std::uint64_t first) {
    std::vector<std::byte> params(128);
    const std::uint32_t* const in = input_.data();
    const std::uint32_t* const out = out_.data();
    std::memcpy(params.data(), &in, 8);
    std::memcpy(params.data() + 8, &out, 8);
    std::memcpy(params.data() + 16, &parameter_, 4);
    for (const passes::HiddenParam& one : hidden) {
      using passes::HiddenRole;
      const std::uint64_t value = one.role == HiddenRole::kBlockX ? kThreads
                                  : one.role == HiddenRole::kBlockY || one.role == HiddenRole::kBlockZ
                                      ? 1
                                      : passes::HiddenValue(one.role, grid_, first, 1);
      std::memcpy(params.data() + one.offset, &value, passes::Info(one.role).bytes);
    }
    return params;
  }

  void RunWhole(const ptx::Module& module) {
    Interpreter interpreter(module);
    const auto params = Params({}, 0);
    for (std::uint64_t number = 0; number < grid_.count(); ++number) {
      const GridShape at = passes::CtaAt(grid_, number);
      RunCta(interpreter, module, params, {at.x, at.y, at.z}, {grid_.x, grid_.y, grid_.z});
    }
  }

  /// Slices of random sizes, each a grid of its own.
  void RunInSlices(const ptx::Module& module, const std::vector<passes::HiddenParam>& hidden) {
    Interpreter interpreter(module);
    for (std::uint64_t first = 0, count = 0; first < grid_.count(); first += count) {
      count = std::min<std::uint64_t>(1 + random_() % 6, passes::LongestSlice(grid_, first));
      const auto params = Params(hidden, first);
      for (std::uint32_t i = 0; i < count; ++i)
        RunCta(interpreter, module, params, {i, 0, 0}, {static_cast<std::uint32_t>(count), 1, 1});
    }
  }

  /// Each CTA, behind its profiler: in a grid of its own when `hidden` has the parameters of a slice. Why the ranges
  /// are wrong, else "".
  std::string RunWithRanges(const passes::Rewritten& rewritten, bool in_slices) {
    const ptx::Module& module = *rewritten.module;
    const passes::AddedKernel& profiler = rewritten.added.at(0);
    RangeWatcher watcher;
    Interpreter interpreter(module, &watcher);
    auto allocations = interpreter.Globals();
    allocations.emplace_back(reinterpret_cast<std::uint64_t>(input_.data()), input_.size() * 4);
    allocations.emplace_back(reinterpret_cast<std::uint64_t>(out_.data()), out_.size() * 4);
    const auto hidden = in_slices ? rewritten.Find("random_kernel")->hidden : std::vector<passes::HiddenParam>{};
    auto profiler_hidden = hidden;
    std::ranges::copy(profiler.hidden, std::back_inserter(profiler_hidden));
    for (std::uint64_t number = 0; number < grid_.count(); ++number) {
      const GridShape at = passes::CtaAt(grid_, number);
      CtaPlace place{.block = {1, 1, 1}, .cta = {at.x, at.y, at.z}, .grid = {grid_.x, grid_.y, grid_.z}};
      if (in_slices) place = {};
      watcher.Begin();
      interpreter.RunCta(*module.FindFunction(profiler.name), Params(profiler_hidden, number), place);
      const auto sets = watcher.Sets();
      watcher.Begin();
      place.block = {kThreads, 1, 1};
      interpreter.RunCta(*module.FindFunction("random_kernel"), Params(hidden, number), place);
      if (watcher.Releases() != sets) return "CTA " + std::to_string(number) + " does not release what was set";
      if (std::string wrong = watcher.Check(sets, allocations); !wrong.empty())
        return "CTA " + std::to_string(number) + ": " + wrong;
    }
    return "";
  }

  /// Compares with the host and puts the memory back to what it was.
  bool Check() {
    bool right = true;
    for (std::uint32_t number = 0; number < grid_.count(); ++number) {
      const GridShape at = passes::CtaAt(grid_, number);
      for (std::uint32_t tid = 0; tid < kThreads; ++tid) {
        const auto base =
            static_cast<std::ptrdiff_t>((std::size_t{number} * kThreads + tid) * RandomKernel::kRegisters);
        const std::vector<std::uint32_t> mine(before_.begin() + base,
                                              before_.begin() + base + RandomKernel::kRegisters);
        const RandomPlace place{
            .tid = tid, .ntid = kThreads, .cta = {at.x, at.y, at.z}, .grid = {grid_.x, grid_.y, grid_.z}};
        right &= std::ranges::equal(kernel_.Run(place, parameter_, input_, mine),
                                    std::span(out_).subspan(base, RandomKernel::kRegisters));
      }
    }
    std::ranges::copy(before_, out_.begin());
    return right;
  }

 private:
  void RunCta(Interpreter& interpreter, const ptx::Module& module, const std::vector<std::byte>& params,
              std::array<std::uint32_t, 3> cta, std::array<std::uint32_t, 3> grid) {
    interpreter.RunCta(*module.FindFunction("random_kernel"), params,
                       {.block = {kThreads, 1, 1}, .cta = cta, .grid = grid});
  }

  RandomKernel kernel_;
  std::mt19937_64 random_;
  GridShape grid_;
  std::uint32_t parameter_ = 0;
  std::vector<std::uint32_t> input_, before_, out_;
};

}  // namespace

/// False when there is no profiler.
bool CheckRanges(Case& test, const ptx::Module& module, const std::string& passes_before, const std::string& form) {
  const auto pipeline = passes::Pipeline::Parse(passes_before + "profile" + form + ",release" + form);
  REQUIRE(pipeline.ok());
  const auto rewritten = passes::Run(*pipeline, module);
  REQUIRE(rewritten.ok());
  const passes::KernelOutcome& outcome = rewritten->kernels.at(0);
  INFO(pipeline->text() << ": " << outcome.reason);
  if (outcome.status == passes::KernelStatus::kRefused) return false;
  CHECK(test.RunWithRanges(*rewritten, !passes_before.empty()) == "");
  REQUIRE(test.Check());
  return true;
}

TEST_CASE("RandomKernels_WholeInSlicesAndReleased_EqualHost") {
  const auto pipeline = passes::Pipeline::Parse("slice");
  unsigned refused = 0, released = 0, both = 0;
  for (std::uint64_t seed = 1; seed <= kKernels; ++seed) {
    Case test(seed);
    const std::string ptx = test.Ptx();
    INFO("seed " << seed << "\n" << ptx);
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(ptx, sink);
    REQUIRE(!sink.has_errors());
    test.RunWhole(*module);
    REQUIRE(test.Check());
    const auto rewritten = passes::Run(*pipeline, *module);
    REQUIRE(rewritten.ok());
    const passes::KernelOutcome& outcome = rewritten->kernels.at(0);
    if (outcome.status == passes::KernelStatus::kRefused) {
      ++refused;  // it loads from one place again and again and branches by what it finds
      test.RunWhole(*rewritten->module);
    } else {
      test.RunInSlices(*rewritten->module, outcome.hidden);
    }
    REQUIRE(test.Check());
    if (seed % 2 == 0 && seed % 16 != 0) continue;  // most of them have addresses that depend on data
    const std::string form = seed % 3 == 0 ? "" : "-strided";
    if (!CheckRanges(test, *module, "", form)) continue;
    ++released;
    both +=
        seed % 4 == 1 && outcome.status != passes::KernelStatus::kRefused && CheckRanges(test, *module, "slice,", form);
  }
  std::printf(
      "%u kernels the same whole and sliced, %u of them refused and run whole; %u the same with release code, %u "
      "sliced and with it\n",
      kKernels, refused, released, both);
  CHECK(released > kKernels / 5);
  CHECK(both > kKernels / 20);
  CHECK(refused < kKernels / 2);
}

}  // namespace gridloom::test
