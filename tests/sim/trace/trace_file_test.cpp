// Trace files: what is written is read, damage costs what comes after it and nothing else, and bytes of any kind are
// safe to read.
#include "sim/trace/trace_file.h"

#include <unistd.h>

#include <bit>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/file_size_limit.h"

using namespace gridloom;
using namespace gridloom::trace;

namespace {

/// Any code: blocks of random length with memory instructions among others.
KernelCode RandomCode(std::mt19937_64& random) {
  KernelCode code;
  code.name = "kernel_" + std::to_string(random() % 100);
  code.register_count = 8;
  const unsigned blocks = 1 + random() % 6;
  for (unsigned b = 0; b < blocks; ++b) {
    BasicBlock block{static_cast<std::uint32_t>(code.instructions.size()),
                     static_cast<std::uint32_t>(1 + random() % 5)};
    for (unsigned i = 0; i < block.count; ++i) {
      Instruction instruction;
      instruction.line = static_cast<std::uint32_t>(code.instructions.size() + 1);
      if (random() % 2) {
        instruction.op = OpClass::kMemory;
        instruction.space = random() % 3 ? Space::kGlobal : Space::kShared;
        instruction.width = static_cast<std::uint8_t>(1u << random() % 5);
        instruction.flags = random() % 3 ? 0 : kStore;
      }
      instruction.operands = static_cast<std::uint32_t>(code.operands.size());
      instruction.destinations = 1;
      code.operands.push_back(static_cast<std::uint16_t>(random() % 9));
      code.instructions.push_back(instruction);
    }
    code.blocks.push_back(block);
  }
  return code;
}

constexpr std::uint64_t kMiddle = std::uint64_t{1} << 46;  // of memory: whatever is added below stays in it

/// Addresses of lanes from near ones in units of the width to any.
std::vector<std::uint64_t> RandomLanes(std::uint64_t width, std::mt19937_64& random, int count) {
  std::vector<std::uint64_t> lanes;
  const std::uint64_t range = std::uint64_t{1} << (4 + random() % 36);
  const std::uint64_t unit = random() % 4 ? width : 1;
  for (int i = 0; i < count; ++i)
    lanes.push_back(random() % 50 ? 0x7000000000 + random() % range * unit : random() % kMiddle);
  return lanes;
}

/// Events of any kind at some of the instructions that the CTA executes, sometimes several at one.
void AddRandomEvents(const KernelCode& code, CtaTrace& cta, std::mt19937_64& random) {
  for (std::uint32_t w = 0; w < cta.warps.size(); ++w) {
    for (std::uint32_t v = 0; v < cta.warps[w].visit_count; ++v) {
      const BlockVisit& visit = cta.visits[cta.warps[w].first_visit + v];
      const BasicBlock& block = code.blocks[visit.block];
      for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
        for (unsigned count = random() % 8 ? 0 : random() % 3; count != 0; --count) {
          const std::uint32_t lanes = visit.mask & static_cast<std::uint32_t>(random());
          cta.events.push_back({.kind = static_cast<EventKind>(random() % kEventKindCount),
                                .flags = static_cast<std::uint8_t>(random()),
                                .warp = w,
                                .visit = v,
                                .instruction = i,
                                .lanes = lanes != 0 ? lanes : visit.mask,
                                .data = {random(), random() % 100, random() % 2 ? 4096 : random(), 0}});
        }
      }
    }
  }
}

/// Repeats of random parts of the paths.
void AddRandomRepeats(const KernelCode& code, CtaTrace& cta, std::mt19937_64& random) {
  const auto accesses_of = [&](const WarpTrace& warp, std::uint32_t from, std::uint32_t to) {
    std::uint32_t count = 0;
    for (std::uint32_t v = from; v < to; ++v) {
      const BasicBlock& block = code.blocks[cta.visits[warp.first_visit + v].block];
      for (std::uint32_t i = 0; i < block.count; ++i) count += code.instructions[block.first + i].has_access() ? 1 : 0;
    }
    return count;
  };
  for (std::uint32_t w = 0; w < cta.warps.size(); ++w) {
    const WarpTrace& warp = cta.warps[w];
    for (std::uint32_t v = static_cast<std::uint32_t>(random() % 9); v < warp.visit_count;
         v += static_cast<std::uint32_t>(random() % 9)) {
      const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % std::min(6u, warp.visit_count - v));
      cta.repeats.push_back({.warp = w,
                             .visit = v,
                             .visit_count = count,
                             .access = accesses_of(warp, 0, v),
                             .access_count = accesses_of(warp, v, v + count),
                             .more = 1 + random() % 1'000'000});
      v += count;
    }
  }
}

