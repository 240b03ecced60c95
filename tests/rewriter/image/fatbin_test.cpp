#include "rewriter/image/fatbin.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/rewriter/image/image_bytes.h"

namespace gridloom::image {
namespace {

using testing::Buffer;
using testing::Concat;
using testing::EntrySpec;
using testing::MakeContainer;

std::string LongPtx() {
  std::string text(testing::kPtx90);
  for (int i = 0; i < 500; ++i) text += "// line " + std::to_string(i) + " that compresses well well well\n";
  return text;
}

/// Reads everything there is to read; what matters is that nothing crashes and sanitizers stay silent.
void Exercise(Bytes bytes) {
  const auto set = ReadImages(bytes);
  if (!set.ok()) {
    CHECK_FALSE(set.error().message.empty());
    return;
  }
  for (const Container& container : set->containers) {
    for (const Entry& entry : container.entries) (void)entry.Read(1 << 20);
  }
}

TEST_CASE("ReadContainer_EveryCompression_GivesTheText") {
  for (const Compression compression : testing::kCompressions) {
    const std::string text = LongPtx();
    const Buffer bytes = MakeContainer({EntrySpec{.compression = compression, .payload = text + '\0'}});
    const auto container = ReadContainer(bytes);
    REQUIRE(container.ok());
    REQUIRE(container->entries.size() == 1);
    const Entry& entry = container->entries[0];
    CHECK(entry.kind == EntryKind::kPtx);
    CHECK(entry.compression == compression);
    CHECK(entry.arch.text() == "sm_90");
    CHECK(entry.version_major == 9);
    const auto read = entry.Read();
    REQUIRE(read.ok());
    CHECK(*read == text);
  }
}

TEST_CASE("ReadContainer_HeaderTexts_AreKept") {
  const Buffer bytes =
      MakeContainer({EntrySpec{.name = "dir/a.cu", .options = " --generate-line-info "}, EntrySpec{.options = "-g"}});
  const auto container = ReadContainer(bytes);
  REQUIRE(container.ok());
  CHECK(container->entries[0].source_name == "dir/a.cu");
  CHECK(container->entries[0].options == "--generate-line-info");
  CHECK(container->entries[1].source_name.empty());
  CHECK(container->entries[1].options == "-g");
}

TEST_CASE("ReadContainer_Flags_TellTheScopeOfTheArchitecture") {
  const Buffer bytes = MakeContainer(
      {EntrySpec{.sm = 90, .flags = 0x100011}, EntrySpec{.sm = 100, .flags = 0x200011}, EntrySpec{.flags = 0x13}});
  const auto container = ReadContainer(bytes);
  REQUIRE(container.ok());
  CHECK(container->entries[0].arch.text() == "sm_90a");
  CHECK(container->entries[1].arch.text() == "sm_100f");
  CHECK(container->entries[2].debug);
}

TEST_CASE("ReadContainer_UnknownKind_IsKept") {
  const Buffer bytes = MakeContainer({EntrySpec{.kind = 64, .payload = "bitcode!"}});
  const auto container = ReadContainer(bytes);
  REQUIRE(container.ok());
  CHECK(container->entries[0].kind == EntryKind::kOther);
  CHECK(container->entries[0].raw_kind == 64);
}

TEST_CASE("ReadContainer_Empty_HasNoEntries") {
  const auto container = ReadContainer(MakeContainer({}));
  REQUIRE(container.ok());
  CHECK(container->entries.empty());
}

TEST_CASE("ReadContainers_ZerosBetween_AreSkipped") {
  const Buffer one = MakeContainer({EntrySpec{.sm = 80}});
  const auto containers = ReadContainers(Concat({one, Buffer(24), one, Buffer(8)}));
  REQUIRE(containers.ok());
  CHECK(containers->size() == 2);
}

TEST_CASE("ReadContainers_RubbishBetween_IsAnErrorWithItsOffset") {
  const Buffer one = MakeContainer({});
  const auto containers = ReadContainers(Concat({one, Buffer(8, std::byte{7})}));
  REQUIRE_FALSE(containers.ok());
  CHECK(containers.error().message == "no fat binary container at offset 0x10");
}

TEST_CASE("ReadContainer_CutAtEveryByte_IsAnError") {
  const Buffer bytes = MakeContainer({EntrySpec{.compression = Compression::kZstd, .name = "a.cu", .options = "-g"},
                                      EntrySpec{.compression = Compression::kLz4}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // An exact copy, so that a sanitizer sees a read beyond the end.
    const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    INFO("length " << length);
    CHECK_FALSE(ReadImages(cut).ok());
  }
}

TEST_CASE("ReadContainer_FlippedBits_NeverCrash") {
  std::mt19937 random(1);
  const Buffer original =
      MakeContainer({EntrySpec{.compression = Compression::kZstd, .name = "a.cu", .options = "-g"},
                     EntrySpec{.compression = Compression::kLz4}, EntrySpec{.kind = 2, .payload = "\177ELF rest"}});
  for (int round = 0; round < 20000; ++round) {
    Buffer bytes = original;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << (random() % 8));
    Exercise(bytes);
  }
}

TEST_CASE("Read_Lz4HeaderClaimsTooMuch_IsRefusedWithoutAllocating") {
  Buffer bytes = MakeContainer({EntrySpec{.compression = Compression::kLz4}});
  const std::uint64_t claim = 400ull << 20;
  std::memcpy(bytes.data() + 16 + 56, &claim, sizeof claim);
  const auto container = ReadContainer(bytes);
  REQUIRE(container.ok());
  const auto read = container->entries[0].Read();
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().message.find("cannot hold the 419430400 bytes") != std::string::npos);
}

TEST_CASE("Read_LongerThanTheLimit_IsAnError") {
  for (const Compression compression : testing::kCompressions) {
    const Buffer bytes = MakeContainer({EntrySpec{.compression = compression, .payload = std::string(100000, ' ')}});
    const auto container = ReadContainer(bytes);
    REQUIRE(container.ok());
    CHECK_FALSE(container->entries[0].Read(99999).ok());
    CHECK(container->entries[0].Read(100000).ok());
  }
}

TEST_CASE("Read_ZstdSizeDisagreesWithTheHeader_IsAnError") {
  Buffer bytes = MakeContainer({EntrySpec{.compression = Compression::kZstd}});
  bytes[16 + 56] ^= std::byte{1};
  const auto container = ReadContainer(bytes);
  REQUIRE(container.ok());
  CHECK_FALSE(container->entries[0].Read().ok());
}

// ---------------------------------------------------------------------------------------------------------------------
// Wrappers: structures of this process
// ---------------------------------------------------------------------------------------------------------------------

struct Wrapper {
  std::uint32_t magic = kWrapperMagic;
  std::uint32_t version = 1;
  const void* container = nullptr;
  const void* const* parts = nullptr;
};

TEST_CASE("ReadWrapper_Version1_GivesItsContainer") {
  const Buffer container = MakeContainer({EntrySpec{.sm = 75}});
  const Wrapper wrapper{.container = container.data()};
  const auto set = ReadImagePointer(&wrapper);
  REQUIRE(set.ok());
  CHECK(set->format == Format::kWrapper);
  REQUIRE(set->containers.size() == 1);
  CHECK_FALSE(set->containers[0].relocatable);
}

TEST_CASE("ReadWrapper_Version2_GivesThePartsToo") {
  const Buffer linked = MakeContainer({EntrySpec{.kind = 2, .payload = "machine code"}});
  const Buffer a = MakeContainer({EntrySpec{}});
  const Buffer b = MakeContainer({EntrySpec{}});
  const void* const parts[] = {a.data(), b.data(), nullptr};
  const Wrapper wrapper{.version = 2, .container = linked.data(), .parts = parts};
  const auto set = ReadImagePointer(&wrapper);
  REQUIRE(set.ok());
  REQUIRE(set->containers.size() == 3);
  CHECK(set->containers[2].relocatable);
}

TEST_CASE("ReadWrapper_Broken_IsAnError") {
  const Buffer container = MakeContainer({});
  const Buffer text(64, std::byte{'x'});
  const Wrapper wrong_version{.version = 3, .container = container.data()};
  const Wrapper null_container{};
  const Wrapper no_container{.container = text.data()};
  CHECK(ReadImagePointer(&wrong_version).error().message == "fat binary wrapper of version 3; expected 1 or 2");
  CHECK_FALSE(ReadImagePointer(&null_container).ok());
  CHECK_FALSE(ReadImagePointer(&no_container).ok());
}

TEST_CASE("ReadImagePointer_ContainerClaimsTooMuch_IsAnError") {
  Buffer container = MakeContainer({});
  const std::uint64_t claim = 1ull << 60;
  std::memcpy(container.data() + 8, &claim, sizeof claim);
  CHECK_FALSE(ReadImagePointer(container.data()).ok());
  const Wrapper wrapper{.container = container.data()};
  CHECK_FALSE(ReadImagePointer(&wrapper).ok());
}

}  // namespace
}  // namespace gridloom::image
