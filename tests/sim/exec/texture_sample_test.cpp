// The sampler against the programming guide's formulas: every format, address mode, filter and geometry, odd sizes,
// coordinates far outside, infinite and not a number, with every instruction set.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "sim/exec/image/cube.h"
#include "sim/exec/image/sample.h"
#include "tests/sim/exec/texture_reference.h"

using namespace gridloom;
using namespace gridloom::exec;
using test::Texel;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Operands {
  FloatLanes x[3];
  IntLanes index[3];
  IntLanes offset[3];
  WordLanes layer;
};

/// Coordinates around the image, on texel boundaries, far away and strange.
Operands RandomOperands(std::mt19937& random, const ImageLevel& level, bool normalized) {
  Operands operands;
  const std::uint32_t size[3] = {level.width, level.height, level.depth};
  for (unsigned axis = 0; axis < 3; ++axis) {
    const auto n = static_cast<float>(size[axis]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      float u = std::uniform_real_distribution<float>(-1.5f * n, 2.5f * n)(random);
      if (lane % 5 == 1) u = std::floor(u) + (lane % 2 ? 0.5f : 0.25f);
      operands.x[axis][lane] = normalized ? u / n : u;
      operands.index[axis][lane] = static_cast<std::int32_t>(std::floor(u));
      operands.offset[axis][lane] = static_cast<std::int32_t>(random() % 16) - 8;
    }
    operands.x[axis][7] = std::numeric_limits<float>::quiet_NaN();
    operands.x[axis][9] = axis % 2 ? kInfinity : -kInfinity;
    operands.x[axis][11] = 3.0e20f;
    operands.x[axis][13] = -3.0e9f;
    operands.index[axis][9] = std::numeric_limits<std::int32_t>::max();
    operands.index[axis][11] = std::numeric_limits<std::int32_t>::min();
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    operands.layer[lane] = lane == 3 ? 0xffffffffu : random() % (level.depth + 2);
  return operands;
}

double ValueOf(const TextureObject& texture, std::uint32_t bits) {
  if (test::ReadsFloat(texture)) return static_cast<double>(std::bit_cast<float>(bits));
  const ChannelType type = texture.image.type;
  const bool is_signed =
      type == ChannelType::kSigned8 || type == ChannelType::kSigned16 || type == ChannelType::kSigned32;
  return is_signed ? static_cast<double>(static_cast<std::int32_t>(bits)) : static_cast<double>(bits);
}

/// A sum of integers that arrives as one: of 32 bits rounded down; else to the nearest, up where two are equally near,
/// as its float tells.
bool IsRounded(const TextureObject& texture, double got, double sum) {
  if (test::ReadsFloat(texture) || texture.filter != FilterMode::kLinear) return false;
  if (exec::BytesOf(texture.image.type) == 4) return got == std::floor(sum);
  const double error = 1e-6 * std::abs(sum);
  return got == std::floor(sum + 0.5 - error) || got == std::floor(sum + 0.5 + error);
}

bool Near(double got, double expected) { return std::abs(got - expected) <= 4e-6 * (1 + std::abs(expected)); }

void CheckLane(const TextureObject& texture, const Texels& out, unsigned lane, const Texel& expected) {
  for (unsigned c = 0; c < 4; ++c) {
    const double got = ValueOf(texture, out.channel[c][lane]);
    if (Near(got, expected[c]) || IsRounded(texture, got, expected[c])) continue;
    INFO("lane " << lane << " channel " << c << " type " << int(texture.image.type) << " dims "
                 << int(texture.image.dims) << " mode " << int(texture.address[0]) << int(texture.address[1])
                 << int(texture.address[2]) << " linear " << int(texture.filter) << " normalised "
                 << texture.normalized_coordinates);
    CHECK(got == Approx(expected[c]));
  }
}

/// Runs with every instruction set the machine has; the results must be the same to the bit.
template <typename F>
Texels AtEveryLevel(F&& run) {
  Texels results[3];
  for (SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    LimitSimd(level);
    Texels& out = results[static_cast<int>(level)];
    for (auto& channel : out.channel) channel = {};
    run(out);
  }
  for (unsigned c = 0; c < 4; ++c) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      REQUIRE(results[1].channel[c][lane] == results[0].channel[c][lane]);
      REQUIRE(results[2].channel[c][lane] == results[0].channel[c][lane]);
    }
  }
  return results[0];
}

