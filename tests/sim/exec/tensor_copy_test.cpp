// Tensor copies from PTX text to memory, against a reference that goes element by element: every rank, element type,
// swizzle, fill, steps, boxes over the edges; stores, reductions, replaced fields; maps that are not what they should
// be.
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/exec/contract/tensor_map.h"
#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr std::uint32_t kSharedBytes = 96 << 10;

/// Loads the box to shared memory at `place` and copies all of shared memory to `out`; `store`: the other way round.
std::string Kernel(unsigned rank, const std::string& body, const char* map_in = "param") {
  std::string coordinates;
  for (unsigned i = 0; i < rank; ++i) coordinates += (i ? ", %c" : "%c") + std::to_string(i);
  std::string text = R"(.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 map_pointer, .param .u64 memory, .param .u32 bytes, .param .u32 place,
                  .param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3, .param .u32 c4)
{
  .reg .b64 %map, %memory, %rd<8>;
  .reg .b32 %t, %tile, %bytes, %barrier, %at, %c<5>, %r<8>;
  .reg .pred %p, %leader;
  ld.param.u64 %memory, [memory];
  ld.param.u32 %bytes, [bytes];
  ld.param.u32 %tile, [place];
  mov.u32 %r0, tile;
  add.u32 %tile, %tile, %r0;
  add.u32 %barrier, %r0, 90112;
)";
  if (std::string(map_in) == "param") text += "  mov.b64 %rd0, map;\n  cvta.param.u64 %map, %rd0;\n";
  else text += "  ld.param.u64 %map, [map_pointer];\n";
  for (unsigned i = 0; i < 5; ++i)
    text += "  ld.param.u32 %c" + std::to_string(i) + ", [c" + std::to_string(i) + "];\n";
  text += "  mov.u32 %t, %tid.x;\n  setp.eq.u32 %leader, %t, 0;\n" + body;
  for (std::size_t at; (at = text.find("$BOX")) != std::string::npos;)
    text.replace(at, 4, "[%map, {" + coordinates + "}]");
  for (std::size_t at; (at = text.find("$D")) != std::string::npos;) text.replace(at, 2, std::to_string(rank) + "d");
  return text + "  ret;\n}\n";
}

const std::string kLoad = R"(
  @!%leader bra WAIT;
  mbarrier.init.shared.b64 [%barrier], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], %bytes;
  prefetch.tensormap [%map];
  cp.async.bulk.prefetch.tensor.$D.L2.global.tile $BOX;
  cp.async.bulk.tensor.$D.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%tile], $BOX, [%barrier];
WAIT:
  bar.sync 0;
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p, [%barrier], 0;
  @!%p bra AGAIN;
  mul.lo.u32 %at, %t, 4;
OUT:
  add.u32 %r1, %r0, %at;
  ld.shared.b32 %r2, [%r1];
  cvt.u64.u32 %rd1, %at;
  add.u64 %rd1, %rd1, %memory;
  st.global.b32 [%rd1], %r2;
  add.u32 %at, %at, 256;
  setp.lt.u32 %p, %at, 90112;
  @%p bra OUT;
)";

std::string Store(const std::string& instruction) {
  return R"(
  mul.lo.u32 %at, %t, 4;
IN:
  add.u32 %r1, %r0, %at;
  cvt.u64.u32 %rd1, %at;
  add.u64 %rd1, %rd1, %memory;
  ld.global.b32 %r2, [%rd1];
  st.shared.b32 [%r1], %r2;
  add.u32 %at, %at, 256;
  setp.lt.u32 %p, %at, 90112;
  @%p bra IN;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @!%leader bra DONE;
  )" + instruction +
         R"(
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
)";
}

struct Case {
  TensorMap map;
  std::array<std::int32_t, 5> at{};
  std::vector<std::uint8_t> tensor;  ///< at offset `shift` of what is uploaded
};

std::uint32_t Bytes(const Case& c) { return BytesOf(c.map.element); }

