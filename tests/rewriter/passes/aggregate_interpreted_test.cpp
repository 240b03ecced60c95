// Random kernels that make streams, pass their handles around, launch into them and destroy them, before and after the
// pass `aggregate`: each launch has to succeed as before, and to wait for the same launches.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "rewriter/passes/aggregate.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"
#include "tests/rewriter/passes/interpreter.h"

using namespace gridloom;

namespace {

/// What a block's launches wait for.
class Launches final : public test::InterpreterWatcher {
 public:
  static constexpr std::int64_t kNothing = -1, kParent = -2, kRefused = -3;
  struct Launch {
    std::uint64_t buffer;
    std::int64_t after;  ///< number of the launch before it in its stream
    bool operator==(const Launch&) const = default;
  };

  void OnAccess(std::uint64_t, unsigned, bool, bool) override {}
  bool Replaces(std::string_view function) const override { return function == "cudaLaunchAggGroupV2"; }
  std::uint64_t Result() const override { return result_; }
  void OnCall(std::string_view function, std::span<const std::uint64_t> arguments) override {
    result_ = 0;
    if (function == "cudaLaunchAggGroupV2") {
      ++groups;
      Add(arguments[0], kNothing);
    } else if (function == "__cudaCDP2LaunchDeviceV2") {
      LaunchInto(arguments[0], arguments[1]);
    } else if (function == "__cudaCDP2StreamCreateWithFlags") {
      const std::uint64_t handle = 0x1000 + ++made;
      streams_[handle] = kNothing;
      std::memcpy(reinterpret_cast<void*>(arguments[0]), &handle, sizeof handle);
    } else {
      result_ = streams_.erase(arguments[0]) != 0 ? 0 : 1;
    }
  }

  std::vector<Launch> launches;
  unsigned groups = 0, made = 0;

 private:
  void Add(std::uint64_t buffer, std::int64_t after) { launches.push_back({buffer, after}); }
  void LaunchInto(std::uint64_t buffer, std::uint64_t stream) {
    if (stream == 4) return Add(buffer, kNothing);
    if (stream == 3) return Add(buffer, kParent);
    const auto it = streams_.find(stream);
    result_ = it == streams_.end() ? 1 : 0;
    if (result_ != 0) return Add(buffer, kRefused);
    Add(buffer, it->second);
    it->second = static_cast<std::int64_t>(launches.size()) - 1;
  }

  std::uint64_t result_ = 0;
  std::map<std::uint64_t, std::int64_t> streams_{{0, kNothing}};  ///< those that are, and the last launch into each
};

/// A kernel of a few blocks that branch to each other by the bits of its parameter.
class RandomKernel {
 public:
  explicit RandomKernel(std::uint64_t seed) : random_(seed), rarely_(6u << Draw(5)) {}

  std::string Text() {
    const unsigned blocks = 1 + Draw(6);
    // Else some of them have no value, which says nothing of a stream.
    for (unsigned i = 0; i < 5 && Draw(8) != 0; ++i)
      text_ += "  mov.u64 %h" + std::to_string(i) + ", " + (Draw(2) == 0 ? "0" : "4") + ";\n";
    for (unsigned block = 0; block < blocks; ++block) {
      text_ += "L" + std::to_string(block) + ":\n";
      for (unsigned i = 1 + Draw(4); i-- > 0;) Draw(rarely_ / 2) != 0 ? OwnStream() : Any();
      text_ += "  and.b64 %t, %bits, 1;\n  shr.u64 %bits, %bits, 1;\n  setp.ne.u64 %p, %t, 0;\n";
      if (Draw(3) != 0) text_ += "  @%p bra L" + std::to_string(Draw(blocks)) + ";\n";
    }
    return R"(.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags(.param .b64 a, .param .b32 b);
.extern .func (.param .b32 r) __cudaCDP2StreamDestroy(.param .b64 a);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
.entry kernel(.param .u64 ways)
{
  .local .align 8 .b8 depot[32];
  .reg .b64 %SP, %SPL, %bits, %t, %index, %h<5>, %slot<3>;
  .reg .b32 %r;
  .reg .pred %p;
  ld.param.u64 %bits, [ways];
  mov.u64 %SPL, depot;
  cvta.local.u64 %SP, %SPL;
  add.u64 %slot0, %SP, 0;
  add.u64 %slot1, %SPL, 8;
  add.u64 %slot2, %SPL, 16;
  setp.ne.u64 %p, %bits, 0;
)" + text_ +
           "  ret;\n}\n";
  }

 private:
  unsigned Draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::string Handle() { return "%h" + std::to_string(Draw(5)); }
  std::string Value() {
    static constexpr const char* kConstants[] = {"0", "3", "4", "4"};
    return Draw(3) == 0 ? kConstants[Draw(4)] : Handle();
  }
  std::string Slot() {
    return Draw(2) == 0 ? "[%slot" + std::to_string(Draw(2)) + "]" : "[depot+" + std::to_string(8 * Draw(2)) + "]";
  }

