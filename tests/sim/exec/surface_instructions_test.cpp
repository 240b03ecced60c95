// suld, sust and sured from PTX text to memory: every width, geometry, mode for coordinates out of range.
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "sim/exec/texture.h"
#include "tests/sim/exec/executor_fixture.h"
#include "tests/sim/exec/texture_reference.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

/// %h: the surface, %t: the thread, %x: 4 * thread - 16 (a byte coordinate that leaves small images on both sides).
std::string Kernel(const std::string& body) {
  return R"(.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 handle, .param .u64 out)
{
  .reg .b64 %h, %p, %rd<4>, %d<4>;
  .reg .b32 %t, %x, %o<4>, %r<8>;
  .reg .b16 %s<4>;
  .reg .f32 %f<4>;
  ld.param.u64 %h, [handle];
  ld.param.u64 %p, [out];
  mov.u32 %t, %tid.x;
  shl.b32 %x, %t, 2;
  sub.s32 %x, %x, 16;
  mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;
)" + body +
         R"(
  mul.wide.u32 %rd0, %t, 16;
  add.u64 %rd0, %rd0, %p;
  st.global.v4.b32 [%rd0], {%o0, %o1, %o2, %o3};
  ret;
}
)";
}

class SurfaceRun {
 public:
  explicit SurfaceRun(const test::TestImage::Shape& shape) : image_(shape, 1) {
    SurfaceObject surface;
    surface.image = image_.resource();
    handle_ = ImageTable::Get().Add(surface);
  }
  std::vector<std::uint32_t> operator()(const std::string& body, std::uint64_t handle = 0) {
    std::vector<std::uint32_t> out(32 * 4);
    const std::uint64_t address = executor_.Upload(out);
    fault = executor_.Launch(Kernel(body), "k", {1, 1, 1}, {32, 1, 1},
                             test::ParamBlock().Add(handle ? handle : handle_).Add(address));
    executor_.Download(address, out);
    return out;
  }
  std::uint8_t* At(unsigned byte_x, unsigned y = 0, unsigned z = 0) {
    const ImageLevel& level = image_.resource().levels[0];
    return reinterpret_cast<std::uint8_t*>(level.base) + z * level.slice_bytes + y * level.row_bytes + byte_x;
  }
  template <typename T>
  T Load(unsigned byte_x, unsigned y = 0, unsigned z = 0) {
    T value;
    std::memcpy(&value, At(byte_x, y, z), sizeof value);
    return value;
  }

  LaunchFault fault;

 private:
  test::TestImage image_;
  test::Executor executor_;
  std::uint64_t handle_;
};

}  // namespace

TEST_CASE("Suld_ZeroAndClamp_HandleCoordinatesOutOfRange") {
  SurfaceRun run({.type = ChannelType::kUnsigned32, .width = 20, .height = 4});
  const auto out = run(R"(
    suld.b.2d.b32.zero %o0, [%h, {%x, 1}];
    suld.b.2d.b32.clamp %o1, [%h, {%x, 1}];
    suld.b.2d.b32.clamp %o2, [%h, {8, %x}];
    suld.b.2d.b32.zero %o3, [%h, {8, %x}];
  )");
  REQUIRE(run.fault.kind == FaultKind::kNone);
  for (int t = 0; t < 32; ++t) {
    const int x = 4 * t - 16, y = x;
    const bool x_inside = x >= 0 && x < 80, y_inside = y >= 0 && y < 4;
    CHECK(out[4 * t] == (x_inside ? run.Load<std::uint32_t>(x, 1) : 0));
    CHECK(out[4 * t + 1] == run.Load<std::uint32_t>(std::clamp(x, 0, 76), 1));
    CHECK(out[4 * t + 2] == run.Load<std::uint32_t>(8, std::clamp(y, 0, 3)));
    CHECK(out[4 * t + 3] == (y_inside ? run.Load<std::uint32_t>(8, y) : 0));
  }
}