/// Visits every element of the box: its place in shared memory (offset from the window's begin), and in the tensor
/// (none: outside).
void ForEachElement(const Case& c, std::uint32_t place, const std::function<void(std::uint32_t, std::int64_t)>& visit) {
  const TensorMap& map = c.map;
  std::uint32_t counts[5] = {1, 1, 1, 1, 1};
  for (unsigned i = 0; i < map.rank; ++i) {
    const unsigned step = i == 0 ? 1 : map.step[i];
    counts[i] = 0;
    for (unsigned at = 0; at < map.box[i]; at += step) ++counts[i];
  }
  std::uint32_t linear = place;
  for (std::uint32_t e = 0; e < counts[4]; ++e)
    for (std::uint32_t d = 0; d < counts[3]; ++d)
      for (std::uint32_t k = 0; k < counts[2]; ++k)
        for (std::uint32_t j = 0; j < counts[1]; ++j)
          for (std::uint32_t i = 0; i < counts[0]; ++i, linear += Bytes(c)) {
            const std::uint32_t index[5] = {i, j, k, d, e};
            bool inside = true;
            std::int64_t offset = 0;
            for (unsigned axis = 0; axis < map.rank; ++axis) {
              const std::int64_t coordinate =
                  std::int64_t{c.at[axis]} + std::int64_t{index[axis]} * (axis == 0 ? 1 : map.step[axis]);
              if (coordinate < 0 || coordinate >= map.size[axis]) inside = false;
              offset += coordinate * static_cast<std::int64_t>(axis == 0 ? Bytes(c) : map.stride[axis - 1]);
            }
            std::uint32_t at = linear;
            switch (
                map.swizzle) {  // by the tables of the CUDA C++ Programming Guide: chunk of 16 bytes, row of 128 bytes
              case TensorSwizzle::k128:
                at = linear / 128 * 128 + ((linear / 16 % 8) ^ (linear / 128 % 8)) * 16 + linear % 16;
                break;
              case TensorSwizzle::k64:
                at = linear / 64 * 64 + ((linear / 16 % 4) ^ (linear / 128 % 4)) * 16 + linear % 16;
                break;
              case TensorSwizzle::k32:
                at = linear / 32 * 32 + ((linear / 16 % 2) ^ (linear / 128 % 2)) * 16 + linear % 16;
                break;
              default: break;
            }
            visit(at, inside ? offset : -1);
          }
}

/// With `inside`, the box lies in the tensor altogether.
Case RandomCase(std::mt19937& random, bool inside = false) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Case c;
  TensorMap& map = c.map;
  map.rank = static_cast<std::uint8_t>(1 + below(5));
  map.element = static_cast<TensorElement>(below(static_cast<unsigned>(TensorElement::kCount)));
  map.swizzle = static_cast<TensorSwizzle>(below(4));
  map.fill = IsFloat(map.element) ? static_cast<TensorFill>(below(2)) : TensorFill::kZeros;
  const std::uint32_t bytes = BytesOf(map.element);
  const std::uint32_t widest =
      map.swizzle == TensorSwizzle::kNone ? 256 * bytes : 16u << static_cast<unsigned>(map.swizzle);
  map.box[0] = 16 / bytes * (1 + below(std::min(widest, 256 * bytes) / 16));
  std::uint64_t room = 64 << 10, pitch = 0;
  room /= map.box[0] * bytes;
  const auto place = [&](unsigned axis, std::uint32_t span) {
    c.at[axis] = static_cast<std::int32_t>(axis == 0 ? below(3) * 16 / bytes : below(3));
    map.size[axis] = static_cast<std::uint32_t>(c.at[axis]) + span + below(3);
  };
  map.size[0] = 1 + below(2 * map.box[0]);
  if (inside) place(0, map.box[0]);
  pitch = (map.size[0] * bytes + 15) / 16 * 16;
  for (unsigned axis = 1; axis < map.rank; ++axis) {
    const std::uint32_t most = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room, 1, inside ? 4 : 9));
    map.step[axis] = static_cast<std::uint8_t>(below(3) == 0 ? 1 + below(inside ? 3 : 8) : 1);
    map.box[axis] = 1 + below(most);
    room /= map.count(axis);
    map.size[axis] = 1 + below(12);
    if (inside) place(axis, (map.count(axis) - 1) * map.step[axis] + 1);
    map.stride[axis - 1] = pitch + 16 * below(3);
    pitch = map.stride[axis - 1] * map.size[axis];
  }
  for (unsigned axis = 0; axis < map.rank && !inside; ++axis)
    c.at[axis] = static_cast<std::int32_t>(below(map.size[axis] + map.box[axis] + 2)) -
                 static_cast<std::int32_t>(map.box[axis] + 1);
  const std::int32_t grain = static_cast<std::int32_t>(16 / bytes);  // boxes begin at multiples of 16 bytes in a row
  c.at[0] = (c.at[0] >= 0 ? c.at[0] : c.at[0] - grain + 1) / grain * grain;
  c.tensor.resize(std::max<std::uint64_t>(pitch, 16));
  for (std::uint8_t& byte : c.tensor) byte = static_cast<std::uint8_t>(random());
  return c;
}

