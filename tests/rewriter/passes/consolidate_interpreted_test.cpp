// Random kernels that launch kernels of all shapes, before and after the pass `consolidate`, in an interpreter that
// runs all grids: what they have written must be the same. Threads come alone here, so it is blocks and grids whose
// launches become one, and small ones that are none; lanes together: tests/apps/consolidated_launches.cu.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <random>

#include "rewriter/passes/consolidate.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/rewriter/passes/interpreter.h"

using namespace gridloom;

namespace {

constexpr unsigned kWords = 64, kChildren = 3;

/// The device runtime: buffers, launches in the order in which they were made, malloc.
class Runtime final : public test::InterpreterWatcher {
 public:
  explicit Runtime(const ptx::Module& module) : interpreter_(module, this) {}

  /// Runs a grid and all that it launches.
  void Run(const ptx::Function& kernel, const std::vector<std::byte>& params, std::array<std::uint32_t, 3> grid,
           std::array<std::uint32_t, 3> block) {
    pending_.push_back({&kernel, params, grid, block});
    for (; !pending_.empty(); pending_.pop_front()) {
      const Launch launch = pending_.front();
      ++launches;
      test::CtaPlace place{.block = launch.block, .grid = launch.grid, .grid_id = launches};
      for (place.cta[2] = 0; place.cta[2] < launch.grid[2]; ++place.cta[2]) {
        for (place.cta[1] = 0; place.cta[1] < launch.grid[1]; ++place.cta[1]) {
          for (place.cta[0] = 0; place.cta[0] < launch.grid[0]; ++place.cta[0])
            interpreter_.RunCta(*launch.kernel, launch.params, place);
        }
      }
    }
  }

  void OnAccess(std::uint64_t, unsigned, bool, bool) override {}
  std::uint64_t Result() const override { return result_; }
  void OnCall(std::string_view function, std::span<const std::uint64_t> a) override {
    if (function == "malloc") {
      result_ = Make(a[0]);
    } else if (function == "free") {
      CHECK(memory_.erase(a[0]) == 1);
    } else if (function == "__cudaCDP2GetParameterBufferV2") {
      const ptx::Function& kernel = interpreter_.FunctionAt(a[0]);
      const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(a[i]); };
      const std::uint32_t bytes = ptx::LayoutParams(kernel).bytes;
      result_ = Make(bytes);
      buffers_[result_] = {
          &kernel, std::vector<std::byte>(bytes), {word(1), word(2), word(3)}, {word(4), word(5), word(6)}};
    } else {
      Launch launch = buffers_.at(a[0]);
      buffers_.erase(a[0]);
      std::memcpy(launch.params.data(), reinterpret_cast<const void*>(a[0]), launch.params.size());
      memory_.erase(a[0]);
      pending_.push_back(std::move(launch));
      result_ = 0;
    }
  }

  unsigned launches = 0;
  bool leaks() const { return !memory_.empty(); }

 private:
  struct Launch {
    const ptx::Function* kernel = nullptr;
    std::vector<std::byte> params;
    std::array<std::uint32_t, 3> grid{}, block{};
  };

  std::uint64_t Make(std::uint64_t bytes) {
    auto block = std::make_unique<std::uint64_t[]>(bytes / 8 + 2);
    const auto address = reinterpret_cast<std::uint64_t>(block.get());
    memory_[address] = std::move(block);
    return address;
  }

  test::Interpreter interpreter_;
  std::deque<Launch> pending_;
  std::map<std::uint64_t, Launch> buffers_;
  std::map<std::uint64_t, std::unique_ptr<std::uint64_t[]>> memory_;
  std::uint64_t result_ = 0;
};

/// A parent with some launches of children under conditions and in a loop, and children that may launch, too. No
/// expression draws twice: in which order it would, is the compiler's choice.
class RandomModule {
 public:
  explicit RandomModule(std::uint64_t seed) : random_(seed) {}