TEST_CASE("Suld_EveryWidthAndVector") {
  SurfaceRun run({.type = ChannelType::kUnsigned32, .channels = 4, .width = 40, .height = 2});
  const auto out = run(R"(
    shl.b32 %r0, %t, 4;
    suld.b.2d.b8.trap %s0, [%h, {%r0, 1}];
    suld.b.2d.v2.b16.trap {%s1, %s2}, [%h, {%r0, 1}];
    suld.b.2d.v4.b32.trap {%r1, %r2, %r3, %r4}, [%h, {%r0, 1}];
    suld.b.2d.v2.b64.trap {%d0, %d1}, [%h, {%r0, 1}];
    cvt.u32.u16 %o0, %s0;
    cvt.u32.u16 %o1, %s2;
    mov.b32 %o2, %r4;
    shr.u64 %d1, %d1, 32;
    cvt.u32.u64 %o3, %d1;
  )");
  INFO(run.fault.text);
  REQUIRE(run.fault.kind == FaultKind::kNone);
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(out[4 * t] == run.Load<std::uint8_t>(16 * t, 1));
    CHECK(out[4 * t + 1] == run.Load<std::uint16_t>(16 * t + 2, 1));
    CHECK(out[4 * t + 2] == run.Load<std::uint32_t>(16 * t + 12, 1));
    CHECK(out[4 * t + 3] == run.Load<std::uint32_t>(16 * t + 12, 1));
  }
}

TEST_CASE("Sust_EveryGeometry_StoresWhereSuldLoads") {
  SurfaceRun line({.type = ChannelType::kUnsigned32, .dims = 1, .width = 40});
  line("shl.b32 %r0, %t, 2;\n sust.b.1d.b32.trap [%h, {%r0}], %t;");
  CHECK(line.fault.kind == FaultKind::kNone);
  CHECK(line.Load<std::uint32_t>(4 * 31) == 31);
  SurfaceRun volume({.type = ChannelType::kUnsigned32, .channels = 2, .dims = 3, .width = 8, .height = 4, .depth = 5});
  volume(
      "and.b32 %r0, %t, 7; shl.b32 %r0, %r0, 3; shr.u32 %r1, %t, 3;\n sust.b.3d.v2.b32.trap [%h, {%r0, %r1, 4, 0}], "
      "{%t, %r1};");
  CHECK(volume.fault.kind == FaultKind::kNone);
  CHECK(volume.Load<std::uint32_t>(8 * 5, 2, 4) == 21);
  CHECK(volume.Load<std::uint32_t>(8 * 5 + 4, 2, 4) == 2);
  SurfaceRun layers({.type = ChannelType::kUnsigned16, .width = 32, .height = 2, .depth = 3, .layered = true});
  layers(
      "cvt.u16.u32 %s0, %t; shl.b32 %r0, %t, 1;\n sust.b.a2d.b16.trap [%h, {2, %r0, 1, 0}], %s0;\n suld.b.a2d.b16.trap "
      "%s1, [%h, {2, %r0, "
      "1, 0}];"
      "cvt.u32.u16 %o0, %s1;");
  CHECK(layers.fault.kind == FaultKind::kNone);
  CHECK(layers.Load<std::uint16_t>(2 * 9, 1, 2) == 9);
  SurfaceRun lines({.type = ChannelType::kUnsigned8, .dims = 1, .width = 32, .depth = 3, .layered = true});
  lines("cvt.u16.u32 %s0, %t;\n sust.b.a1d.b8.trap [%h, {1, %t}], %s0;");
  CHECK(lines.fault.kind == FaultKind::kNone);
  CHECK(lines.Load<std::uint8_t>(17, 0, 1) == 17);
}

