// Trace files whose checksums are right and whose chunks contradict each other: what is damaged is named, and nothing
// of it is kept.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <functional>

#include "sim/trace/trace_file.h"
#include "sim/trace/trace_records.h"

using namespace gridloom;
using namespace gridloom::trace;

namespace {

/// A file of a launch of eight CTAs, and then the chunks that `add` writes.
std::shared_ptr<TraceFile> FileWith(const std::function<void(ChunkWriter&)>& add) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("gridloom-damaged-" + std::to_string(getpid()) + ".gltrace");
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  ChunkWriter writer(fd, path);
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof header.magic);
  header.version = kFormatVersion;
  writer.WriteBytes(ByteSpan(reinterpret_cast<const std::uint8_t*>(&header), sizeof header));
  ByteWriter code, launch;
  PutCode({.name = "k", .instructions = {{}}, .operands = {}, .blocks = {{0, 1}}, .register_count = 0}, code);
  writer.Add(ChunkType::kKernel, {}, code);
  LaunchInfo info;
  info.shape = {.ctas = 8, .threads_per_cta = 32};
  PutInfo(info, launch);
  writer.Add(ChunkType::kLaunchBegin, {}, launch);
  add(writer);
  REQUIRE(writer.Close().ok());
  auto file = TraceFile::Open(path);
  std::filesystem::remove(path);
  REQUIRE(file.ok());
  return *file;
}

/// A chunk of CTAs whose directory says that, with room in its content for so many.
void AddDirectory(ChunkWriter& writer, const std::vector<std::uint64_t>& ctas, std::size_t content = 64,
                  bool longer = false) {
  ByteWriter directory, bytes;
  PutCtas(0, ctas, directory);
  if (longer) directory.Varint(0);
  for (std::size_t i = 0; i < content; ++i) bytes.Fixed(std::uint8_t{0});
  writer.Add(ChunkType::kCtas, directory, bytes);
}

void AddNumbers(ChunkWriter& writer, ChunkType type, std::initializer_list<std::uint64_t> numbers) {
  ByteWriter content;
  for (const std::uint64_t number : numbers) content.Varint(number);
  writer.Add(type, {}, content);
}

void AddAction(ChunkWriter& writer, std::uint64_t work, std::uint64_t group) {
  ByteWriter content;
  HostAction action;
  action.kind = HostAction::Kind::kGroup;
  action.work = work;
  action.group = group;
  PutAction(action, content);
  writer.Add(ChunkType::kHost, {}, content);
}

}  // namespace

TEST_CASE("TraceFile_DamagedDirectories_LeaveNothingBehind") {
  struct Case {
    std::vector<std::uint64_t> ctas;
    std::size_t content;
    bool longer;
    const char* problem;
  };
  const Case cases[] = {
      {{1, 2, 3, 8}, 64, false, "a CTA that the launch does not have"},
      {{1, 2, ~std::uint64_t{0}}, 64, false, "a CTA that the launch does not have"},
      {{1, 2, 5, 2}, 64, false, "a CTA that the launch has twice"},
      {{1, 7}, 64, false, "a CTA that the launch has twice"},  // 7 is in the batch before
      {{1, 2}, 64, true, "a directory that is longer than it says"},
      {{1, 2, 3, 4, 5, 6}, 11, false, "more CTAs than a batch can have"},
  };
  for (const Case& damaged : cases) {
    const auto file = FileWith([&](ChunkWriter& writer) {
      AddDirectory(writer, {7});
      AddDirectory(writer, damaged.ctas, damaged.content, damaged.longer);
    });
    CHECK(file->problem().find(damaged.problem) != std::string::npos);
    REQUIRE(file->launches().size() == 1);
    const TraceFile::Launch& launch = file->launches()[0];
    CHECK(launch.batches.size() == 1);
    CHECK(launch.KeptCtas() == std::vector<std::uint64_t>{7});
    const auto source = TraceFile::Source(file, 0);
    for (std::uint64_t cta = 0; cta < 10; ++cta) CHECK(!source->Load(cta).ok());
  }
}