CtaTrace RandomCta(const KernelCode& code, unsigned warps, std::mt19937_64& random) {
  CtaTrace cta;
  for (unsigned w = 0; w < warps; ++w) {
    WarpTrace warp{static_cast<std::uint32_t>(cta.visits.size()), 0, static_cast<std::uint32_t>(cta.accesses.size()),
                   0};
    const unsigned visits = random() % 30;
    for (unsigned v = 0; v < visits; ++v) {
      const bool again = v != 0 && random() % 2;
      BlockVisit visit =
          again ? cta.visits.back() : BlockVisit{static_cast<std::uint32_t>(random() % code.blocks.size()), ~0u};
      if (random() % 4 == 0) visit.mask = static_cast<std::uint32_t>(random()) | 1;
      cta.visits.push_back(visit);
      const BasicBlock& block = code.blocks[visit.block];
      for (unsigned i = block.first; i < block.first + block.count; ++i) {
        if (!code.instructions[i].has_access()) continue;
        MemoryAccess access;
        switch (random() % 5) {
          case 0: break;  // off
          case 1:
            access.mask = visit.mask & (static_cast<std::uint32_t>(random()) | 1);
            if (access.mask == 0) break;
            access.stride = MemoryAccess::kScattered;
            access.base =
                AppendLanes(RandomLanes(code.instructions[i].width, random, std::popcount(access.mask)), cta.lanes);
            break;
          default:
            access = {kMiddle + 0x1000 * i + 128 * v + 4096 * w, static_cast<std::int32_t>(random() % 3 ? 4 : random()),
                      visit.mask};
            if (access.stride < MemoryAccess::kLeastStride) access.stride = 0;
            if (random() % 4 == 0) {
              access.stride = MemoryAccess::kFirstPattern + static_cast<std::int32_t>(cta.patterns.size());
              for (std::int32_t& offset : cta.patterns.emplace_back()) offset = static_cast<std::int32_t>(random());
            }
        }
        cta.accesses.push_back(access);
      }
    }
    warp.visit_count = static_cast<std::uint32_t>(cta.visits.size()) - warp.first_visit;
    warp.access_count = static_cast<std::uint32_t>(cta.accesses.size()) - warp.first_access;
    cta.warps.push_back(warp);
  }
  switch (random() % 3) {
    case 0: AddRandomEvents(code, cta, random); break;
    case 1: AddRandomRepeats(code, cta, random); break;
    default: break;
  }
  return cta;
}

/// Lanes of scattered accesses may be told in other units.
bool Equal(const MemoryAccess& a, const MemoryAccess& b, const CtaTrace& of_a, const CtaTrace& of_b) {
  if (a.mask != b.mask || a.stride != b.stride) return false;
  if (a.stride != MemoryAccess::kScattered) return a.base == b.base;
  std::array<std::uint64_t, kWarpSize> left{}, right{};
  LaneAddresses(of_a, a, left);
  LaneAddresses(of_b, b, right);
  return left == right;
}

bool Equal(const CtaTrace& a, const CtaTrace& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0])) == 0);
  };
  return same(a.warps, b.warps) && same(a.visits, b.visits) && a.patterns == b.patterns && a.repeats == b.repeats &&
         a.events == b.events &&
         std::ranges::equal(a.accesses, b.accesses, [&](const auto& x, const auto& y) { return Equal(x, y, a, b); });
}

struct TemporaryFile {
  TemporaryFile()
      : path(std::filesystem::temp_directory_path() / ("gridloom_trace_" + std::to_string(getpid()) + ".gltrace")) {}
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::vector<std::uint8_t> Read() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path path;
};

