// Texture and surface instructions from PTX text to memory: operand forms, handles, faults. What a fetch computes is
// tested in texture_sample_test.cpp.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "sim/exec/texture.h"
#include "tests/sim/exec/executor_fixture.h"
#include "tests/sim/exec/texture_reference.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr const char* kHeader = ".version 8.3\n.target sm_90\n.address_size 64\n";

/// A kernel with a handle and an output pointer: %h is the handle, %t the thread, %f its index as a float; what it
/// leaves in %o0 to %o3 is written to out[4 * thread].
std::string Kernel(const std::string& body, const std::string& globals = "") {
  return std::string(kHeader) + globals + R"(
.visible .entry k(.param .u64 handle, .param .u64 out)
{
  .reg .b64 %h, %p, %rd<4>;
  .reg .b32 %t, %o<4>, %r<16>;
  .reg .f32 %f, %g, %q<16>;
  .reg .b16 %s<8>;
  .reg .pred %pr<4>;
  ld.param.u64 %h, [handle];
  ld.param.u64 %p, [out];
  mov.u32 %t, %tid.x;
  cvt.rn.f32.u32 %f, %t;
  mov.f32 %g, 0f3FC00000;
)" + body +
         R"(
  mul.wide.u32 %rd0, %t, 16;
  add.u64 %rd0, %rd0, %p;
  st.global.v4.b32 [%rd0], {%o0, %o1, %o2, %o3};
  ret;
}
)";
}

class ImageRun {
 public:
  /// Runs the kernel with 32 threads; the words it wrote.
  std::vector<std::uint32_t> Words(const std::string& ptx, std::uint64_t handle) {
    std::vector<std::uint32_t> out(32 * 4, 0xccccccccu);
    const std::uint64_t address = executor_.Upload(out);
    fault_ = executor_.Launch(ptx, "k", {1, 1, 1}, {32, 1, 1}, test::ParamBlock().Add(handle).Add(address));
    executor_.Download(address, out);
    return out;
  }
  std::vector<float> Floats(const std::string& ptx, std::uint64_t handle) {
    std::vector<float> floats;
    for (std::uint32_t word : Words(ptx, handle)) floats.push_back(std::bit_cast<float>(word));
    return floats;
  }
  const LaunchFault& fault() const { return fault_; }
  test::Executor& executor() { return executor_; }

 private:
  test::Executor executor_;
  LaunchFault fault_;
};

TextureObject LinearTexture(const test::TestImage& image) {
  TextureObject texture;
  texture.image = image.resource();
  texture.filter = FilterMode::kLinear;
  return texture;
}

double Expected(const TextureObject& texture, float x, float y, unsigned channel, std::array<int, 3> offset = {},
                std::int64_t slice = -1) {
  return test::ReferenceFetch(texture, 0, {x, y, 0}, offset, 2, slice)[channel];
}

}  // namespace

TEST_CASE("Tex_UnifiedHandle_SamplesAllChannels") {
  ImageRun run;
  const test::TestImage image({.channels = 4, .width = 19, .height = 5}, 1);
  const TextureObject texture = LinearTexture(image);
  const std::uint64_t handle = ImageTable::Get().Add(texture);
  const auto out = run.Floats(Kernel("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%f, %g}];"), handle);
  REQUIRE(run.fault().kind == FaultKind::kNone);
  for (unsigned t = 0; t < 32; ++t) {
    for (unsigned c = 0; c < 4; ++c) CHECK(out[4 * t + c] == Approx(Expected(texture, static_cast<float>(t), 1.5f, c)));
  }
}

TEST_CASE("Tex_GuardOffsetAndPredicateForms") {
  ImageRun run;
  const test::TestImage image({.channels = 4, .width = 19, .height = 5}, 2);
  const TextureObject texture = LinearTexture(image);
  const std::uint64_t handle = ImageTable::Get().Add(texture);
  // Lanes that the guard turns off hold a handle of nothing.
  const auto out = run.Floats(Kernel(R"(
    mov.b32 %o0, 0f42280000; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;
    setp.lt.u32 %pr0, %t, 11;
    selp.b64 %h, %h, 12345, %pr0;
    @%pr0 tex.2d.v4.f32.f32 {%o0, _, %o2, %o3}|%pr1, [%h, {%f, %g}], {2, -1};
    selp.b32 %o3, 1, 0, %pr1;
  )"),
                              handle);
  REQUIRE(run.fault().kind == FaultKind::kNone);
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(out[4 * t] == Approx(t < 11 ? Expected(texture, static_cast<float>(t), 1.5f, 0, {2, -1, 0}) : 42.0));
    CHECK(std::bit_cast<std::uint32_t>(out[4 * t + 3]) == (t < 11 ? 1u : 0u));
  }
}