/// What a load makes of an element.
std::uint64_t Converted(TensorElement element, std::uint64_t bits) {
  const bool flush = element == TensorElement::kF32Ftz || element == TensorElement::kTF32Ftz;
  const bool round = element == TensorElement::kTF32 || element == TensorElement::kTF32Ftz;
  if (!flush && !round) return bits;
  const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (std::isnan(value)) return round ? bits | 0x400000u : bits;
  if (flush && std::fpclassify(value) == FP_SUBNORMAL) return bits & 0x80000000u;
  if (!round || std::isinf(value)) return bits;
  // To the nearest of the two neighbours with 13 zero bits.
  const std::uint32_t low = static_cast<std::uint32_t>(bits) & ~0x1fffu, rest = bits & 0x1fffu;
  const bool up = rest > 0x1000u || (rest == 0x1000u && (low & 0x2000u) != 0);
  return up ? low + 0x2000u : low;
}

class Runner {
 public:
  LaunchFault Run(const std::string& ptx, const Case& c, std::uint64_t map_pointer, std::uint64_t memory,
                  std::uint32_t bytes, std::uint32_t place) {
    test::ParamBlock params;
    params.Add(c.map).Add(map_pointer).Add(memory).Add(bytes).Add(place);
    for (const std::int32_t at : c.at) params.Add(at);
    return executor.Launch(ptx, "k", {1, 1, 1}, {64, 1, 1}, params, kSharedBytes);
  }
  test::Executor executor;
};

}  // namespace

TEST_CASE("TensorLoad_RandomMaps_MatchTheReference") {
  std::mt19937 random(1);
  Runner runner;
  const std::uint64_t out = runner.executor.Upload(std::vector<std::uint8_t>(90112));
  std::map<unsigned, int> ranks;
  for (int i = 0; i < 600; ++i) {
    Case c = RandomCase(random, i % 3 == 0);
    ++ranks[c.map.rank];
    const std::uint64_t tensor = runner.executor.Upload(c.tensor);
    c.map.address = tensor;
    const std::uint32_t place = static_cast<std::uint32_t>(random() % 16) * 128;
    const std::uint64_t pointer = runner.executor.Upload(std::vector<TensorMap>{c.map});
    const LaunchFault fault =
        runner.Run(Kernel(c.map.rank, kLoad, i % 2 ? "global" : "param"), c, pointer, out, c.map.box_bytes(), place);
    INFO("case " << i << ": " << fault.text);
    REQUIRE(fault.kind == FaultKind::kNone);
    std::vector<std::uint8_t> got(90112);
    runner.executor.Download(out, got);
    long bad = 0;
    const std::uint64_t nan = Bytes(c) == 2 ? 0x7fff : Bytes(c) == 8 ? ~std::uint64_t{0} >> 1 : 0x7fffffff;
    ForEachElement(c, place, [&](std::uint32_t at, std::int64_t offset) {
      std::uint64_t want = 0, found = 0;
      if (offset >= 0) {
        std::memcpy(&want, c.tensor.data() + offset, Bytes(c));
        want = Converted(c.map.element, want);
      } else if (c.map.fill == TensorFill::kNan) {
        want = nan;
      }
      std::memcpy(&found, got.data() + at, Bytes(c));
      bad += found != want;
    });
    CHECK(bad == 0);
    runner.executor.Free(tensor);
    runner.executor.Free(pointer);
  }
  CHECK(ranks.size() == 5);
}