/// A CTA of its own, or one like an earlier one, shifted: by random distances, or as far again as the last time.
LoadedCta RandomLoadedCta(const KernelCode& code, unsigned warps, std::vector<LoadedCta>& earlier,
                          std::mt19937_64& random) {
  LoadedCta cta;
  if (earlier.empty() || random() % 3 == 0) {
    cta.trace = std::make_shared<const CtaTrace>(RandomCta(code, warps, random));
    if (random() % 2) earlier.push_back(cta);
    return cta;
  }
  LoadedCta& like = earlier[random() % earlier.size()];
  cta.trace = like.trace;
  cta.shifts = like.shifts;
  if (cta.shifts.empty()) std::fill_n(cta.shifts.Renew(AccessCount(code)), AccessCount(code), 0);
  const bool any = random() % 4 == 0;
  std::size_t number = 0;
  for (const Instruction& instruction : code.instructions) {
    if (!instruction.has_access()) continue;
    if (instruction.space != Space::kShared) cta.shifts[number] += any ? random() % (kMiddle >> 4) : 512 * number + 1;
    ++number;
  }
  like.shifts = cta.shifts;
  return cta;
}

/// A file with `launches` launches of random CTAs, which are answered.
std::vector<std::vector<LoadedCta>> WriteFile(const TemporaryFile& file, unsigned launches, std::mt19937_64& random) {
  auto writer = TraceWriter::Create(file.path, "a test");
  REQUIRE(writer.ok());
  std::vector<KernelCode> codes;
  for (int i = 0; i < 2; ++i) codes.push_back(RandomCode(random));
  for (const KernelCode& code : codes) (*writer)->AddKernel(code);
  std::vector<std::vector<LoadedCta>> all;
  for (unsigned l = 0; l < launches; ++l) {
    const unsigned ctas = static_cast<unsigned>(random() % 20), warps = 1 + l % 3;
    LaunchInfo info{.kernel = l % 2,
                    .shape = {.ctas = ctas, .threads_per_cta = warps * 32, .registers_per_thread = 10},
                    .stream = l};
    auto launch = (*writer)->BeginLaunch(info, codes[l % 2]);
    all.emplace_back(ctas);
    std::vector<LoadedCta> earlier;
    for (unsigned i = 0; i < ctas; ++i) {
      const unsigned cta = ctas - 1 - i;  // the order in which they end is any
      all.back()[cta] = RandomLoadedCta(codes[l % 2], warps, earlier, random);
      launch->Add(cta, all.back()[cta]);
    }
    launch->End(l);
    HostAction action;
    action.kind = HostAction::Kind::kCopyToHost;
    action.work = l + 1;
    action.after = {l, 7};
    action.address = 64 * l;
    (*writer)->Add(action);
  }
  CHECK((*writer)->Close().ok());
  return all;
}

void CheckLaunches(const std::shared_ptr<TraceFile>& file, const std::vector<std::vector<LoadedCta>>& all) {
  for (std::size_t l = 0; l < file->launches().size(); ++l) {
    const TraceFile::Launch& launch = file->launches()[l];
    if (!launch.complete) continue;
    CHECK(launch.left_out == l);
    auto source = TraceFile::Source(file, l);
    REQUIRE(source->shape().ctas == all[l].size());
    for (std::uint64_t cta = 0; cta < all[l].size(); ++cta) {
      auto loaded = source->Load(cta);
      REQUIRE(loaded.ok());
      CHECK(Equal(Flatten(source->code(), *loaded), Flatten(source->code(), all[l][cta])));
      CHECK(CtaChecks().Check(source->code(), source->shape(), *loaded).ok());
    }
    CHECK(!source->Load(all[l].size()).ok());
  }
}

/// Reads all there is; what it is does not matter.
void ReadEverything(std::vector<std::uint8_t> bytes) {
  auto file = TraceFile::FromBytes(std::move(bytes), "bytes");
  if (!file) return;
  for (std::size_t l = 0; l < (*file)->launches().size(); ++l) {
    auto source = TraceFile::Source(*file, l);
    for (const auto& [cta, place] : (*file)->launches()[l].place) {
      if (auto loaded = source->Load(cta)) REQUIRE(ValidateCta(source->code(), source->shape(), *loaded->trace).ok());
    }
  }
}