ImageGeometry GeometryFor(unsigned dims, bool layered) {
  if (layered) return dims == 1 ? ImageGeometry::kA1d : ImageGeometry::kA2d;
  return dims == 1 ? ImageGeometry::k1d : dims == 2 ? ImageGeometry::k2d : ImageGeometry::k3d;
}

void CheckFetches(TextureObject texture, unsigned dims, bool layered, bool with_offset, std::mt19937& random) {
  const Operands operands = RandomOperands(random, texture.image.levels[0], texture.normalized_coordinates);
  TextureFetch fetch{.geometry = GeometryFor(dims, layered)};
  if (layered) fetch.layer = operands.layer.lane;
  for (unsigned axis = 0; axis < dims; ++axis) {
    fetch.coordinate[axis] = operands.x[axis].lane;
    fetch.index[axis] = operands.index[axis].lane;
    if (with_offset) fetch.offset[axis] = operands.offset[axis].lane;
  }
  for (bool is_float : {true, false}) {
    fetch.is_float = is_float;
    const Texels out =
        AtEveryLevel([&](Texels& to) { SampleTexture(texture, SamplerOf(texture), fetch, 0xffffffffu, to); });
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      std::array<int, 3> offset{};
      std::array<float, 3> x{};
      std::array<std::int32_t, 3> index{};
      for (unsigned axis = 0; axis < dims; ++axis) {
        if (with_offset) offset[axis] = operands.offset[axis][lane];
        x[axis] = operands.x[axis][lane];
        index[axis] = operands.index[axis][lane];
      }
      const std::int64_t slice =
          layered ? std::int64_t{std::min(operands.layer[lane], texture.image.levels[0].depth - 1)} : -1;
      CheckLane(texture, out, lane,
                is_float ? test::ReferenceFetch(texture, 0, x, offset, dims, slice)
                         : test::ReferenceFetchInteger(texture, 0, index, offset, dims, slice));
    }
  }
}

constexpr ChannelType kTypes[] = {ChannelType::kUnsigned8, ChannelType::kUnsigned16, ChannelType::kUnsigned32,
                                  ChannelType::kSigned8,   ChannelType::kSigned16,   ChannelType::kSigned32,
                                  ChannelType::kHalf,      ChannelType::kFloat};
constexpr AddressMode kModes[] = {AddressMode::kWrap, AddressMode::kClamp, AddressMode::kMirror, AddressMode::kBorder};

}  // namespace

