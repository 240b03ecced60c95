#include "rewriter/image/edit.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <iterator>
#include <random>

#include "tests/rewriter/image/image_bytes.h"

namespace gridloom::image {
namespace {

using testing::Buffer;
using testing::EntrySpec;
using testing::MakeContainer;

constexpr std::uint16_t kCubin = 2;

std::string LongText(const std::string& last) {
  std::string text(testing::kPtx90);
  for (int i = 0; i < 300; ++i) text += "// a line that says nothing\n";
  return text + last;
}

/// A text that no compression makes small.
std::string Noise(unsigned length, unsigned seed) {
  std::string text;
  for (unsigned i = 0, x = seed; i < length; ++i, x = x * 1103515245 + 12345)
    text += static_cast<char>('a' + (x >> 16) % 26);
  return text;
}

/// Replaces every PTX for sm_90, keeps the others.
PtxEdit ReplaceSm90(const std::string& text) {
  return [text](const std::vector<const Entry*>& parts, PtxRole) -> Result<std::optional<std::string>> {
    if (parts.front()->arch.text() != "sm_90") return std::optional<std::string>();
    return std::optional(text);
  };
}

std::vector<Entry> EntriesOf(const std::vector<std::byte>& bytes) {
  const auto set = ReadImages(bytes);
  REQUIRE(set.ok());
  REQUIRE(set->containers.size() == 1);
  return set->containers[0].entries;
}

TEST_CASE("EditImages_Container_NewTextInEveryCompression_OthersAndHeadersKept") {
  for (const Compression compression : testing::kCompressions) {
    const Buffer bytes = MakeContainer(
        {EntrySpec{.compression = compression, .payload = LongText("// old") + '\0', .name = "a.cu", .options = "-g"},
         EntrySpec{.kind = kCubin, .payload = "machine code"},
         EntrySpec{.sm = 75, .payload = LongText("// other") + '\0'}});
    const std::string text = LongText("// new") + LongText("");
    const auto edited = EditImages(bytes, ReplaceSm90(text));
    REQUIRE(edited.ok());
    const auto entries = EntriesOf(*edited);
    REQUIRE(entries.size() == 2);  // machine code is left out
    CHECK(*entries[0].Read() == text);
    CHECK(entries[0].source_name == "a.cu");
    CHECK(entries[0].options == "-g");
    CHECK((entries[0].compression == Compression::kNone) == (compression == Compression::kNone));
    CHECK(*entries[1].Read() == LongText("// other"));
  }
}

/// Machine code of sm_80 becomes this one.
CodeEdit CodeBecomes(const std::string& code) {
  return [code](const Entry& entry) -> Result<std::optional<std::vector<std::byte>>> {
    if (entry.arch.text() != "sm_80") return std::optional<std::vector<std::byte>>();
    const Bytes bytes = AsBytes(code);
    return std::optional(std::vector<std::byte>(bytes.begin(), bytes.end()));
  };
}

TEST_CASE("EditImages_MachineCode_IsStoredAsItWas") {
  const PtxEdit no_ptx = ReplaceSm90("x");
  for (const Compression compression : testing::kCompressions) {
    const Buffer bytes = MakeContainer(
        {EntrySpec{.kind = kCubin, .sm = 80, .compression = compression, .payload = Noise(3000, 1), .name = "a.cu"},
         EntrySpec{.kind = kCubin, .sm = 86, .compression = compression, .payload = Noise(3000, 2)}});
    const std::string code = Noise(5000, 3) + std::string(4000, '\0');
    const auto edited = EditImages(bytes, no_ptx, CodeBecomes(code));
    REQUIRE(edited.ok());
    const auto entries = EntriesOf(*edited);
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].compression == compression);
    CHECK(*entries[0].Read() == code);
    CHECK(entries[0].source_name == "a.cu");
    CHECK((entries[0].stored.size() < code.size()) == (compression != Compression::kNone));
    CHECK(*entries[1].Read() == Noise(3000, 2));
  }
}