/// FNV-1a over numbers.
struct Digest {
  std::uint64_t sum = 0xcbf29ce484222325;
  void Add(std::uint64_t value) {
    for (unsigned byte = 0; byte < 8; ++byte) sum = (sum ^ (value >> 8 * byte & 0xff)) * 0x100000001b3;
  }
};
std::uint64_t DigestOf(const std::shared_ptr<TraceFile>& file) {
  Digest digest;
  for (std::size_t l = 0; l < file->launches().size(); ++l) {
    auto source = TraceFile::Source(file, l);
    for (std::uint64_t i = 0; i < source->shape().ctas; ++i) {
      const auto loaded = source->Load(i);
      if (!loaded.ok()) continue;
      const CtaTrace cta = Flatten(source->code(), *loaded);
      for (const BlockVisit& visit : cta.visits) {
        digest.Add(visit.block);
        digest.Add(visit.mask);
      }
      for (const MemoryAccess& access : cta.accesses) {
        digest.Add(access.mask);
        std::array<std::uint64_t, kWarpSize> addresses{};
        LaneAddresses(cta, access, addresses);
        for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
          digest.Add(access.mask >> lane & 1 ? addresses[lane] : 0);
      }
    }
  }
  return digest.sum;
}

/// A block of two instructions without accesses, executed twice by each of two warps, and what a CtaEncoder makes of
/// that with events.
struct EventBytes {
  KernelCode code;
  CtaTrace cta;
  EventBytes() {
    code.name = "k";
    code.instructions.resize(2);
    code.blocks = {{0, 2}};
    cta.warps = {{0, 2, 0, 0}, {2, 2, 0, 0}};
    cta.visits.assign(4, {0, 0xf});
    cta.events.push_back(
        {.kind = EventKind::kDeviceLaunch, .visit = 1, .instruction = 1, .lanes = 2, .data = {5, 1, 32, 8}});
    cta.events.push_back(
        {.kind = EventKind::kReleaseRange, .flags = kRangeWrite, .warp = 1, .lanes = 15, .data = {4096, 128, 0, 1}});
  }
  std::vector<std::uint8_t> Bytes() const {
    CtaEncoder encoder(code);
    ByteWriter out;
    encoder.Encode({std::make_shared<const CtaTrace>(cta), {}}, out);
    return {out.bytes().begin(), out.bytes().end()};
  }
  bool IsRead(const std::vector<std::uint8_t>& bytes) const {
    ByteReader in(bytes);
    const auto read = CtaDecoder(code).Decode(in);
    return read.ok() && in.left() == 0 && read->trace->events == cta.events;
  }
};

}  // namespace

TEST_CASE("TraceFile_FilesOfEarlierVersions_AreRead") {
  // What the readers of these versions made of them.
  const auto digest = [](const char* path) {
    auto file = TraceFile::Open(path);
    REQUIRE(file.ok());
    CHECK((*file)->problem() == "");
    for (const auto& launch : (*file)->launches()) CHECK(launch.complete);
    return DigestOf(*file);
  };
  CHECK(digest("tests/data/traces/version-5.gltrace") == 0x8f592445b67f2625);
  CHECK(digest("tests/data/traces/version-6.gltrace") == 0x726645d86dede123);
  CHECK(digest("tests/data/traces/version-7.gltrace") == 0x8959bb1806a405bc);
  CHECK(digest("tests/data/traces/version-8.gltrace") == 0x543576917e9bf4bd);
  CHECK(digest("tests/data/traces/version-9.gltrace") == 0x9eba56c9b53ddba9);
  const auto file = TraceFile::Open("tests/data/traces/version-10.gltrace");
  REQUIRE(file.ok());
  CHECK((*file)->problem() == "");
  for (const auto& launch : (*file)->launches()) CHECK((launch.complete && !launch.info.shape.together));
  CHECK((*file)->launches().size() == 2);
  const auto before_meanings = TraceFile::Open("tests/data/traces/version-11.gltrace");
  REQUIRE(before_meanings.ok());
  CHECK((*before_meanings)->problem() == "");
  REQUIRE((*before_meanings)->launches().size() == 1);
  CHECK((*before_meanings)->launches()[0].complete);
  CHECK((*before_meanings)->kernels()[0].meanings.empty());
}

