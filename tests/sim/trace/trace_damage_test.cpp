// Trace files whose checksums are right and whose chunks contradict each other: what is damaged is named, and nothing of it is kept.
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
  const std::string path = std::filesystem::temp_directory_path() / ("gridloom-damaged-" + std::to_string(getpid()) + ".gltrace");
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
void AddDirectory(ChunkWriter& writer, const std::vector<std::uint64_t>& ctas, std::size_t content = 64, bool longer = false) {
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
  CHECK(has(problem([](ChunkWriter& w) { AddNumbers(w, ChunkType::kLaunchEnd, {1, 0, 0}); }), "the end of a launch that is not there"));
  CHECK(has(problem([](ChunkWriter& w) { AddNumbers(w, ChunkType::kLaunchEnd, {0, 3, 0}); }), "a launch's end does not fit"));
  const auto ended = [](auto add) {
    return [add](ChunkWriter& w) {
      AddNumbers(w, ChunkType::kLaunchEnd, {0, 0, 8});
      add(w);
    };
  };
  CHECK(problem(ended([](ChunkWriter&) {})).empty());
  CHECK(has(problem(ended([](ChunkWriter& w) { AddNumbers(w, ChunkType::kLaunchEnd, {0, 0, 8}); })), "a launch that ends twice"));
  CHECK(has(problem(ended([](ChunkWriter& w) { AddDirectory(w, {1}); })), "CTAs of a launch that has ended"));
  // A kernel beyond 32 bits is not kernel 0.
  CHECK(has(problem([](ChunkWriter& w) {
              AddNumbers(w, ChunkType::kLaunchBegin, {std::uint64_t{1} << 32, 8, 32, 8, 0, 8, 1, 1, 32, 1, 1, 0, 0, 0, 0, 0, 0});
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