TEST_CASE("EditImages_MachineCodeBesidePtx_IsEditedWhereNoPtxRuns") {
  const auto cubin = [](std::uint32_t sm) { return EntrySpec{.kind = kCubin, .sm = sm, .payload = Noise(800, sm)}; };
  const auto code = Noise(1600, 3);
  const auto texts = [&](std::uint32_t ptx, const std::string& text) {
    const Buffer bytes = MakeContainer({cubin(80), cubin(90), EntrySpec{.sm = ptx, .payload = LongText("") + '\0'}});
    const auto edited = EditImages(bytes, ReplaceSm90(text), CodeBecomes(code));
    REQUIRE(edited.ok());
    std::vector<std::string> found;
    for (const Entry& entry : EntriesOf(*edited)) found.push_back(*entry.Read());
    return found;
  };
  // PTX for sm_90: code for sm_80 has none, that for sm_90 gives way to it.
  CHECK(texts(90, "new") == std::vector<std::string>{code, "new"});
  // PTX for sm_75, which is not edited, runs on both.
  CHECK(texts(75, "new") == std::vector<std::string>{Noise(800, 80), Noise(800, 90), LongText("")});
}

TEST_CASE("EditImages_NothingEdited_SameBytes") {
  const Buffer bytes =
      MakeContainer({EntrySpec{.sm = 80}, EntrySpec{.kind = kCubin, .sm = 80, .payload = "machine code"}});
  const auto edited = EditImages(bytes, ReplaceSm90("x"));
  REQUIRE(edited.ok());
  CHECK(*edited == bytes);
}

TEST_CASE("EditImages_ErrorOfTheEdit_IsPassedOn") {
  const Buffer bytes = MakeContainer({EntrySpec{}});
  const auto edited =
      EditImages(bytes, [](const auto&, PtxRole) -> Result<std::optional<std::string>> { return Error{"no"}; });
  REQUIRE(!edited.ok());
  CHECK(edited.error().message == "no");
}

TEST_CASE("EditImages_ElfWithRoom_ContainerStaysWhereItIs") {
  const Buffer container = MakeContainer({EntrySpec{.payload = LongText("// old") + '\0'}, EntrySpec{.sm = 80}});
  const Buffer elf =
      testing::MakeElf(ET_EXEC, EM_X86_64, {{".text", Buffer(32)}, {".nv_fatbin", container}, {".data", Buffer(16)}});
  const auto edited = EditImages(elf, ReplaceSm90(LongText("// new")));
  REQUIRE(edited.ok());
  CHECK(edited->size() == elf.size());
  const auto entries = EntriesOf(*edited);
  REQUIRE(entries.size() == 2);
  CHECK(*entries[0].Read() == LongText("// new"));
  CHECK(*entries[1].Read() == testing::kPtx90);
}

TEST_CASE("EditImages_ElfWithoutRoomOrSegments_IsAnError") {
  const Buffer elf = testing::MakeElf(ET_EXEC, EM_X86_64,
                                      {{".nv_fatbin", MakeContainer({EntrySpec{}})}, {".nvFatBinSegment", Buffer(24)}});
  const auto edited = EditImages(elf, ReplaceSm90(Noise(4000, 1)));
  REQUIRE(!edited.ok());
  CHECK(edited.error().message == "it has no segment to spare for longer device code");
}

TEST_CASE("EditImages_DamagedElf_IsAnErrorOrAFile") {
  const Buffer object = testing::MakeElf(ET_REL, EM_X86_64,
                                         {{".nv_fatbin", MakeContainer({EntrySpec{}})},
                                          {".symtab", Buffer(72)},
                                          {".rela.data", Buffer(72)},
                                          {".data", Buffer(16)}});
  const PtxEdit grow = ReplaceSm90(Noise(4000, 1));
  REQUIRE(EditImages(object, grow).ok());
  const std::size_t table = object.size() - 7 * sizeof(Elf64_Shdr);
  std::mt19937 random(1);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  int errors = 0;
  for (int i = 0; i < 4000; ++i) {
    Buffer damaged = object;
    for (std::size_t change = 0; change <= below(4); ++change) {
      const bool in_header = below(3) == 0;
      const std::size_t at = in_header ? below(sizeof(Elf64_Ehdr)) : table + below(object.size() - table);
      constexpr unsigned char kValues[] = {0, 1, 2, 4, 5, 8, 11, 0x7f, 0x80, 0xff};  // types of sections among them
      damaged[at] = below(2) == 0 ? std::byte{kValues[below(std::size(kValues))]} : static_cast<std::byte>(random());
    }
    const auto edited = EditImages(damaged, grow);
    errors += !edited.ok();
    if (edited.ok()) CHECK(edited->size() < 100 * object.size());
  }
  CHECK(errors > 400);
  CHECK(errors < 3600);
}

/// The texts of the parts, one after the other.
Result<std::optional<std::string>> Concatenated(const std::vector<const Entry*>& parts, PtxRole) {
  std::string text;
  for (const Entry* part : parts) text += *part->Read();
  return std::optional(text);
}