TEST_CASE("CtaDecoder_Events_AreReadAsTheyWere") {
  const EventBytes sample;
  CHECK(sample.IsRead(sample.Bytes()));
  // A CTA that shares the trace says nothing of its events.
  CtaEncoder encoder(sample.code);
  ByteWriter out;
  const auto trace = std::make_shared<const CtaTrace>(sample.cta);
  for (int i = 0; i < 2; ++i) encoder.Encode({trace, {}}, out);
  CHECK(out.size() == sample.Bytes().size() + 2);
  ByteReader in(out.bytes());
  CtaDecoder decoder(sample.code);
  for (int i = 0; i < 2; ++i) {
    const auto read = decoder.Decode(in);
    REQUIRE(read.ok());
    CHECK(read->trace->events == sample.cta.events);
  }
}

TEST_CASE("CtaDecoder_EventsThatDoNotFit_AreRefused") {
  const EventBytes sample;
  const std::vector<std::uint8_t> good = sample.Bytes();
  constexpr std::size_t kEvents = 17;  // before them: ago, patterns, warps, and per warp visits, block, mask and run
  REQUIRE(good[kEvents] == 3);         // no shifts, events
  REQUIRE(good[kEvents + 1] == 2);
  const auto refused = [&](std::size_t at, std::uint8_t byte) {
    std::vector<std::uint8_t> bytes = good;
    bytes.at(kEvents + at) = byte;
    ByteReader in(bytes);
    return !CtaDecoder(sample.code).Decode(in).ok();
  };
  CHECK(refused(0, 11));   // a flag that nobody knows
  CHECK(refused(0, 7));    // repeats, and nothing of them
  CHECK(refused(1, 3));    // more events than bytes
  CHECK(refused(1, 127));  // many more
  CHECK(refused(2, kEventKindCount));
  CHECK(refused(4, 2));   // a third warp
  CHECK(refused(5, 2));   // a third visit
  CHECK(refused(6, 2));   // a third instruction
  CHECK(refused(7, 0));   // no lane
  CHECK(refused(7, 16));  // a lane that is off
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::vector<std::uint8_t> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    ByteReader in(cut);
    CHECK(!CtaDecoder(sample.code).Decode(in).ok());
  }
}

TEST_CASE("CtaDecoder_RepeatsThatDoNotFit_AreRefused") {
  KernelCode code;
  code.name = "k";
  code.instructions.resize(1);
  code.blocks = {{0, 1}};
  const auto read = [&](std::vector<std::uint8_t> repeats, std::uint32_t visits = 8) {
    ByteWriter out;
    for (const std::uint32_t number : {0u, 0u, 1u, visits, 3u, visits})
      out.Varint(number);        // a warp with so many visits, in one run
    out.Fixed(std::uint8_t{5});  // as expected, repeats
    std::vector<std::uint8_t> bytes(out.bytes().begin(), out.bytes().end());
    bytes.insert(bytes.begin() + 5, {0xff, 0xff, 0, 0});  // the run's mask, between block and length
    bytes.insert(bytes.end(), repeats.begin(), repeats.end());
    ByteReader in(bytes);
    const auto cta = CtaDecoder(code).Decode(in);
    return cta.ok() ? std::to_string(cta->trace->repeats.size()) : cta.error().message;
  };
  const std::string damaged = "kernel k: a CTA's trace is damaged";
  CHECK(read({1, 0, 2, 6, 1}) == "1");
  CHECK(read({2, 0, 0, 4, 9, 0, 0, 4, 9}) == "2");
  CHECK(read({1, 1, 0, 1, 1}) == damaged);  // of a second warp
  CHECK(read({1, 0, 2, 7, 1}) == damaged);  // beyond the path
  CHECK(read({1, 0, 9, 1, 1}) == damaged);
  CHECK(read({1, 0, 0, 0, 1}) == damaged);                      // no visits
  CHECK(read({1, 0, 0, 1, 0}) == damaged);                      // no turns
  CHECK(read({2, 0, 0, 4, 9, 0, 1, 4, 9}) == damaged);          // beyond the path, behind another one
  CHECK(read({200, 1, 0, 0, 1, 1}) == damaged);                 // more repeats than bytes
  CHECK(read({1, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 1}) == "1");  // 2^29 - 1 more turns: 2^32 visits in all
  CHECK(read({1, 0, 0, 8, 0x80, 0x80, 0x80, 0x80, 2}) == "kernel k: a CTA makes more than 4294967296 visits");
}