TEST_CASE("TraceFile_LaunchesThatContradictThemselves_AreNamed") {
  const auto problem = [](auto add) { return FileWith(add)->problem(); };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(problem([](ChunkWriter& w) {
              AddNumbers(w, ChunkType::kLaunchEnd, {1, 0, 0});
            }),
            "the end of a launch that is not there"));
  CHECK(has(problem([](ChunkWriter& w) {
              AddNumbers(w, ChunkType::kLaunchEnd, {0, 3, 0});
            }),
            "a launch's end does not fit"));
  const auto ended = [](auto add) {
    return [add](ChunkWriter& w) {
      AddNumbers(w, ChunkType::kLaunchEnd, {0, 0, 8});
      add(w);
    };
  };
  CHECK(problem(ended([](ChunkWriter&) {})).empty());
  CHECK(has(problem(ended([](ChunkWriter& w) {
              AddNumbers(w, ChunkType::kLaunchEnd, {0, 0, 8});
            })),
            "a launch that ends twice"));
  CHECK(has(problem(ended([](ChunkWriter& w) { AddDirectory(w, {1}); })), "CTAs of a launch that has ended"));
  // A kernel beyond 32 bits is not kernel 0.
  CHECK(has(problem([](ChunkWriter& w) {
              AddNumbers(w, ChunkType::kLaunchBegin,
                         {std::uint64_t{1} << 32, 8, 32, 8, 0, 8, 1, 1, 32, 1, 1, 0, 0, 0, 0, 0, 0});
            }),
            "a launch that does not fit"));
}