TEST_CASE("SampleTexture_EveryFormatModeAndFilter_IsTheGuidesFormula") {
  std::mt19937 random(1);
  for (ChannelType type : kTypes) {
    for (unsigned channels : {1u, 2u, 4u}) {
      for (unsigned dims : {1u, 2u, 3u}) {
        for (bool layered : {false, true}) {
          if (layered && dims == 3) continue;
          const test::TestImage image({.type = type,
                                       .channels = channels,
                                       .dims = dims,
                                       .width = 13,
                                       .height = dims > 1 ? 7u : 1u,
                                       .depth = dims > 2 || layered ? 5u : 1u,
                                       .layered = layered},
                                      random());
          for (AddressMode mode : kModes) {
            for (unsigned bits = 0; bits < 8; ++bits) {
              TextureObject texture;
              texture.image = image.resource();
              texture.address[0] = mode;
              texture.address[1] = kModes[random() % 4];
              texture.address[2] = kModes[random() % 4];
              texture.filter = bits & 1 ? FilterMode::kLinear : FilterMode::kPoint;
              texture.normalized_coordinates = bits & 2;
              texture.read_as_integer = bits & 4;
              texture.srgb = type == ChannelType::kUnsigned8 && channels == 4 && random() % 2 == 0;
              for (unsigned i = 0; i < 4; ++i)
                texture.border[i] = 0.25f * static_cast<float>(i + 1) + (texture.read_as_integer ? 7.0f : 0.0f);
              CheckFetches(texture, dims, layered, bits % 3 == 0, random);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("SampleTexture_ImagesOfOneTexel_WrapAndMirror") {
  std::mt19937 random(2);
  for (std::uint32_t width : {1u, 2u, 3u}) {
    const test::TestImage image({.width = width, .height = 1}, random());
    for (AddressMode mode : kModes) {
      for (FilterMode filter : {FilterMode::kPoint, FilterMode::kLinear}) {
        TextureObject texture;
        texture.image = image.resource();
        texture.address[0] = texture.address[1] = mode;
        texture.filter = filter;
        texture.normalized_coordinates = true;
        CheckFetches(texture, 2, false, true, random);
      }
    }
  }
}

TEST_CASE("SampleTexture_LinearMemory_ReadsZeroOutside") {
  std::mt19937 random(3);
  const test::TestImage image({.channels = 4, .dims = 1, .width = 29}, 3);
  TextureObject texture;
  texture.image = image.resource();
  texture.image.kind = ImageResource::Kind::kLinear;
  const Operands operands = RandomOperands(random, texture.image.levels[0], false);
  TextureFetch fetch{
      .geometry = ImageGeometry::k1d, .is_float = false, .index = {operands.index[0].lane, nullptr, nullptr}};
  Texels out;
  SampleTexture(texture, SamplerOf(texture), fetch, 0xffffffffu, out);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    CheckLane(texture, out, lane, test::ReferenceFetchInteger(texture, 0, {operands.index[0][lane], 0, 0}, {}, 1, -1));
  }
}

TEST_CASE("SampleTexture_LanesThatAreOff_KeepTheirOutputs") {
  const test::TestImage image({.width = 4, .height = 4}, 4);
  TextureObject texture;
  texture.image = image.resource();
  FloatLanes x{}, y{};
  Texels out;
  for (auto& channel : out.channel) std::fill_n(channel.lane, kWarpSize, 0xdeadbeefu);
  const TextureFetch fetch{.geometry = ImageGeometry::k2d, .coordinate = {x.lane, y.lane, nullptr}};
  SampleTexture(texture, SamplerOf(texture), fetch, 0x0000ff00u, out);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    CHECK((out.channel[0][lane] == 0xdeadbeefu) == (lane < 8 || lane >= 16));
}

TEST_CASE("SampleTexture_Mipmaps_BlendTheTwoNearestLevels") {
  std::mt19937 random(5);
  const test::TestImage image({.channels = 2, .width = 37, .height = 18, .levels = 6}, 5);
  TextureObject texture;
  texture.image = image.resource();
  texture.normalized_coordinates = true;
  texture.filter = FilterMode::kLinear;
  texture.max_lod = 4.5f;
  texture.min_lod = 0.25f;
  texture.lod_bias = 0.125f;
  for (FilterMode mip : {FilterMode::kPoint, FilterMode::kLinear}) {
    texture.mip_filter = mip;
    const Operands operands = RandomOperands(random, texture.image.levels[0], true);
    FloatLanes lod;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) lod[lane] = std::uniform_real_distribution<float>(-2, 8)(random);
    lod[4] = std::numeric_limits<float>::quiet_NaN();
    const TextureFetch fetch{.geometry = ImageGeometry::k2d,
                             .lod_mode = LodMode::kLevel,
                             .coordinate = {operands.x[0].lane, operands.x[1].lane, nullptr},
                             .lod = lod.lane};
    const Texels out =
        AtEveryLevel([&](Texels& to) { SampleTexture(texture, SamplerOf(texture), fetch, 0xffffffffu, to); });
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      float detail = std::isnan(lod[lane]) ? 0.25f : std::fmin(std::fmax(lod[lane] + 0.125f, 0.25f), 4.5f);
      const auto at = [&](unsigned level) {
        return test::ReferenceFetch(texture, level, {operands.x[0][lane], operands.x[1][lane], 0}, {}, 2, -1);
      };
      Texel expected;
      if (mip == FilterMode::kPoint) {
        expected = at(static_cast<unsigned>(std::floor(detail + 0.5f)));
      } else {
        const double fixed = std::nearbyint(detail * 256.0) / 256, weight = fixed - std::floor(fixed);
        const auto fine = static_cast<unsigned>(std::floor(fixed));
        const Texel a = at(fine), b = at(std::min(fine + 1, 5u));
        for (unsigned c = 0; c < 4; ++c) expected[c] = (1 - weight) * a[c] + weight * b[c];
      }
      CheckLane(texture, out, lane, expected);
    }
  }
}

TEST_CASE("SampleTexture_Gradients_ChooseTheLevelOfTheLongerAxis") {
  const test::TestImage image({.width = 64, .height = 64, .levels = 7}, 6);
  TextureObject texture;
  texture.image = image.resource();
  texture.normalized_coordinates = true;
  texture.max_lod = 6;
  FloatLanes x, y, dx[2]{}, dy[2]{};
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    x[lane] = 0.03f * static_cast<float>(lane);
    y[lane] = 0.5f;
    dx[0][lane] = std::exp2(static_cast<float>(lane % 8)) / 64;  // 2^k texels along x
    dy[1][lane] = 1.0f / 64;
  }
  const TextureFetch fetch{.geometry = ImageGeometry::k2d,
                           .lod_mode = LodMode::kGradient,
                           .coordinate = {x.lane, y.lane, nullptr},
                           .dx = {dx[0].lane, dx[1].lane, nullptr},
                           .dy = {dy[0].lane, dy[1].lane, nullptr}};
  Texels out;
  SampleTexture(texture, SamplerOf(texture), fetch, 0xffffffffu, out);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    CheckLane(texture, out, lane,
              test::ReferenceFetch(texture, std::min(lane % 8, 6u), {x[lane], y[lane], 0}, {}, 2, -1));
  }
  // Anisotropic: the mean of n samples along the longer axis, from the level of the shorter one.
  texture.filter = FilterMode::kLinear;
  texture.max_anisotropy = 8;
  SampleTexture(texture, SamplerOf(texture), fetch, 0xffffffffu, out);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const unsigned k = lane % 8, n = std::min(1u << k, 8u);
    Texel mean{};
    for (unsigned i = 0; i < n; ++i) {
      const float along = (static_cast<float>(i) + 0.5f) / static_cast<float>(n) - 0.5f;
      const Texel one = test::ReferenceFetch(texture, k <= 3 ? 0 : std::min(k - 3, 6u),
                                             {x[lane] + dx[0][lane] * (n == 1 ? 0 : along), y[lane], 0}, {}, 2, -1);
      for (unsigned c = 0; c < 4; ++c) mean[c] += one[c] / n;
    }
    CheckLane(texture, out, lane, mean);
  }
}

TEST_CASE("SampleTexture_Cubemap_ChoosesFaceByTheMajorAxis") {
  std::mt19937 random(7);
  for (bool layered : {false, true}) {
    const test::TestImage image(
        {.channels = 4, .width = 9, .height = 9, .depth = layered ? 18u : 6u, .layered = layered, .cubemap = true}, 7);
    for (FilterMode filter : {FilterMode::kPoint, FilterMode::kLinear}) {
      TextureObject texture;
      texture.image = image.resource();
      texture.filter = filter;
      texture.normalized_coordinates = true;
      FloatLanes direction[3];
      WordLanes layer;
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        for (auto& axis : direction) axis[lane] = std::uniform_real_distribution<float>(-3, 3)(random);
        layer[lane] = random() % 4;
      }
      const TextureFetch fetch{.geometry = layered ? ImageGeometry::kAcube : ImageGeometry::kCube,
                               .layer = layered ? layer.lane : nullptr,
                               .coordinate = {direction[0].lane, direction[1].lane, direction[2].lane}};
      Texels out;
      SampleTexture(texture, SamplerOf(texture), fetch, 0xffffffffu, out);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        // The table of the programming guide.
        const float x = direction[0][lane], y = direction[1][lane], z = direction[2][lane];
        float m, s, t;
        unsigned face;
        if (std::fabs(x) > std::fabs(y) && std::fabs(x) > std::fabs(z)) {
          m = std::fabs(x);
          face = x >= 0 ? 0 : 1;
          s = x >= 0 ? -z : z;
          t = -y;
        } else if (std::fabs(y) > std::fabs(x) && std::fabs(y) > std::fabs(z)) {
          m = std::fabs(y);
          face = y >= 0 ? 2 : 3;
          s = x;
          t = y >= 0 ? z : -z;
        } else {
          m = std::fabs(z);
          face = z >= 0 ? 4 : 5;
          s = z >= 0 ? x : -x;
          t = -y;
        }
        const std::int64_t slice = (layered ? std::min(layer[lane], 2u) * 6 : 0) + face;
        CheckLane(texture, out, lane,
                  test::ReferenceFetch(texture, 0, {(s / m + 1) / 2, (t / m + 1) / 2, 0}, {}, 2, slice));
      }
    }
  }
}