TEST_CASE("EditImages_SeparatelyCompiled_PartsBecomeOneForEachArchitecture") {
  const auto ptx = [](std::uint32_t sm, const std::string& text) {
    return EntrySpec{.sm = sm, .payload = LongText(text) + '\0'};
  };
  const EntrySpec machine_code{.kind = kCubin, .sm = 75, .payload = "machine code"};
  const Buffer first = MakeContainer({machine_code, ptx(75, "// a75"), ptx(80, "// a80")});
  const Buffer second = MakeContainer({ptx(75, "// b75"), machine_code});
  const Buffer library = MakeContainer({machine_code, ptx(90, "// library")});  // as libcudadevrt is built
  const Buffer whole = MakeContainer({ptx(75, "// whole")});
  const Buffer linked = MakeContainer({EntrySpec{.kind = kCubin, .sm = 75, .payload = "linked"}});
  const Buffer elf = testing::MakeElf(ET_EXEC, EM_X86_64,
                                      {{"__nv_relfatbin", testing::Concat({first, second, library})},
                                       {".nv_fatbin", testing::Concat({whole, linked})}});
  const auto edited = EditImages(elf, Concatenated);
  REQUIRE(edited.ok());
  const auto set = ReadImages(*edited);
  REQUIRE(set.ok());
  REQUIRE(set->containers.size() == 5);
  CHECK(*set->containers[0].entries.at(0).Read() == LongText("// whole"));
  CHECK(set->containers[1].entries.empty());
  const auto& joined = set->containers[2].entries;
  REQUIRE(joined.size() == 2);
  CHECK(joined[0].arch.text() == "sm_75");
  CHECK(*joined[0].Read() == LongText("// a75") + LongText("// b75"));
  CHECK(joined[1].arch.text() == "sm_80");
  CHECK(*joined[1].Read() == LongText("// a80") + LongText("// b75"));
  CHECK(set->containers[3].entries.empty());
  REQUIRE(set->containers[4].entries.size() == 2);
  CHECK(*set->containers[4].entries[1].Read() == LongText("// library"));
}

TEST_CASE("EditImages_SeparatelyCompiledNothingEdited_SameBytes") {
  const Buffer elf = testing::MakeElf(
      ET_EXEC, EM_X86_64,
      {{"__nv_relfatbin", testing::Concat({MakeContainer({EntrySpec{}}), MakeContainer({EntrySpec{}})})},
       {".nv_fatbin", MakeContainer({EntrySpec{.kind = kCubin, .payload = "linked"}})}});
  const auto edited = EditImages(
      elf, [](const auto&, PtxRole) -> Result<std::optional<std::string>> { return std::optional<std::string>(); });
  REQUIRE(edited.ok());
  CHECK(*edited == elf);
}

TEST_CASE("EditImages_SeparatelyCompiledAndTwoWithoutPtx_IsAnError") {
  const Buffer machine_code = MakeContainer({EntrySpec{.kind = kCubin, .payload = "machine code"}});
  const Buffer elf = testing::MakeElf(ET_EXEC, EM_X86_64,
                                      {{"__nv_relfatbin", MakeContainer({EntrySpec{.payload = LongText("") + '\0'}})},
                                       {".nv_fatbin", testing::Concat({machine_code, machine_code})}});
  CHECK(!EditImages(elf, ReplaceSm90("x")).ok());
}

struct ArchiveMember {
  std::string name;  ///< as the header has it
  Buffer data;
};

void AppendText(Buffer& buffer, std::string text, std::size_t width) {
  text.resize(width, ' ');
  for (const char c : text) testing::Append(buffer, c);
}

/// An archive in the format of ar(5); offsets of the members' headers go to `offsets`.
Buffer MakeArchive(const std::vector<ArchiveMember>& members, std::vector<std::uint32_t>* offsets = nullptr) {
  Buffer archive;
  AppendText(archive, "!<arch>\n", 8);
  for (const ArchiveMember& member : members) {
    if (offsets != nullptr) offsets->push_back(static_cast<std::uint32_t>(archive.size()));
    AppendText(archive, member.name, 16);
    AppendText(archive, "0           0     0     644", 32);
    AppendText(archive, std::to_string(member.data.size()), 10);
    AppendText(archive, "`\n", 2);
    archive.insert(archive.end(), member.data.begin(), member.data.end());
    if (archive.size() % 2 != 0) AppendText(archive, "\n", 1);
  }
  return archive;
}