TEST_CASE("TraceFile_GroupsThatLeadNowhere_AreRefused") {
  const auto problem = [](const std::vector<std::pair<std::uint64_t, std::uint64_t>>& works) {
    return FileWith([&](ChunkWriter& writer) {
             for (const auto& [work, group] : works) AddAction(writer, work, group);
           })
        ->problem();
  };
  CHECK(problem({{1, 0}, {2, 1}, {5, 2}}).empty());
  CHECK(problem({{1, 1}}).find("in a group that comes after it") != std::string::npos);
  CHECK(problem({{1, 2}, {2, 1}}).find("in a group that comes after it") != std::string::npos);
  CHECK(problem({{1, 0}, {1, 0}}).find("out of order") != std::string::npos);
  CHECK(problem({{0, 0}}).find("out of order") != std::string::npos);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> nested;
  for (std::uint64_t work = 1; work <= 10'001; ++work) nested.emplace_back(work, work - 1);
  CHECK(problem(nested).empty());
  nested.emplace_back(10'002, 10'001);
  CHECK(problem(nested).find("10000 groups of groups") != std::string::npos);
}

TEST_CASE("TraceFile_CallsThatNoHostMakes_AreRefused") {
  const auto problem = [](const HostAction& action) {
    return FileWith([&](ChunkWriter& writer) {
             ByteWriter content;
             PutAction(action, content);
             writer.Add(ChunkType::kHost, {}, content);
           })
        ->problem();
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  HostAction action;
  action.kind = HostAction::Kind::kCopyToDevice;
  action.work = 1;
  action.bytes = TraceFile::kMostBytes;
  CHECK(problem(action).empty());
  action.bytes += 1;
  CHECK(has(problem(action), "more than any host has"));
  action.bytes = 1;
  action.span = TraceFile::kMostBytes + 1;
  CHECK(has(problem(action), "more than any host has"));
  action.span = 0;
  action.stream = TraceFile::kStreams;
  CHECK(has(problem(action), "in a stream that no program has"));
  // Whoever plays it would wait for what can only end behind the wait.
  HostAction wait;
  wait.kind = HostAction::Kind::kWait;
  wait.after = {1};
  CHECK(problem(wait).empty());
  wait.group = 1;
  CHECK(has(problem(wait), "a wait of the host in a group"));
}

TEST_CASE("TraceFile_Names_HaveNothingThatATerminalActsOn") {
  const auto file = FileWith([](ChunkWriter& writer) {
    ByteWriter code, launch, info;
    PutCode({.name = "\033[31mred\033[2J\n\xff",
             .instructions = {{}},
             .operands = {},
             .blocks = {{0, 1}},
             .register_count = 0},
            code);
    writer.Add(ChunkType::kKernel, {}, code);
    LaunchInfo of;
    of.kernel = 1;
    of.shape = {.ctas = 1, .threads_per_cta = 32};
    of.no_ranges = "why\033[31m";
    PutInfo(of, launch);
    writer.Add(ChunkType::kLaunchBegin, {}, launch);
    info.Text("made by\033]0;title\007");
    writer.Add(ChunkType::kInfo, {}, info);
  });
  REQUIRE(file->problem().empty());
  CHECK(file->kernels()[1].name == "\\x1b[31mred\\x1b[2J\\x0a\\xff");
  CHECK(file->launches()[1].info.no_ranges == "why\\x1b[31m");
  CHECK(file->info() == "made by\\x1b]0;title\\x07");
  const auto loaded = TraceFile::Source(file, 1)->Load(0);
  REQUIRE(!loaded.ok());
  CHECK(loaded.error().message.find('\033') == std::string::npos);
}

TEST_CASE("TraceFile_FewBytes_DoNotBecomeMany") {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  // A chunk of a type that nobody knows is not unpacked, whatever is in it.
  const auto unknown = FileWith([](ChunkWriter& writer) {
    ByteWriter zeros;
    std::memset(zeros.Grow(64 << 20), 0, 64 << 20);
    for (int i = 0; i < 8; ++i) writer.Add(static_cast<ChunkType>(77), {}, zeros);
    AddNumbers(writer, ChunkType::kLaunchEnd, {0, 0, 8});
  });
  CHECK(unknown->problem().empty());
  CHECK(unknown->launches()[0].complete);
  // One that is kept is, as far as the file is as large.
  const auto zeros = FileWith([](ChunkWriter& writer) {
    ByteWriter info;
    info.Varint(64 << 20);
    std::memset(info.Grow(64 << 20), ' ', 64 << 20);
    for (int i = 0; i < 8; ++i) writer.Add(ChunkType::kInfo, {}, info);
  });
  CHECK(has(zeros->problem(), "makes more of few bytes"));
  // A CTA that goes round a loop of one block, once for each of 2^26 visits.
  const auto loop = FileWith([](ChunkWriter& writer) {
    ByteWriter directory, content;
    PutCtas(0, std::vector<std::uint64_t>{0}, directory);
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 26,
                                      std::uint64_t{1}, std::uint64_t{1} << 26, std::uint64_t{1}})
      content.Varint(value);
    writer.Add(ChunkType::kCtas, directory, content);
  });
  REQUIRE(loop->problem().empty());
  const auto too_long = TraceFile::Source(loop, 0)->Load(0);
  REQUIRE(!too_long.ok());
  CHECK(has(too_long.error().message, "takes more than 134217728 bytes"));
  // A batch of more CTAs than its directory names: none of them is unpacked.
  const auto batch = FileWith([](ChunkWriter& writer) { AddDirectory(writer, {0}, 4 << 20); });
  REQUIRE(batch->problem().empty());
  CHECK(!TraceFile::Source(batch, 0)->Load(0).ok());
}

TEST_CASE("TraceFile_Budget_IsSharedAndGivenBack") {
  const auto file = FileWith([](ChunkWriter& writer) {
    for (std::uint64_t cta = 0; cta < 8; ++cta) {
      ByteWriter directory, content;
      PutCtas(0, std::vector<std::uint64_t>{cta}, directory);
      // 2^16 visits of a block, in half a megabyte.
      for (const std::uint64_t value : {0, 0, 1, 1 << 16, 1, 1 << 16, 1}) content.Varint(value);
      writer.Add(ChunkType::kCtas, directory, content);
    }
  });
  REQUIRE(file->problem().empty());
  const auto budget = std::make_shared<TraceBudget>(std::uint64_t{3} << 20);
  const std::uint64_t all = budget->left();
  std::vector<LoadedCta> held;
  const auto source = TraceFile::Source(file, 0, budget);
  std::uint64_t cta = 0;
  for (; cta < 8; ++cta) {
    auto loaded = source->Load(cta);
    if (!loaded.ok()) break;
    held.push_back(*loaded);
  }
  CHECK(cta > 3);
  CHECK(cta < 8);
  held.clear();
  // What nobody holds but the source counts until it takes up others.
  for (cta = 0; cta < 8; ++cta) CHECK(source->Load(cta).ok());
  CHECK(budget->left() < all);
}