TEST_CASE("Tex_HalfResults_AreRounded") {
  ImageRun run;
  const test::TestImage image({.type = ChannelType::kHalf, .channels = 4, .width = 19, .height = 5}, 3);
  TextureObject texture = LinearTexture(image);
  texture.filter = FilterMode::kPoint;
  const std::uint64_t handle = ImageTable::Get().Add(texture);
  const auto out = run.Floats(Kernel(R"(
    tex.2d.v4.f16.f32 {%s0, %s1, %s2, %s3}, [%h, {%f, %g}];
    cvt.f32.f16 %q0, %s1; mov.b32 %o0, %q0;
    tex.2d.v2.f16x2.f32 {%r0, %r1}, [%h, {%f, %g}];
    mov.b32 {%s4, %s5}, %r1;
    cvt.f32.f16 %q0, %s4; mov.b32 %o1, %q0;
    cvt.f32.f16 %q0, %s5; mov.b32 %o2, %q0;
    mov.b32 %o3, 0;
  )"),
                              handle);
  REQUIRE(run.fault().kind == FaultKind::kNone);
  for (unsigned t = 0; t < 32; ++t) {
    for (unsigned c = 0; c < 3; ++c)
      CHECK(static_cast<double>(out[4 * t + c]) == Expected(texture, static_cast<float>(t), 1.5f, c + 1));
  }
}

TEST_CASE("Tex_EveryGeometryAndLodForm_IsLifted") {
  ImageRun run;
  const test::TestImage flat({.channels = 4, .width = 16, .height = 16, .levels = 5}, 4);
  const test::TestImage volume({.channels = 4, .dims = 3, .width = 8, .height = 8, .depth = 8}, 5);
  const test::TestImage line({.channels = 4, .dims = 1, .width = 40}, 6);
  const test::TestImage layers({.channels = 4, .width = 16, .height = 16, .depth = 6, .layered = true}, 7);
  const test::TestImage cube({.channels = 4, .width = 8, .height = 8, .depth = 12, .layered = true, .cubemap = true},
                             8);
  const auto first = [&](const test::TestImage& image, const std::string& instruction) {
    TextureObject texture;
    texture.image = image.resource();
    texture.max_lod = 10;
    const auto out = run.Floats(Kernel("mov.b32 %r0, 3;\n" + instruction), ImageTable::Get().Add(texture));
    INFO(run.fault().text);
    REQUIRE(run.fault().kind == FaultKind::kNone);
    return static_cast<double>(out[4 * 5]);  // thread 5: %f = 5, %g = 1.5
  };
  const auto texel = [](const test::TestImage& image, unsigned level, int x, int y, int z) {
    TextureObject texture;
    texture.image = image.resource();
    return test::StoredTexel(texture, image.resource().levels[level], x, y, z)[0];
  };
  const std::string d = "{%o0, %o1, %o2, %o3}, ";
  CHECK(first(line, "tex.1d.v4.f32.f32 " + d + "[%h, {%f}];") == texel(line, 0, 5, 0, 0));
  CHECK(first(line, "tex.1d.v4.f32.s32 " + d + "[%h, {%t}], {1};") == texel(line, 0, 6, 0, 0));
  CHECK(first(line, "tex.1d.v4.f32.s32 " + d + "%h, {%t, %t, %t, %t};") == texel(line, 0, 5, 0, 0));
  CHECK(first(flat, "tex.base.2d.v4.f32.f32 " + d + "[%h, {%f, %g}];") == texel(flat, 0, 5, 1, 0));
  CHECK(first(flat, "tex.level.2d.v4.f32.f32 " + d + "[%h, {%f, %g}], 0f40000000;") == texel(flat, 2, 3, 1, 0));
  CHECK(first(flat, "tex.level.2d.v4.f32.s32 " + d + "[%h, {%r0, %r0}], 2;") == texel(flat, 2, 3, 3, 0));
  CHECK(first(flat, "mov.f32 %q0, 0f40000000; mov.f32 %q1, 0f00000000;\ntex.grad.2d.v4.f32.f32 " + d +
                        "[%h, {%f, %g}], {%q0, %q1}, {%q1, %q0};") == texel(flat, 1, 5, 1, 0));
  CHECK(first(volume, "tex.3d.v4.f32.f32 " + d + "[%h, {%f, %g, %f, %f}];") == texel(volume, 0, 5, 1, 5));
  CHECK(first(layers, "tex.a2d.v4.f32.f32 " + d + "[%h, {%r0, %f, %g, %g}];") == texel(layers, 0, 5, 1, 3));
  CHECK(first(layers, "tex.a2d.v4.f32.s32 " + d + "[%h, {%r0, %t, %r0, %r0}];") == texel(layers, 0, 5, 3, 3));
  CHECK(first(layers, "tex.a1d.v4.f32.f32 " + d + "[%h, {%r0, %f}];") == texel(layers, 0, 5, 0, 3));
  CHECK(first(cube, "mov.f32 %q0, 0f3E000000;\ntex.cube.v4.f32.f32 " + d + "[%h, {%q0, %f, %q0, %q0}];") ==
        texel(cube, 0, 4, 4, 2));
  CHECK(first(cube, "mov.f32 %q0, 0f3E000000; mov.b32 %r0, 1;\ntex.acube.v4.f32.f32 " + d +
                        "[%h, {%r0, %f, %q0, %q0}];") == texel(cube, 0, 3, 3, 6));
  CHECK(first(flat, "tld4.r.2d.v4.f32.f32 " + d + "[%h, {%f, %g}];") ==
        texel(flat, 0, 4, 2, 0) * 0 + texel(flat, 0, 4, 2, 0));
}