TEST_CASE("TraceFile_RandomLaunches_RoundTrip") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const TemporaryFile path;
    const auto all = WriteFile(path, 6, random);
    auto file = TraceFile::Open(path.path);
    REQUIRE(file.ok());
    CHECK((*file)->problem() == "");
    CHECK((*file)->info() == "a test");
    REQUIRE((*file)->launches().size() == 6);
    CHECK((*file)->actions().size() == 6);
    CHECK((*file)->actions()[3].address == 192);
    CHECK((*file)->actions()[3].work == 4);
    CHECK((*file)->actions()[3].after == std::vector<std::uint64_t>{3, 7});
    for (const auto& launch : (*file)->launches()) CHECK(launch.complete);
    CheckLaunches(*file, all);
  }
}

TEST_CASE("TraceFile_CutOffAnywhere_KeepsWhatPrecedes") {
  std::mt19937_64 random(7);
  const TemporaryFile path;
  const auto all = WriteFile(path, 3, random);
  const std::vector<std::uint8_t> whole = path.Read();
  std::size_t most = 0;
  for (std::size_t size = 0; size < whole.size(); size += 1 + size % 7) {
    auto file = TraceFile::FromBytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, "cut");
    if (size < 16) {
      CHECK(!file.ok());
      continue;
    }
    REQUIRE(file.ok());
    std::size_t complete = 0;
    for (const auto& launch : (*file)->launches()) complete += launch.complete;
    CHECK(complete >= most);
    most = complete;
    CheckLaunches(*file, all);
  }
  CHECK(most == 3);
}

TEST_CASE("TraceFile_FlippedBytes_AreFoundOrHarmless") {
  std::mt19937_64 random(11);
  const TemporaryFile path;
  WriteFile(path, 3, random);
  const std::vector<std::uint8_t> whole = path.Read();
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> bytes = whole;
    for (unsigned flips = 1 + random() % 3; flips != 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
    ReadEverything(std::move(bytes));
  }
}

TEST_CASE("CtaDecoder_AnyBytes_GiveAnErrorOrAValidCta") {
  std::mt19937_64 random(13);
  for (int i = 0; i < 300; ++i) {
    const KernelCode code = RandomCode(random);
    CtaEncoder encoder(code);
    ByteWriter out;
    std::vector<LoadedCta> earlier;
    for (int c = 0; c < 6; ++c) encoder.Encode(RandomLoadedCta(code, 2, earlier, random), out);
    std::vector<std::uint8_t> bytes(out.bytes().begin(), out.bytes().end());
    for (unsigned flips = random() % 4; flips != 0; --flips)
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    ByteReader in(bytes);
    CtaDecoder decoder(code);
    while (in.left() != 0) {
      auto cta = decoder.Decode(in);
      if (!cta) break;
      const LaunchShape shape{.ctas = 1, .threads_per_cta = static_cast<std::uint32_t>(cta->trace->warps.size()) * 32};
      REQUIRE(CtaChecks().Check(code, shape, *cta).ok());
    }
  }
}