TEST_CASE("TensorStore_RandomMaps_WriteWhatLiesInTheTensorOnly") {
  std::mt19937 random(2);
  Runner runner;
  std::vector<std::uint8_t> source(90112);
  for (std::uint8_t& byte : source) byte = static_cast<std::uint8_t>(random());
  const std::uint64_t in = runner.executor.Upload(source);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    Case c = RandomCase(random);
    if (i % 4 != 0) std::ranges::transform(c.at, c.at.begin(), [](std::int32_t at) { return std::max(at, 0); });
    // What begins before the tensor is an illegal instruction, as on an H100, and nothing is written.
    const bool before =
        std::ranges::any_of(c.at.begin(), c.at.begin() + c.map.rank, [](std::int32_t at) { return at < 0; });
    const std::uint64_t tensor = runner.executor.Upload(c.tensor);
    c.map.address = tensor;
    const std::uint32_t place = static_cast<std::uint32_t>(random() % 16) * 128;
    const LaunchFault fault = runner.Run(
        Kernel(c.map.rank, Store("cp.async.bulk.tensor.$D.global.shared::cta.tile.bulk_group $BOX, [%tile];")), c, 0,
        in, 0, place);
    INFO("case " << i << ": " << fault.text);
    REQUIRE(fault.kind == (before ? FaultKind::kIllegalInstruction : FaultKind::kNone));
    refused += before ? 1 : 0;
    ForEachElement(c, place, [&](std::uint32_t at, std::int64_t offset) {
      if (offset >= 0 && !before) std::memcpy(c.tensor.data() + offset, source.data() + at, Bytes(c));
    });
    std::vector<std::uint8_t> got(c.tensor.size());
    runner.executor.Download(tensor, got);
    CHECK(got == c.tensor);
    runner.executor.Free(tensor);
  }
  CHECK(refused > 10);
}

TEST_CASE("TensorReduce_EveryOperation_ElementByElement") {
  Runner runner;
  std::mt19937 random(3);
  std::vector<std::int32_t> source(90112 / 4);
  for (std::int32_t& word : source) word = static_cast<std::int32_t>(random());
  const std::uint64_t in = runner.executor.Upload(source);
  const auto u = [](std::int32_t v) { return static_cast<std::uint32_t>(v); };
  struct Row {
    const char* name;
    TensorElement element;
    std::function<std::int32_t(std::int32_t, std::int32_t)> apply;
  };
  const Row rows[] = {
      {"add", TensorElement::kS32, [&](auto a, auto b) { return static_cast<std::int32_t>(u(a) + u(b)); }},
      {"min", TensorElement::kS32, [&](auto a, auto b) { return std::min(a, b); }},
      {"max", TensorElement::kU32, [&](auto a, auto b) { return static_cast<std::int32_t>(std::max(u(a), u(b))); }},
      {"min", TensorElement::kU32, [&](auto a, auto b) { return static_cast<std::int32_t>(std::min(u(a), u(b))); }},
      {"inc", TensorElement::kU32, [&](auto a, auto b) { return u(a) >= u(b) ? 0 : a + 1; }},
      {"dec", TensorElement::kU32, [&](auto a, auto b) { return a == 0 || u(a) > u(b) ? b : a - 1; }},
      {"and", TensorElement::kU32, [&](auto a, auto b) { return a & b; }},
      {"or", TensorElement::kS32, [&](auto a, auto b) { return a | b; }},
      {"xor", TensorElement::kU32, [&](auto a, auto b) { return a ^ b; }},
      {"add", TensorElement::kF32,
       [&](auto a, auto b) { return std::bit_cast<std::int32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b)); }},
  };
  for (const Row& row : rows) {
    Case c;
    c.map.rank = 2;
    c.map.element = row.element;
    c.map.swizzle = TensorSwizzle::k64;
    c.map.size[0] = 13, c.map.size[1] = 10, c.map.box[0] = 16, c.map.box[1] = 8;
    c.map.stride[0] = 64;
    c.at = {-4, 5};
    std::vector<std::int32_t> tensor(16 * 10);
    for (std::int32_t& word : tensor) word = static_cast<std::int32_t>(random());
    const bool floats = row.element == TensorElement::kF32;
    if (floats) {
      for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = std::bit_cast<std::int32_t>(static_cast<float>(i));
      for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = std::bit_cast<std::int32_t>(static_cast<float>(i % 1000));
      std::memcpy(reinterpret_cast<void*>(in), source.data(), 90112);
    }
    const std::uint64_t address = runner.executor.Upload(tensor);
    c.map.address = address;
    const std::string instruction = std::string("cp.reduce.async.bulk.tensor.2d.global.shared::cta.") + row.name +
                                    ".tile.bulk_group $BOX, [%tile];";
    const LaunchFault fault = runner.Run(Kernel(2, Store(instruction)), c, 0, in, 0, 0);
    INFO(row.name << ": " << fault.text);
    REQUIRE(fault.kind == FaultKind::kNone);
    ForEachElement(c, 0, [&](std::uint32_t at, std::int64_t offset) {
      if (offset < 0) return;
      std::int32_t& word = tensor[static_cast<std::size_t>(offset) / 4];
      word = row.apply(word, source[at / 4]);
    });
    std::vector<std::int32_t> got(tensor.size());
    runner.executor.Download(address, got);
    CHECK(got == tensor);
  }
}