TEST_CASE("Tex_TextureVariable_HoldsTheHandleOfTheBoundObject") {
  ImageRun run;
  const test::TestImage image({.channels = 1, .width = 40, .height = 3}, 9);
  TextureObject texture;
  texture.image = image.resource();
  const std::uint64_t handle = ImageTable::Get().Add(texture);
  // The kernel binds it itself, as the driver would: the handle goes into the variable's eight bytes.
  const auto out = run.Floats(Kernel(R"(
    mov.u64 %rd2, tref;
    st.global.u64 [%rd2], %h;
    bar.sync 0;
    tex.2d.v4.f32.s32 {%o0, %r1, %r2, %r3}, [tref, {%t, 1}];
    tex.2d.v4.f32.s32 {%o1, %r1, %r2, %r3}, [%rd2, {%t, 2}];
    istypep.texref %pr0, %rd2;
    selp.b32 %o2, 1, 0, %pr0;
    istypep.surfref %pr0, %rd2;
    selp.b32 %o3, 1, 0, %pr0;
  )",
                                     ".global .texref tref;\n"),
                              handle);
  INFO(run.fault().text);
  REQUIRE(run.fault().kind == FaultKind::kNone);
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(static_cast<double>(out[4 * t]) == test::StoredTexel(texture, texture.image.levels[0], t, 1, 0)[0]);
    CHECK(static_cast<double>(out[4 * t + 1]) == test::StoredTexel(texture, texture.image.levels[0], t, 2, 0)[0]);
    CHECK(std::bit_cast<std::uint32_t>(out[4 * t + 2]) == 1);
    CHECK(std::bit_cast<std::uint32_t>(out[4 * t + 3]) == 0);
  }
}