TEST_CASE("SampleTexture_SeamlessCubemap_IsContinuousAcrossEveryEdge") {
  const test::TestImage image({.width = 8, .height = 8, .depth = 6, .cubemap = true}, 8);
  TextureObject texture;
  texture.image = image.resource();
  texture.filter = FilterMode::kLinear;
  texture.seamless_cubemap = true;
  std::mt19937 random(8);
  // Pairs of directions just on either side of the edge between two faces: |a| = |b| > |c|.
  for (int round = 0; round < 40; ++round) {
    FloatLanes direction[3];
    for (unsigned lane = 0; lane < kWarpSize; lane += 2) {
      const unsigned a = random() % 3, b = (a + 1 + random() % 2) % 3, c = 3 - a - b;
      const float sign_a = random() % 2 ? 1.0f : -1.0f, sign_b = random() % 2 ? 1.0f : -1.0f;
      const float along = std::uniform_real_distribution<float>(-0.999f, 0.999f)(random);
      for (unsigned side = 0; side < 2; ++side) {
        direction[a][lane + side] = sign_a * (side ? 1.0f : 0.99999f);
        direction[b][lane + side] = sign_b * (side ? 0.99999f : 1.0f);
        direction[c][lane + side] = along;
      }
    }
    const TextureFetch fetch{.geometry = ImageGeometry::kCube,
                             .coordinate = {direction[0].lane, direction[1].lane, direction[2].lane}};
    Texels out;
    SampleTexture(texture, SamplerOf(texture), fetch, 0xffffffffu, out);
    for (unsigned lane = 0; lane < kWarpSize; lane += 2) {
      const float one = std::bit_cast<float>(out.channel[0][lane]),
                  other = std::bit_cast<float>(out.channel[0][lane + 1]);
      CHECK(std::fabs(one - other) < 0.15f);  // weights are steps of 1/256, texels differ by up to 8
    }
  }
}