Buffer SymbolTable(const std::vector<std::uint32_t>& offsets) {
  Buffer table;
  const auto number = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) testing::Append(table, static_cast<std::uint8_t>(value >> shift));
  };
  number(static_cast<std::uint32_t>(offsets.size()));
  for (const std::uint32_t offset : offsets) number(offset);
  for (std::size_t i = 0; i < offsets.size(); ++i) AppendText(table, std::string("s\0", 2), 2);
  return table;
}

TEST_CASE("EditImages_Archive_MembersGrowAndSymbolsLeadToThem") {
  const auto object = [](const std::string& text) {
    return testing::MakeElf(
        ET_REL, EM_X86_64, {{".nv_fatbin", MakeContainer({EntrySpec{.payload = text + '\0'}})}, {".data", Buffer(16)}});
  };
  std::vector<ArchiveMember> members{{"/", SymbolTable({0, 0, 0})},
                                     {"//", {}},
                                     {"a.o/", object("old a")},
                                     {"notes.txt/", Buffer(3)},
                                     {"/0", object("old b")}};
  AppendText(members[1].data, "an_object_with_a_long_name.o/\n", 30);
  std::vector<std::uint32_t> offsets;
  MakeArchive(members, &offsets);
  members[0].data = SymbolTable({offsets[4], offsets[2], offsets[4]});
  const Buffer archive = MakeArchive(members);

  unsigned seed = 0;
  const auto edited = EditImages(archive, [&](const auto&, PtxRole) -> Result<std::optional<std::string>> {
    return std::optional(Noise(5001, ++seed));
  });
  REQUIRE(edited.ok());
  const auto set = ReadImages(*edited);
  REQUIRE(set.ok());
  REQUIRE(set->containers.size() == 2);
  CHECK(set->containers[0].member == "a.o");
  CHECK(set->containers[1].member == "an_object_with_a_long_name.o");
  CHECK(*set->containers[0].entries.at(0).Read() == Noise(5001, 1));
  CHECK(*set->containers[1].entries.at(0).Read() == Noise(5001, 2));
  const auto offset = [&](std::size_t symbol) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>((*edited)[8 + 60 + 4 + symbol * 4 + i]);
    return value;
  };
  CHECK(offset(0) == offset(2));
  CHECK(AsText(Bytes(*edited).subspan(offset(0), 3)) == "/0 ");
  CHECK(AsText(Bytes(*edited).subspan(offset(1), 5)) == "a.o/ ");

  const auto same = EditImages(
      archive, [](const auto&, PtxRole) -> Result<std::optional<std::string>> { return std::optional<std::string>(); });
  REQUIRE(same.ok());
  CHECK(*same == archive);
}

TEST_CASE("EditImages_ArchiveWithPartsOfAProgram_EachIsEditedAsAPart") {
  const auto part = [](const std::string& text) {
    return testing::MakeElf(ET_REL, EM_X86_64,
                            {{"__nv_relfatbin", MakeContainer({EntrySpec{.payload = LongText(text) + '\0'}})}});
  };
  unsigned parts = 0;
  const auto edited =
      EditImages(MakeArchive({{"a.o/", part("// first")}, {"b.o/", part("// second")}}),
                 [&](const std::vector<const Entry*>& entries, PtxRole role) -> Result<std::optional<std::string>> {
                   CHECK(entries.size() == 1);
                   parts += role == PtxRole::kPart;
                   return std::optional<std::string>("part " + std::to_string(parts));
                 });
  REQUIRE(edited.ok());
  CHECK(parts == 2);
  const auto set = ReadImages(*edited);
  REQUIRE(set.ok());
  REQUIRE(set->containers.size() == 2);
  for (unsigned i = 0; i < 2; ++i) {
    CHECK(set->containers[i].relocatable);
    CHECK(*set->containers[i].entries.at(0).Read() == "part " + std::to_string(i + 1));
  }
}

TEST_CASE("EditImages_ArchiveWhoseSymbolsLeadNowhere_IsAnError") {
  CHECK(!EditImages(MakeArchive({{"/", SymbolTable({12})}}), ReplaceSm90("x")).ok());
  CHECK(!EditImages(MakeArchive({{"/", SymbolTable({68, 68, 68})}, {"a/", {}}}), ReplaceSm90("x")).ok());
}

TEST_CASE("EditImages_PtxText_IsReplaced") {
  const auto edited = EditImages(AsBytes(testing::kPtx90), ReplaceSm90("new text"));
  REQUIRE(edited.ok());
  CHECK(AsText(*edited) == "new text");
}

}  // namespace
}  // namespace gridloom::image
