// Captured accesses through generic addresses, textures and surfaces.
#include <catch2/catch.hpp>

#include "sim/exec/texture.h"
#include "tests/sim/trace/captured.h"

using namespace gridloom;
using test::Captured, test::Run;

// Generic addresses in shared, local and global memory by one device function; local memory of each warp is its own.
TEST_CASE("Capture_GenericAccesses_GoWhereTheyPoint") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in)
{
  .shared .align 4 .b8 tile[256];
  .local .align 4 .b8 stack[8];
  .reg .b32 %r<10>; .reg .b64 %rd<9>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  mov.u64 %rd3, tile;
  cvta.shared.u64 %rd4, %rd3;
  add.u64 %rd4, %rd4, %rd2;
  st.u32 [%rd4], %r1;
  mov.u64 %rd5, stack;
  cvta.local.u64 %rd6, %rd5;
  st.u32 [%rd6+4], %r1;
  add.u64 %rd7, %rd1, %rd2;
  ld.u32 %r2, [%rd7];
  st.local.u32 [%rd5+4], %r2;
  setp.lt.u32 %p1, %r1, 40;
  selp.b64 %rd8, %rd4, %rd7, %p1;
  ld.u32 %r3, [%rd8];
  ret;
}
)";
  test::Executor executor;
  const std::uint64_t in = executor.Upload(std::vector<std::uint32_t>(1024, 3));
  exec::LaunchParams launch;
  launch.grid = {3, 1, 1};
  launch.block = {64, 1, 1};
  const test::ParamBlock block = test::ParamBlock().Add(in);
  launch.params = block.bytes();
  const Captured captured = Run(executor, ptx, "k", launch);
  using enum trace::Space;
  std::map<std::uint64_t, unsigned> local;  // address -> how often it is written
  for (const auto& [number, cta] : captured.ctas) {
    std::uint64_t w = 0;
    for (const trace::WarpTrace& warp : cta.warps) {
      REQUIRE(warp.access_count == 5);
      // The last one's second warp has lanes in shared and lanes in global memory: global.
      const trace::Space expected[] = {kShared, kLocal, kGlobal, kLocal, w == 0 ? kShared : kGlobal};
      for (std::uint32_t a = 0; a < 5; ++a) {
        const trace::MemoryAccess& access = cta.accesses[warp.first_access + a];
        const bool generic = a != 3;
        const trace::AccessWindow window =
            trace::WindowOf(generic ? kGlobal : kLocal, generic ? trace::kGeneric : 0, cta, access);
        CHECK(window.space == expected[a]);
        std::array<std::uint64_t, 32> addresses{};
        trace::LaneAddresses(cta, access, addresses);
        for (std::uint64_t lane = 0; lane < 32; ++lane) {
          const std::uint64_t offset = addresses[lane] - window.added, own = (w * 32 + lane) * 4;
          if (expected[a] == kShared) CHECK(offset == own);
          if (a == 2) CHECK(offset == in + own);
          if (expected[a] == kLocal) ++local[offset];
        }
      }
      ++w;
    }
  }
  // 3 CTAs of 64 threads, each of which writes its word twice.
  CHECK(local.size() == 192);
  for (const auto& [address, count] : local) CHECK(count == 2);
}

TEST_CASE("Capture_TexturesAndSurfaces_HaveAddresses") {
  const std::string ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 texture, .param .u64 surface)
{
  .reg .b32 %r<10>; .reg .b64 %rd<4>; .reg .f32 %f<8>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [texture];
  ld.param.u64 %rd2, [surface];
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  mov.f32 %f2, 0f40000000;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, 1;
  suld.b.2d.b32.zero {%r4}, [%rd2, {%r2, %r3}];
  setp.lt.u32 %p1, %r1, 7;
  @%p1 sust.b.2d.b32.zero [%rd2, {%r2, %r3}], {%r4};
  ret;
}
)";
  test::Executor executor;
  constexpr std::uint32_t kPitch = 256;
  exec::ImageResource image;
  image.kind = exec::ImageResource::Kind::kPitch2D;
  image.levels[0] = {
      .base = executor.Upload(std::vector<float>(4 * kPitch / 4)), .width = 32, .height = 4, .row_bytes = kPitch};
  exec::TextureObject texture;
  texture.image = image;
  const std::uint64_t texture_handle = exec::ImageTable::Get().Add(texture);
  const std::uint64_t surface_handle = exec::ImageTable::Get().Add(exec::SurfaceObject{image});
  exec::LaunchParams launch;
  launch.block = {32, 1, 1};
  const test::ParamBlock block = test::ParamBlock().Add(texture_handle).Add(surface_handle);
  launch.params = block.bytes();
  const Captured captured = Run(executor, ptx, "k", launch);
  const trace::CtaTrace& cta = captured.ctas.at(0);
  REQUIRE(cta.accesses.size() == 3);
  const std::uint64_t base = image.levels[0].base;
  CHECK((cta.accesses[0].mask == ~0u && cta.accesses[0].base == base + 2 * kPitch && cta.accesses[0].stride == 4));
  CHECK((cta.accesses[1].mask == ~0u && cta.accesses[1].base == base + kPitch && cta.accesses[1].stride == 4));
  CHECK((cta.accesses[2].mask == 127 && cta.accesses[2].base == base + kPitch && cta.accesses[2].stride == 4));
  std::vector<trace::Space> spaces;
  for (const trace::Instruction& instruction : captured.table.code.instructions) {
    if (instruction.has_access()) spaces.push_back(instruction.space);
  }
  CHECK(spaces == std::vector{trace::Space::kTexture, trace::Space::kGlobal, trace::Space::kGlobal});
  exec::ImageTable::Get().RemoveTexture(texture_handle);
  exec::ImageTable::Get().RemoveSurface(surface_handle);
}