TEST_CASE("TensorMap_ReplacedFields_AreThoseOfTheCopy") {
  std::mt19937 random(4);
  Runner runner;
  const std::uint64_t out = runner.executor.Upload(std::vector<std::uint8_t>(90112));
  std::vector<std::uint8_t> bytes(64 << 10);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const std::uint64_t tensor = runner.executor.Upload(bytes);
  // What the map is to become; the one in memory differs in every field.
  Case c;
  c.map.rank = 3;
  c.map.element = TensorElement::kBF16;
  c.map.swizzle = TensorSwizzle::k32;
  c.map.fill = TensorFill::kNan;
  c.map.address = tensor + 32;
  c.map.size[0] = 20, c.map.size[1] = 7, c.map.size[2] = 5;
  c.map.box[0] = 16, c.map.box[1] = 6, c.map.box[2] = 3;
  c.map.step[1] = 2;
  c.map.stride[0] = 48, c.map.stride[1] = 400;
  c.at = {8, -1, 1};
  c.tensor.assign(bytes.begin() + 32, bytes.end());
  const std::uint64_t pointer = runner.executor.Upload(std::vector<TensorMap>{TensorMap{}});
  // The map is changed in shared memory, as CUTLASS does it, and then copied back.
  std::string replace = "@!%leader bra REPLACED;\n add.u32 %r3, %r0, 88064;\n";
  replace +=
      "mov.u32 %r4, 0;\nCOPY: add.u32 %r5, %r3, %r4; cvt.u64.u32 %rd2, %r4; add.u64 %rd2, %rd2, %map;\n"
      "ld.global.b32 %r6, [%rd2]; st.shared.b32 [%r5], %r6; add.u32 %r4, %r4, 4; setp.lt.u32 %p, %r4, 128; @%p bra "
      "COPY;\n";
  const auto field = [&](const std::string& name, const char* type, const std::string& value) {
    replace += "tensormap.replace.tile." + name + ".shared::cta.b1024." + type + " [%r3], " + value + ";\n";
  };
  replace += "mov.u64 %rd3, " + std::to_string(tensor + 32) + "; mov.u64 %rd4, 48; mov.u64 %rd5, 400;\n";
  field("global_address", "b64", "%rd3");
  field("rank", "b32", "2");
  for (unsigned i = 0; i < 3; ++i) {
    field("box_dim", "b32", std::to_string(i) + ", " + std::to_string(c.map.box[i]));
    field("global_dim", "b32", std::to_string(i) + ", " + std::to_string(c.map.size[i]));
    field("element_stride", "b32", std::to_string(i) + ", " + std::to_string(c.map.step[i]));
  }
  field("global_stride", "b64", "0, %rd4");
  field("global_stride", "b64", "1, %rd5");
  field("elemtype", "b32", "10");
  field("interleave_layout", "b32", "0");
  field("swizzle_mode", "b32", "1");
  field("fill_mode", "b32", "1");
  replace +=
      "REPLACED: bar.sync 0;\n setp.lt.u32 %p, %t, 32;\n @!%p bra FENCED;\n add.u32 %r3, %r0, 88064;\n"
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%r3], 128;\n"
      "FENCED: bar.sync 0;\n fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n";
  const LaunchFault fault = runner.Run(Kernel(3, replace + kLoad, "global"), c, pointer, out, c.map.box_bytes(), 0);
  INFO(fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  std::vector<TensorMap> now(1);
  runner.executor.Download(pointer, now);
  CHECK(std::memcmp(now.data(), &c.map, sizeof c.map) == 0);
  std::vector<std::uint8_t> got(90112);
  runner.executor.Download(out, got);
  long bad = 0;
  ForEachElement(c, 0, [&](std::uint32_t at, std::int64_t offset) {
    std::uint16_t want = 0x7fff, found = 0;
    if (offset >= 0) std::memcpy(&want, c.tensor.data() + offset, 2);
    std::memcpy(&found, got.data() + at, 2);
    bad += found != want;
  });
  CHECK(bad == 0);
}