TEST_CASE("Tex_SamplerVariable_OverridesTheTexturesSampler") {
  ImageRun run;
  const test::TestImage image({.channels = 1, .width = 8, .height = 3}, 10);
  TextureObject texture;
  texture.image = image.resource();
  texture.normalized_coordinates = true;
  const std::uint64_t handle = ImageTable::Get().Add(texture);
  const auto out = run.Floats(
      Kernel(
          R"(
    mov.f32 %q0, 0f00000000;
    mul.f32 %q1, %f, 0f3E000000;
    tex.2d.v4.f32.f32 {%o0, %r1, %r2, %r3}, [%h, smp, {%q1, %q0}];
    tex.2d.v4.f32.f32 {%o1, %r1, %r2, %r3}, [%h, {%q1, %q0}];
    txq.filter_mode.b32 %o2, [smp];
    txq.addr_mode_1.b32 %o3, [smp];
  )",
          ".global .samplerref smp = { addr_mode_0 = wrap, addr_mode_1 = clamp_to_border, filter_mode = nearest };\n"),
      handle);
  INFO(run.fault().text);
  REQUIRE(run.fault().kind == FaultKind::kNone);
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(static_cast<double>(out[4 * t]) == test::StoredTexel(texture, texture.image.levels[0], t % 8, 0, 0)[0]);
    CHECK(static_cast<double>(out[4 * t + 1]) ==
          test::StoredTexel(texture, texture.image.levels[0], std::min(t, 7u), 0, 0)[0]);
    CHECK(std::bit_cast<std::uint32_t>(out[4 * t + 2]) == 0);
    CHECK(std::bit_cast<std::uint32_t>(out[4 * t + 3]) == 4);
  }
}

TEST_CASE("Txq_AndSuq_TellTheObjectsShape") {
  ImageRun run;
  const test::TestImage image({.type = ChannelType::kUnsigned8, .channels = 4, .width = 24, .height = 10, .levels = 3},
                              11);
  TextureObject texture = LinearTexture(image);
  texture.normalized_coordinates = true;
  texture.address[2] = AddressMode::kMirror;
  const std::uint64_t handle = ImageTable::Get().Add(texture);
  const auto query = [&](const std::string& a, const std::string& b, std::uint64_t object) {
    const auto out = run.Words(Kernel(a + ";" + b + "; mov.b32 %o2, 0; mov.b32 %o3, 0;"), object);
    INFO(run.fault().text);
    REQUIRE(run.fault().kind == FaultKind::kNone);
    return std::pair(out[0], out[1]);
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  CHECK(query("txq.width.b32 %o0, [%h]", "txq.height.b32 %o1, [%h]", handle) == Pair(24, 10));
  CHECK(query("txq.level.width.b32 %o0, [%h], 1", "txq.level.height.b32 %o1, [%h], 2", handle) == Pair(12, 2));
  CHECK(query("txq.depth.b32 %o0, [%h]", "txq.array_size.b32 %o1, [%h]", handle) == Pair(0, 0));
  CHECK(query("txq.channel_data_type.b32 %o0, [%h]", "txq.channel_order.b32 %o1, [%h]", handle) ==
        Pair(0x10d2, 0x10b5));
  CHECK(query("txq.normalized_coords.b32 %o0, [%h]", "txq.filter_mode.b32 %o1, [%h]", handle) == Pair(1, 1));
  CHECK(query("txq.addr_mode_0.b32 %o0, [%h]", "txq.addr_mode_2.b32 %o1, [%h]", handle) == Pair(3, 1));
  CHECK(query("txq.num_mipmap_levels.b32 %o0, [%h]", "txq.num_samples.b32 %o1, [%h]", handle) == Pair(3, 0));
  SurfaceObject surface;
  surface.image = image.resource();
  const std::uint64_t surface_handle = ImageTable::Get().Add(surface);
  CHECK(query("suq.width.b32 %o0, [%h]", "suq.height.b32 %o1, [%h]", surface_handle) == Pair(24, 10));
  CHECK(query("suq.memory_layout.b32 %o0, [%h]", "suq.channel_data_type.b32 %o1, [%h]", surface_handle) ==
        Pair(0, 0x10da));
}

TEST_CASE("Tex_HandleOfNothing_IsAFault") {
  ImageRun run;
  const std::string tex = Kernel("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%f, %g}];");
  const test::TestImage image({.width = 4, .height = 4}, 12);
  SurfaceObject surface;
  surface.image = image.resource();
  for (std::uint64_t handle : {std::uint64_t{0}, std::uint64_t{0xdeadbeef}, ImageTable::Get().Add(surface)}) {
    run.Words(tex, handle);
    CHECK(run.fault().kind == FaultKind::kTrap);
    CHECK(run.fault().text.find("texture") != std::string::npos);
  }
}