  std::string Text() {
    std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
)";
    for (unsigned child = 0; child < kChildren; ++child) text += Kernel("child" + std::to_string(child), child);
    return text + Kernel("parent", kChildren);
  }

 private:
  unsigned Draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::string Number(unsigned below) { return std::to_string(Draw(below)); }
  std::string Some() {
    static constexpr const char* kValues[] = {"%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ctaid.x",
                                              "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%value"};
    return kValues[Draw(12)];
  }
  /// %r<to> becomes something of what the thread is.
  std::string Mix(const std::string& to) {
    std::string text = "  mov.u32 " + to + ", " + Some() + ";\n";
    for (unsigned i = 2 + Draw(3); i-- > 0;) {
      text += "  mov.u32 %t, " + Some() + ";\n";
      text += "  mad.lo.u32 " + to + ", " + to + ", " + std::to_string(3 + 2 * Draw(9)) + ", %t;\n";
    }
    return text;
  }

  std::string Kernel(const std::string& name, unsigned children) {
    // Parameters of different sizes; a child may launch those before it.
    std::string text = ".entry " + name +
                       "(.param .u64 out, .param .u16 half, .param .u32 value)\n{\n  .reg .b64 %out, %b, %k, %w;\n"
                       "  .reg .b32 %value, %t, %a, %c, %e, %n, %g<3>;\n  .reg .b16 %h;\n  .reg .pred %p, %q;\n"
                       "  ld.param.u64 %out, [out];\n  ld.param.u16 %h, [half];\n  ld.param.u32 %value, [value];\n";
    text += Mix("%a") + "  and.b32 %c, %a, " + std::to_string(kWords - 1) +
            ";\n  mul.wide.u32 %w, %c, 4;\n  add.u64 %w, %out, %w;\n";
    text += Mix("%a") + "  cvt.u32.u16 %c, %h;\n  add.u32 %a, %a, %c;\n  red.global.add.u32 [%w], %a;\n";
    if (Draw(4) == 0 && children < kChildren) text += "  bar.sync 0;\n";
    const unsigned launches = name == "parent" ? 1 + Draw(3) : children > 0 && Draw(6) == 0 ? 1 : 0;
    for (unsigned i = 0; i < launches; ++i) text += Launch(Draw(children));
    if (Draw(3) == 0) text += Mix("%a") + "  and.b32 %a, %a, 1;\n  setp.eq.u32 %p, %a, 0;\n  @%p exit;\n";
    return text + Mix("%a") + "  red.global.add.u32 [%out], %a;\n  ret;\n}\n";
  }

  std::string Launch(unsigned child) {
    static constexpr const char* kBlocks[][3] = {{"4", "1", "1"}, {"2", "3", "1"}, {"1", "2", "2"}};
    const char* const* const block = kBlocks[Draw(3)];
    const std::string label = std::to_string(++labels_);
    std::string text = Mix("%a");
    text += "  and.b32 %a, %a, " + Number(4) + ";\n  setp.ne.u32 %p, %a, 0;\n  @%p bra SKIP" + label + ";\n";
    text += "  mov.u32 %n, 0;\nAGAIN" + label + ":\n" + Mix("%a");
    for (const char axis : {'0', '1', '2'})
      text += "  add.u32 %g" + std::string(1, axis) + ", %a, %n;\n  and.b32 %g" + axis + ", %g" + axis + ", " +
              (axis == '0' ? "3" : "1") + ";\n  add.u32 %g" + axis + ", %g" + axis + ", 1;\n  shr.u32 %a, %a, 2;\n";
    if (Draw(12) == 0) text += "  mov.u32 %g1, 0;\n";
    text += "  mov.u64 %k, child" + std::to_string(child) +
            ";\n  {\n    .param .b64 p0;\n    st.param.b64 [p0], %k;\n    .param .align 4 .b8 p1[12];\n"
            "    st.param.b32 [p1], %g0;\n    st.param.b32 [p1+4], %g1;\n    st.param.b32 [p1+8], %g2;\n    .param "
            ".align 4 .b8 p2[12];\n";
    for (unsigned i = 0; i < 3; ++i) text += "    st.param.b32 [p2+" + std::to_string(4 * i) + "], " + block[i] + ";\n";
    text +=
        "    .param .b32 p3;\n    st.param.b32 [p3], 0;\n    .param .b64 q;\n"
        "    call.uni (q), __cudaCDP2GetParameterBufferV2, (p0, p1, p2, p3);\n    ld.param.b64 %b" +
        label + ", [q];\n  }\n" + Mix("%e");
    text += "  st.u64 [%b" + label + "], %out;\n  mov.b16 %h, " + Number(50) + ";\n  st.u16 [%b" + label +
            "+8], %h;\n  st.u32 [%b" + label + "+12], %e;\n";
    text += "  {\n    .param .b64 p0;\n    st.param.b64 [p0], %b" + label +
            ";\n    .param .b64 p1;\n    st.param.b64 [p1], " + (Draw(8) == 0 ? "0" : "4") +
            ";\n    .param .b32 q;\n    call.uni (q), __cudaCDP2LaunchDeviceV2, (p0, p1);\n    ld.param.b32 %t, [q];\n "
            " }\n";
    text += "  add.u32 %n, %n, 1;\n  setp.lt.u32 %p, %n, " + std::to_string(1 + Draw(2)) + ";\n  @%p bra AGAIN" +
            label + ";\nSKIP" + label + ":\n";
    return "  .reg .b64 %b" + label + ";\n" + text;
  }

  std::mt19937_64 random_;
  unsigned labels_ = 0;
};

std::vector<std::uint32_t> Results(const ptx::Module& module, unsigned& launches) {
  std::vector<std::uint32_t> out(kWords);
  std::vector<std::byte> params(16);
  const auto address = reinterpret_cast<std::uint64_t>(out.data());
  const std::uint32_t value = 5;
  std::memcpy(params.data(), &address, 8);
  std::memcpy(params.data() + 12, &value, 4);
  Runtime runtime(module);
  runtime.Run(*module.FindFunction("parent"), params, {2, 2, 1}, {3, 1, 1});
  launches += runtime.launches;
  CHECK(!runtime.leaks());
  return out;
}

}  // namespace

TEST_CASE("Consolidate_RandomKernels_WriteTheSame") {
  unsigned before = 0, after = 0, changed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::string text = RandomModule(seed).Text();
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(text, sink);
    INFO("seed " << seed << "\n" << FormatDiagnostics(sink, "random", text) << text);
    REQUIRE(!sink.has_errors());
    static constexpr const char* kForms[] = {"block", "grid", "warp", "block:12", "grid:12"};
    const char* const form = kForms[seed % 5];
    INFO(form);
    const passes::ConsolidatePass pass(*passes::ParseConsolidateOptions(form));
    const auto rewritten = Run(passes::Pipeline({&pass}), *module);
    REQUIRE(rewritten.ok());
    for (const passes::KernelOutcome& kernel : rewritten->kernels)
      changed += kernel.status == passes::KernelStatus::kChanged;
    unsigned before_here = 0, after_here = 0;
    const auto want = Results(*module, before_here), got = Results(*rewritten->module, after_here);
    REQUIRE(got == want);
    REQUIRE(after_here <= before_here);
    before += before_here;
    after += after_here;
  }
  CHECK(changed > 150);
  CHECK(after * 3 < before * 2);
}