  void Create() {
    text_ += "  {\n    .param .b64 p0;\n    st.param.b64 [p0], %slot" + std::to_string(Draw(2)) +
             ";\n    .param .b32 p1;\n    st.param.b32 [p1], 1;\n    .param .b32 q;\n"
             "    call.uni (q), __cudaCDP2StreamCreateWithFlags, (p0, p1);\n    ld.param.b32 %r, [q];\n  }\n";
  }
  void Launch(const std::string& stream) {
    text_ += "  {\n    .param .b64 p0;\n    st.param.b64 [p0], " + std::to_string(++launches_) +
             ";\n    .param .b64 p1;\n    st.param.b64 [p1], " + stream +
             ";\n    .param .b32 q;\n    call.uni (q), __cudaCDP2LaunchDeviceV2, (p0, p1);\n    ld.param.b32 %r, "
             "[q];\n  }\n";
  }
  void Destroy(const std::string& stream) {
    text_ +=
        "  {\n    .param .b64 p0;\n    st.param.b64 [p0], " + stream +
        ";\n    .param .b32 q;\n    call.uni (q), __cudaCDP2StreamDestroy, (p0);\n    ld.param.b32 %r, [q];\n  }\n";
  }
  void Load(const std::string& handle) { text_ += "  ld.local.u64 " + handle + ", " + Slot() + ";\n"; }

  /// What programs do, of which something may be missing.
  void OwnStream() {
    if (Draw(4) == 0) text_ += "  mov.u64 %h4, 0;\n  st.local.u64 " + Slot() + ", %h4;\n";
    if (Draw(4) == 0) text_ += "  @%p bra A" + std::to_string(++labels_) + ";\n";
    else ++labels_;
    const unsigned label = labels_;
    if (Draw(rarely_) != 0) Create();
    text_ += "A" + std::to_string(label) + ":\n";
    const std::string handle = Handle();
    if (Draw(rarely_) == 0) text_ += "  @%p";
    if (Draw(rarely_) != 0) Load(handle);
    else text_ += "  mov.u64 " + handle + ", " + handle + ";\n";
    if (Draw(rarely_) == 0) Any();
    if (Draw(rarely_) != 0) Launch(handle);
    if (Draw(2) != 0) Destroy(handle);
  }

  void Any() {
    switch (Draw(8)) {
      case 0: text_ += "  mov.u64 " + Handle() + ", " + Value() + ";\n"; break;
      case 1: text_ += "  selp.b64 " + Handle() + ", " + Value() + ", " + Value() + ", %p;\n"; break;
      case 2: text_ += "  st.local.u64 " + Slot() + ", " + Handle() + ";\n"; break;
      case 3: text_ += "  @%p mov.u64 " + Handle() + ", " + Value() + ";\n"; break;
      case 4: Load(Handle()); break;
      case 5: Launch(Value()); break;
      case 6:
        text_ += "  and.b64 %index, %bits, 8;\n  add.s64 %index, %slot2, %index;\n  st.local.u32 [%index], 7;\n";
        break;
      default: Destroy(Handle()); break;
    }
  }

  std::mt19937_64 random_;
  unsigned rarely_ = 1;  ///< of so many times once
  std::string text_;
  unsigned launches_ = 0, labels_ = 0;
};

Launches Run(const ptx::Module& module, std::uint64_t ways) {
  Launches launches;
  std::vector<std::byte> params(8);
  std::memcpy(params.data(), &ways, sizeof ways);
  test::Interpreter(module, &launches).RunCta(*module.FindFunction("kernel"), params, {});
  return launches;
}

}  // namespace

TEST_CASE("Aggregate_RandomKernels_LaunchesWaitForTheSame") {
  unsigned groups = 0, kernels = 0, streams = 0, streams_left = 0;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::string text = RandomKernel(seed).Text();
    DiagnosticSink sink;
    const auto module = ptx::ParseModule(text, sink);
    ptx::VerifyModule(*module, sink);
    INFO("seed " << seed << "\n" << text << FormatDiagnostics(sink, "kernel", text));
    REQUIRE(!sink.has_errors());
    const auto rewritten = passes::Run(*passes::Pipeline::Parse("aggregate"), *module);
    REQUIRE(rewritten.ok());
    INFO(ptx::PrintModule(*rewritten->module));
    kernels += rewritten->kernels[0].status == passes::KernelStatus::kChanged;
    std::mt19937_64 random(seed);
    for (int run = 0; run < 6; ++run) {
      const std::uint64_t ways = run == 0 ? 0 : random() >> (random() % 60);
      const Launches before = Run(*module, ways), after = Run(*rewritten->module, ways);
      REQUIRE(before.groups == 0);
      REQUIRE(before.launches == after.launches);
      groups += after.groups;
      streams += before.made;
      streams_left += after.made;
    }
  }
  // So much of it was tried.
  CHECK(kernels > 2000);
  CHECK(groups > 10000);
  CHECK(streams_left < streams - 20000);
}