TEST_CASE("CtaDecoder_LanesAsVersion5WroteThem_AreRead") {
  KernelCode code;
  code.instructions = {{.op = OpClass::kMemory, .space = Space::kGlobal, .width = 4}};
  code.blocks = {{0, 1}};
  ByteWriter out;
  out.Varint(0);  // a trace follows
  out.Varint(0);  // no patterns
  out.Varint(1);  // one warp
  out.Varint(2);  // of two visits
  out.Varint(1);  // block 0 with all lanes,
  out.Varint(2);  // twice
  for (const bool wide : {false, true}) {
    out.Fixed(
        static_cast<std::uint8_t>(wide ? 1 | 4 | 32 : 1 | 4));  // the visit's mask, lanes; offsets of 8 or 4 bytes
    out.Signed(wide ? -1000 : 5000);                            // from the prediction: 0, then 5000
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
      if (wide) out.Fixed(std::uint64_t{lane} << 33);
      else out.Fixed(lane * 3);
    }
  }
  out.Fixed(std::uint8_t{1});  // no shifts
  ByteReader in(out.bytes());
  CtaDecoder decoder(code);
  const auto cta = decoder.Decode(in);
  REQUIRE(cta.ok());
  REQUIRE(cta->trace->accesses.size() == 2);
  std::array<std::uint64_t, kWarpSize> near{}, far{};
  LaneAddresses(*cta->trace, cta->trace->accesses[0], near);
  LaneAddresses(*cta->trace, cta->trace->accesses[1], far);
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    CHECK(near[lane] == 5000 + lane * 3);
    CHECK(far[lane] == 4000 + (std::uint64_t{lane} << 33));
  }
}

TEST_CASE("PackLanes_TakesTheShortestUnit") {
  const auto pack = [](const std::uint32_t* words, std::size_t readable, const std::vector<std::uint64_t>& lanes,
                       std::uint32_t width) {
    PackedLanes packed;
    PackLanes(ScatteredLanes::At(words), lanes.size(), readable, width, packed);
    std::array<std::uint32_t, ScatteredLanes::kMostWords> again;
    UnpackLanes(packed.low, packed.unit, width, lanes.size(), packed.bytes.data(), again.data());
    for (std::size_t i = 0; i < lanes.size(); ++i) CHECK(ScatteredLanes::At(again.data())[i] == lanes[i]);
    return packed.unit;
  };
  const auto unit = [&](const std::vector<std::uint64_t>& lanes, std::uint32_t width) {
    std::array<std::uint32_t, ScatteredLanes::kMostWords> words;
    words.fill(0xffffffff);  // behind the lanes
    PutLanes(lanes, words.data());
    return pack(words.data(), words.size() - ScatteredLanes::kHeadWords, lanes, width);
  };
  constexpr std::uint64_t kBase = 0x7f0000000000;
  CHECK(unit({kBase}, 8) == LaneUnit::kUnits8);
  CHECK(unit({kBase + 255 * 4, kBase}, 4) == LaneUnit::kUnits8);
  CHECK(unit({kBase + 256 * 4, kBase}, 4) == LaneUnit::kUnits16);
  CHECK(unit({kBase + 65535 * 16, kBase, kBase + 16}, 16) == LaneUnit::kUnits16);
  CHECK(unit({kBase + 65536 * 2, kBase}, 2) == LaneUnit::kUnits32);
  CHECK(unit({kBase + (std::uint64_t{1} << 33), kBase}, 4) == LaneUnit::kUnits32);
  CHECK(unit({kBase + 2, kBase}, 4) == LaneUnit::kBytes32);
  CHECK(unit({kBase + (std::uint64_t{1} << 34), kBase}, 4) == LaneUnit::kBytes64);
  CHECK(unit({~std::uint64_t{0}, 0}, 1) == LaneUnit::kBytes64);
  // Distances in other units than bytes.
  const auto in_units = [&](std::uint32_t told, std::uint32_t distance, std::uint32_t width) {
    const std::uint32_t words[] = {0, 0x7f00, told, 0, distance};
    std::vector<std::uint32_t> longer(words, words + 5);
    longer.resize(100, 0xffffffff);
    const std::vector<std::uint64_t> lanes = {kBase, kBase + std::uint64_t{told} * distance};
    const LaneUnit packed = pack(words, 2, lanes, width);
    CHECK(pack(longer.data(), 97, lanes, width) == packed);
    return packed;
  };
  CHECK((in_units(4, 255, 4) == LaneUnit::kUnits8 && in_units(4, 256, 4) == LaneUnit::kUnits16));
  CHECK((in_units(16, 0xffffffff, 16) == LaneUnit::kUnits32 && in_units(16, 0xffffffff, 4) == LaneUnit::kBytes64));
  CHECK((in_units(8, 255, 4) == LaneUnit::kUnits16 && in_units(6, 1, 4) == LaneUnit::kBytes32 &&
         in_units(6, 2, 4) == LaneUnit::kUnits8));
}