TEST_CASE("Sust_OutOfRange_DropsClampsOrTraps") {
  SurfaceRun run({.type = ChannelType::kUnsigned32, .width = 4, .height = 1});
  std::memset(run.At(0), 0, 16);
  run("sust.b.2d.b32.zero [%h, {%x, 0}], %t;");
  CHECK(run.fault.kind == FaultKind::kNone);
  CHECK(run.Load<std::uint32_t>(0) == 4);
  CHECK(run.Load<std::uint32_t>(12) == 7);
  run("sust.b.2d.b32.clamp [%h, {%x, 5}], %t;");
  CHECK(run.fault.kind == FaultKind::kNone);
  CHECK(run.Load<std::uint32_t>(12) == 31);
  run("sust.b.2d.b32.trap [%h, {%x, 0}], %t;");
  CHECK(run.fault.kind == FaultKind::kTrap);
  CHECK(run.fault.text.find("(-16, 0, 0)") != std::string::npos);
  run("mov.b32 %r0, 2; sust.b.2d.b32.trap [%h, {%r0, 0}], %t;");
  CHECK(run.fault.kind == FaultKind::kMisalignedAddress);
  run("sust.b.2d.b32.trap [%h, {0, 0}], %t;", 0xabcdef);
  CHECK(run.fault.kind == FaultKind::kTrap);
}

TEST_CASE("Sust_Formatted_ConvertsToTheSurfacesFormat") {
  SurfaceRun half({.type = ChannelType::kHalf, .channels = 2, .width = 32, .height = 1});
  half("cvt.rn.f32.u32 %f0, %t; neg.f32 %f1, %f0;\n sust.p.2d.v2.b32.trap [%h, {%t, 0}], {%f0, %f1};");
  CHECK(half.fault.kind == FaultKind::kNone);
  CHECK(half.Load<std::uint16_t>(4 * 3) == 0x4200);
  CHECK(half.Load<std::uint16_t>(4 * 3 + 2) == 0xc200);
  SurfaceRun bytes({.type = ChannelType::kSigned8, .channels = 4, .width = 32, .height = 1});
  bytes("mul.lo.s32 %r0, %t, 20; neg.s32 %r1, %r0;\n sust.p.2d.v4.b32.zero [%h, {%t, 0}], {%r0, %r1, %t, 0};");
  CHECK(bytes.fault.kind == FaultKind::kNone);
  CHECK(bytes.Load<std::int8_t>(4 * 5) == 100);
  CHECK(bytes.Load<std::int8_t>(4 * 30) == 127);
  CHECK(bytes.Load<std::int8_t>(4 * 30 + 1) == -128);
}

TEST_CASE("Sured_EveryOperation") {
  SurfaceRun run({.type = ChannelType::kSigned32, .width = 8, .height = 4});
  std::memset(run.At(0), 0, 32);
  const std::int32_t minus = -5;
  std::memcpy(run.At(4), &minus, 4);
  std::memcpy(run.At(8), &minus, 4);
  std::memset(run.At(24), 0xff, 8);
  run(R"(
    sured.b.add.2d.u32.trap [%h, {0, 0}], %t;
    sured.b.min.2d.s32.trap [%h, {4, 0}], %t;
    sured.b.min.2d.u32.trap [%h, {8, 0}], %t;
    mov.b32 %r0, 1; shl.b32 %r0, %r0, %t;
    sured.b.or.2d.b32.trap [%h, {12, 0}], %r0;
    sured.p.max.2d.b32.trap [%h, {4, 0}], %t;
    cvt.u64.u32 %d0, %t;
    sured.b.min.2d.u64.trap [%h, {24, 0}], %d0;
    sured.b.add.2d.u32.zero [%h, {4096, 0}], %t;
  )");
  INFO(run.fault.text);
  REQUIRE(run.fault.kind == FaultKind::kNone);
  CHECK(run.Load<std::uint32_t>(0) == 496);
  CHECK(run.Load<std::int32_t>(4) == -5);
  CHECK(run.Load<std::uint32_t>(8) == 0);
  CHECK(run.Load<std::uint32_t>(12) == 0xffffffffu);
  CHECK(run.Load<std::int32_t>(16) == 31);
  CHECK(run.Load<std::uint64_t>(24) == 0);
}