TEST_CASE("TensorCopy_BadMapOrPlace_IsANamedFault") {
  Runner runner;
  const std::uint64_t out = runner.executor.Upload(std::vector<std::uint8_t>(90112));
  const std::uint64_t tensor = runner.executor.Upload(std::vector<std::uint8_t>(4096));
  const auto with = [&](const std::function<void(Case&)>& change, std::uint32_t place = 0) {
    Case c;
    c.map.rank = 2;
    c.map.element = TensorElement::kF32;
    c.map.address = tensor;
    c.map.size[0] = 32, c.map.size[1] = 32, c.map.box[0] = 32, c.map.box[1] = 8;
    c.map.stride[0] = 128;
    change(c);
    return runner.Run(Kernel(2, kLoad), c, 0, out, 1024, place);
  };
  CHECK(with([](Case&) {}).kind == FaultKind::kNone);
  const auto refused = [&](const char* text, const std::function<void(Case&)>& change) {
    const LaunchFault fault = with(change);
    INFO(fault.text);
    CHECK(fault.kind == FaultKind::kIllegalInstruction);
    CHECK(fault.text.find(text) != std::string::npos);
  };
  refused("was not made by", [](Case& c) { c.map.magic ^= 1; });
  refused("was not made by", [](Case& c) { c.map.version = 9; });
  refused("rank of 1 to 5", [](Case& c) { c.map.rank = 0; });
  refused("another rank", [](Case& c) { c.map.rank = 3; });
  refused("unknown type", [](Case& c) { c.map.element = static_cast<TensorElement>(200); });
  refused("swizzle mode", [](Case& c) { c.map.swizzle = static_cast<TensorSwizzle>(7); });
  refused("interleaved", [](Case& c) { c.map.interleave = 1; });
  refused("more than 256", [](Case& c) { c.map.box[1] = 257; });
  refused("or of none", [](Case& c) { c.map.box[0] = 0; });
  refused("element stride", [](Case& c) { c.map.step[1] = 0; });
  refused("wider than its swizzle", [](Case& c) { c.map.swizzle = TensorSwizzle::k64; });
  refused("multiple of 16", [](Case& c) { c.map.address += 8; });
  refused("at byte 4 of a row", [](Case& c) { c.at[0] = 1; });
  refused("at byte -8 of a row", [](Case& c) { c.at[0] = -2; });
  refused("NaN", [](Case& c) { c.map.fill = TensorFill::kNan, c.map.element = TensorElement::kS32; });
  refused("larger than shared memory", [](Case& c) {
    c.map.box[0] = c.map.box[1] = 256;
    c.map.element = TensorElement::kF64;
    c.map.rank = 5;
    c.map.box[2] = c.map.box[3] = c.map.box[4] = 256;
  });
  // Addresses are checked like those of any access.
  LaunchFault fault = with([](Case& c) { c.map.address = 0x1000; });
  CHECK(fault.kind == FaultKind::kIllegalAddress);
  fault = with([](Case& c) { c.map.stride[0] = std::uint64_t{1} << 39, c.map.size[1] = 1 << 20; });
  CHECK(fault.kind == FaultKind::kIllegalAddress);
  CHECK(with([](Case&) {}, 64).kind == FaultKind::kMisalignedAddress);
  fault = with([](Case&) {}, 0x7fff0000);
  CHECK(fault.kind == FaultKind::kIllegalAddress);
}