TEST_CASE("TraceFile_ForeignFiles_AreRefusedByName") {
  const auto open = [](std::string text) {
    auto file = TraceFile::FromBytes({text.begin(), text.end()}, "some.file");
    return file ? std::string() : file.error().message;
  };
  CHECK(open("") == "some.file is no trace: it has 0 bytes");
  CHECK(open("#!/bin/sh and more than sixteen bytes") ==
        "some.file is no trace of Gridloom's; `gridloom run --trace FILE -- ./app` writes one");
  CHECK(open(std::string("GLTRACE\0\x0d\0\0\0\0\0\0\0", 16)) ==
        "some.file is a trace of format version 13; this Gridloom reads versions 5 to 12");
  CHECK(!TraceFile::Open("/nonexistent/trace").ok());
  CHECK(!TraceFile::Open("/dev/null").ok());
}

TEST_CASE("TraceWriter_FullDisk_IsReportedAtTheEnd") {
  auto writer = TraceWriter::Create("/dev/full", "x");
  REQUIRE(writer.ok());
  const Status status = (*writer)->Close();
  REQUIRE(!status.ok());
  CHECK(status.error().message.find("No space left") != std::string::npos);
  CHECK(!TraceWriter::Create("/nonexistent/folder/trace", "x").ok());
}

TEST_CASE("TraceWriter_FileThatMayNotGrow_IsAnErrorNotTheEndOfTheProgram") {
  const std::string path = std::filesystem::temp_directory_path() / ("gridloom-limited-" + std::to_string(getpid()));
  Status status;
  {
    const test::FileSizeLimit limit(8);
    auto writer = TraceWriter::Create(path, "x");
    REQUIRE(writer.ok());
    status = (*writer)->Close();
  }
  std::filesystem::remove(path);
  REQUIRE(!status.ok());
  CHECK(status.error().message.find("File too large") != std::string::npos);
}

TEST_CASE("CtaEncoder_RegularWarps_TakeLessThanTwoBytesPerInstruction") {
  // 8 warps of a streaming loop: load, load, add, store, branch.
  KernelCode code;
  code.name = "stream";
  for (int i = 0; i < 5; ++i) {
    Instruction instruction;
    if (i < 3) instruction = {.op = OpClass::kMemory, .space = Space::kGlobal, .width = 4};
    code.instructions.push_back(instruction);
  }
  code.blocks = {{0, 5}};
  CtaEncoder encoder(code);
  ByteWriter out;
  std::uint64_t instructions = 0;
  for (std::uint64_t c = 0; c < 50; ++c) {
    CtaTrace cta;
    for (std::uint32_t w = 0; w < 8; ++w) {
      cta.warps.push_back({w * 100, 100, w * 300, 300});
      for (std::uint64_t round = 0; round < 100; ++round) {
        cta.visits.push_back({0, ~0u});
        for (std::uint64_t array = 0; array < 3; ++array)
          cta.accesses.push_back({(array << 32) + (c * 8 + w) * 12800 + round * 128, 4, ~0u});
      }
    }
    instructions += InstructionCount(code, cta);
    encoder.Encode({std::make_shared<const CtaTrace>(std::move(cta)), {}}, out);
  }
  CHECK(static_cast<double>(out.size()) / static_cast<double>(instructions) < 0.65);
  CHECK(static_cast<double>(ChunkPacker().Pack(ChunkType::kCtas, {}, out.bytes()).size()) /
            static_cast<double>(instructions) <
        0.02);
}