TEST_CASE("ProjectCube_OfEveryDirection_IsInvertedByDirectionOf") {
  for (int x = -3; x <= 3; ++x) {
    for (int y = -3; y <= 3; ++y) {
      for (int z = -3; z <= 3; ++z) {
        const auto point = ProjectCube(x, y, z);
        const auto back = DirectionOf(point);
        CHECK((back.x == x && back.y == y && back.z == z));
      }
    }
  }
}

TEST_CASE("GatherTexture_EveryComponent_IsTheBilinearFootprint") {
  std::mt19937 random(9);
  for (ChannelType type : kTypes) {
    const test::TestImage image({.type = type, .channels = 4, .width = 11, .height = 6}, 9);
    for (AddressMode mode : kModes) {
      TextureObject texture;
      texture.image = image.resource();
      texture.address[0] = texture.address[1] = mode;
      texture.normalized_coordinates = true;
      const Operands operands = RandomOperands(random, texture.image.levels[0], true);
      const TextureFetch fetch{.geometry = ImageGeometry::k2d,
                               .coordinate = {operands.x[0].lane, operands.x[1].lane, nullptr}};
      for (unsigned component = 0; component < 4; ++component) {
        const Texels out = AtEveryLevel(
            [&](Texels& to) { GatherTexture(texture, SamplerOf(texture), fetch, component, 0xffffffffu, to); });
        constexpr float kStep[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
        for (unsigned lane = 0; lane < 7; ++lane) {
          const float u = operands.x[0][lane], v = operands.x[1][lane];
          for (unsigned i = 0; i < 4; ++i) {
            // A point fetch at the centre of each texel of the footprint.
            const auto centre = [](float w, float n, float step, AddressMode m) {
              if (m == AddressMode::kWrap) w -= std::floor(w);
              if (m == AddressMode::kMirror)
                w = std::fmod(std::floor(w), 2.0f) == 0 ? w - std::floor(w) : 1 - (w - std::floor(w));
              const double fixed = std::nearbyint((static_cast<double>(w * n) - 0.5) * 256) / 256;
              double texel = std::floor(fixed) + static_cast<double>(step);
              if (m == AddressMode::kMirror) texel = std::fmin(std::fmax(texel, 0), static_cast<double>(n) - 1);
              return static_cast<float>((texel + 0.5) / static_cast<double>(n));
            };
            const Texel expected = test::ReferenceFetch(
                texture, 0, {centre(u, 11, kStep[i][0], mode), centre(v, 6, kStep[i][1], mode), 0}, {}, 2, -1);
            CHECK(Near(ValueOf(texture, out.channel[i][lane]), expected[component]));
          }
        }
      }
    }
  }
}
