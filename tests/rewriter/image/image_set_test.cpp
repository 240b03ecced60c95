#include "rewriter/image/image_set.h"

#include <elf.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "rewriter/image/cubin.h"
#include "rewriter/image/ptx_text.h"
#include "tests/rewriter/image/image_bytes.h"

namespace gridloom::image {
namespace {

using testing::Buffer;
using testing::EntrySpec;
using testing::MakeContainer;
using testing::MakeElf;

Buffer Program() {
  return MakeElf(ET_EXEC, EM_X86_64,
                 {{".text", Buffer(100)},
                  {".nv_fatbin", MakeContainer({EntrySpec{.kind = 2, .payload = "linked"}})},
                  {"__nv_relfatbin", MakeContainer({EntrySpec{.compression = Compression::kZstd}})}});
}

TEST_CASE("ReadImages_Elf_FindsBothSections") {
  const Buffer bytes = Program();
  const auto set = ReadImages(bytes);
  REQUIRE(set.ok());
  CHECK(TextOf(set->format) == "ELF executable");
  REQUIRE(set->containers.size() == 2);
  CHECK(set->containers[0].section == ".nv_fatbin");
  CHECK(set->containers[1].section == "__nv_relfatbin");
  CHECK(set->containers[1].relocatable);
  CHECK(set->HasKind(EntryKind::kPtx));
}

TEST_CASE("ReadImages_ElfTypes_AreTold") {
  CHECK(ReadImages(MakeElf(ET_DYN, EM_X86_64, {}))->format == Format::kSharedObject);
  CHECK(ReadImages(MakeElf(ET_REL, EM_X86_64, {}))->format == Format::kObject);
}

TEST_CASE("ReadImages_ElfWithoutDeviceCode_IsNoError") {
  const auto set = ReadImages(MakeElf(ET_EXEC, EM_X86_64, {{".text", Buffer(8)}}));
  REQUIRE(set.ok());
  CHECK(set->containers.empty());
}

TEST_CASE("ReadImages_CutElf_NeverCrashesAndNamesTheSection") {
  const Buffer bytes = Program();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_FALSE(ReadImages(cut).ok());
  }
  Buffer broken = MakeElf(ET_EXEC, EM_X86_64, {{".nv_fatbin", Buffer(16, std::byte{1})}});
  CHECK(ReadImages(broken).error().message == ".nv_fatbin: no fat binary container at offset 0x0");
}

TEST_CASE("ReadImages_FlippedBitsInElf_NeverCrash") {
  std::mt19937 random(2);
  const Buffer original = Program();
  for (int round = 0; round < 20000; ++round) {
    Buffer bytes = original;
    // Half of the flips hit the headers, where they matter most.
    const std::size_t range = round % 2 == 0 ? sizeof(Elf64_Ehdr) : bytes.size();
    bytes[random() % range] ^= static_cast<std::byte>(1u << (random() % 8));
    const auto set = ReadImages(bytes);
    if (!set.ok()) continue;
    for (const Container& container : set->containers) {
      for (const Entry& entry : container.entries) (void)entry.Read(1 << 20);
    }
  }
}

TEST_CASE("ReadImages_32BitElf_IsRefusedByName") {
  Buffer bytes = MakeElf(ET_EXEC, EM_386, {});
  bytes[EI_CLASS] = std::byte{ELFCLASS32};
  CHECK(ReadImages(bytes).error().message == "only 64-bit little-endian ELF files are supported");
}

TEST_CASE("ReadImages_Cubin_TellsItsArchitecture") {
  const Buffer modern = MakeElf(ET_EXEC, kElfMachineCuda, {}, 0x06005a04, 8);
  const Buffer old = MakeElf(ET_EXEC, kElfMachineCuda, {}, 0x00500550, 7);
  CHECK(ReadImages(modern)->containers[0].entries[0].arch.text() == "sm_90");
  CHECK(ReadImages(old)->containers[0].entries[0].arch.text() == "sm_80");
}

TEST_CASE("ReadCubin_KernelSymbols_AreListedWithTheirSizes") {
  Buffer symbols(sizeof(Elf64_Sym));
  testing::Append(
      symbols, Elf64_Sym{.st_name = 1, .st_info = 18, .st_other = 0x10, .st_shndx = 1, .st_value = 0, .st_size = 64});
  testing::Append(symbols,
                  Elf64_Sym{.st_name = 3, .st_info = 18, .st_other = 0, .st_shndx = 1, .st_value = 0, .st_size = 64});
  const Bytes names = AsBytes(std::string_view("\0k\0device_function\0", 19));
  const Buffer bytes = MakeElf(ET_EXEC, kElfMachineCuda,
                               {{".text.k", Buffer(64)},
                                {".nv.shared.k", Buffer(512)},
                                {".symtab", symbols},
                                {".strtab", Buffer(names.begin(), names.end())}},
                               0x06005a04, 8);
  const auto cubin = ReadCubin(bytes);
  REQUIRE(cubin.ok());
  REQUIRE(cubin->kernels.size() == 1);
  CHECK(cubin->kernels[0].name == "k");
  CHECK(cubin->kernels[0].code_bytes == 64);
  CHECK(cubin->kernels[0].shared_bytes == 512);
}

TEST_CASE("ReadImages_PtxText_WithAndWithoutNul") {
  const std::string text = std::string("// a comment\n/* another */\n") + std::string(testing::kPtx90);
  for (const std::string& form : {text, text + std::string(3, '\0')}) {
    const auto set = ReadImages(AsBytes(form));
    REQUIRE(set.ok());
    CHECK(set->format == Format::kPtx);
    CHECK(set->containers[0].entries[0].arch.text() == "sm_90");
    CHECK(*set->containers[0].entries[0].Read() == text);
  }
}

TEST_CASE("ReadImagePointer_TextAndElf_FindTheirOwnLength") {
  const std::string text(testing::kPtx90);
  CHECK(ReadImagePointer(text.c_str())->format == Format::kPtx);
  const Buffer cubin = MakeElf(ET_EXEC, kElfMachineCuda, {{".text", Buffer(40)}}, 0x06005a04, 8);
  const auto set = ReadImagePointer(cubin.data());
  REQUIRE(set.ok());
  CHECK(set->containers[0].entries[0].stored.size() == cubin.size());
}

TEST_CASE("ReadImages_Rubbish_SaysHowItBegins") {
  CHECK(ReadImages({}).error().message == "it is empty");
  CHECK(ReadImages(AsBytes("hello world")).error().message ==
        "neither ELF, fat binary nor PTX (it begins with \"hello world\")");
  CHECK_FALSE(ReadImagePointer(nullptr).ok());
  CHECK_FALSE(ReadImagePointer("").ok());
  CHECK_FALSE(ReadImagePointer("/*").ok());
}

TEST_CASE("ReadImageFile_NamesTheFileInEveryError") {
  CHECK(ReadImageFile("/nowhere/x").error().message == "/nowhere/x: No such file or directory");
  CHECK(ReadImageFile("/").error().message == "/: not a regular file");
  const std::string path = "/tmp/gridloom_image_test_" + std::to_string(getpid());
  std::ofstream(path) << testing::kPtx90;
  const auto set = ReadImageFile(path);
  unlink(path.c_str());
  REQUIRE(set.ok());
  CHECK(*set->containers[0].entries[0].Read() == testing::kPtx90);
}

/// One member of an archive, with its header.
std::string Member(std::string name, const std::string& data) {
  const auto field = [](std::string text, std::size_t width) {
    text.resize(width, ' ');
    return text;
  };
  return field(std::move(name), 16) + field("0", 12) + field("0", 6) + field("0", 6) + field("644", 8) +
         field(std::to_string(data.size()), 10) + "`\n" + data + (data.size() % 2 == 1 ? "\n" : "");
}

TEST_CASE("ReadImages_StaticLibrary_GivesTheContainersOfItsMembers") {
  const Buffer object = MakeElf(ET_REL, EM_X86_64, {{".nv_fatbin", MakeContainer({EntrySpec{}})}});
  const std::string bytes(AsText(object));
  const std::string archive = "!<arch>\n" + Member("/", "symbols") +
                              Member("//", "a_very_long_name_of_an_object.o/\n") + Member("short.o/", bytes) +
                              Member("notes.txt/", "odd") + Member("/0", bytes);
  const auto set = ReadImages(AsBytes(archive));
  INFO((set.ok() ? "" : set.error().message));
  REQUIRE(set.ok());
  CHECK(set->format == Format::kArchive);
  REQUIRE(set->containers.size() == 2);
  CHECK(set->containers[0].member == "short.o");
  CHECK(set->containers[1].member == "a_very_long_name_of_an_object.o");
  for (std::size_t length = 9; length < archive.size() - 1; ++length) {
    const std::string cut = archive.substr(0, length);
    const auto part = ReadImages(AsBytes(cut));
    if (part.ok()) CHECK(part->containers.size() < 2);
  }
}

TEST_CASE("ReadPtxHeader_Forms") {
  CHECK(ReadPtxHeader(".version 9.0 .target sm_100f, debug")->arch.text() == "sm_100f");
  CHECK(ReadPtxHeader(".version\t1.4\n.target sm_10, map_f64_to_f32\n")->version_minor == 4);
  CHECK(ReadPtxHeader("// c\n//\n/**/ .version 7.0\n.target sm_90a // x\n")->arch.scope == ArchScope::kExact);
  CHECK_FALSE(ReadPtxHeader(".target sm_90"));
  CHECK_FALSE(ReadPtxHeader("/* never closed .version 9.0"));
}

}  // namespace
}  // namespace gridloom::image
