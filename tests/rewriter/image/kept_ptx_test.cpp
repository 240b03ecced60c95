#include "rewriter/image/kept_ptx.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <random>

#include "rewriter/image/cubin.h"
#include "rewriter/image/select.h"
#include "rewriter/support/whole_file.h"
#include "tests/rewriter/image/image_bytes.h"
#include "tests/rewriter/image/nvcc.h"

namespace gridloom::image {
namespace {

using testing::Buffer;
using testing::kPtx90;
using testing::MakeElf;

Buffer Cubin() {
  return MakeElf(ET_EXEC, kElfMachineCuda,
                 {{".text.k", Buffer(48, std::byte{7})}, {".nv.info", Buffer(5, std::byte{1})}}, 90 << 8, 8);
}

TEST_CASE("KeepPtx_Cubin_GivesItsPtxBack_EverythingElseStays") {
  const Buffer cubin = Cubin();
  const auto kept = KeepPtx(cubin, kPtx90);
  REQUIRE(kept.ok());
  const auto set = ReadImages(*kept);
  REQUIRE(set.ok());
  CHECK(set->format == Format::kCubin);
  const auto ptx = SelectPtx(*set, ComputeCapability::FromSm(90));
  REQUIRE(ptx.ok());
  REQUIRE(ptx->size() == 1);
  CHECK(*ptx->front()->Read() == kPtx90);
  CHECK(ptx->front()->arch.text() == "sm_90");

  const auto before = ReadElf(cubin), after = ReadElf(*kept);
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  CHECK(after->sections.size() == before->sections.size() + 1);
  for (const ElfSection& section : before->sections) {
    const ElfSection* same = after->FindSection(section.name);
    REQUIRE(same != nullptr);
    if (section.type == SHT_STRTAB) continue;  // it has the new name
    CHECK(AsText(same->data) == AsText(section.data));
  }
}

TEST_CASE("KeepPtx_ThroughAPointer_IsFoundWithoutASize") {
  const auto kept = KeepPtx(Cubin(), kPtx90);
  REQUIRE(kept.ok());
  const auto set = ReadImagePointer(kept->data());
  REQUIRE(set.ok());
  CHECK(set->HasKind(EntryKind::kPtx));
}

// The flag of sections of compute capability 10.0 and later (kept_ptx.cpp).
TEST_CASE("KeepPtx_CubinOfTwoForms_SectionHasTheFlagOfTheSecond") {
  for (const std::uint64_t flag : {std::uint64_t{0}, std::uint64_t{0x10000000}}) {
    Buffer cubin = Cubin();
    Elf64_Ehdr header;
    std::memcpy(&header, cubin.data(), sizeof(header));
    auto* sections = reinterpret_cast<Elf64_Shdr*>(cubin.data() + header.e_shoff);
    sections[2].sh_flags = SHF_INFO_LINK | flag;
    const auto kept = KeepPtx(cubin, kPtx90);
    REQUIRE(kept.ok());
    std::memcpy(&header, kept->data(), sizeof(header));
    Elf64_Shdr last;
    std::memcpy(&last, kept->data() + header.e_shoff + (header.e_shnum - 1u) * sizeof(last), sizeof(last));
    CHECK(last.sh_flags == flag);
  }
}

// What `nvcc -dc` makes under Gridloom goes to the real nvlink.
TEST_CASE("KeepPtx_RelocatableCubinOfNvcc_IsLinkedByNvlink") {
  const std::vector<testing::SourceFile> sources{{"part.cu",
                                                  "__device__ __noinline__ int helper(int x) { return x * 3 + 1; }\n"
                                                  "__global__ void k(int* p) { *p = helper(*p); }\n"}};
  const testing::Nvcc nvcc(sources);
  if (!nvcc.present()) {
    std::cout << "SKIPPED: nvcc is not installed; nvlink is not tested\n";
    return;
  }
  for (const char* const arch : {"sm_90", "sm_100", "sm_103", "sm_120", "sm_121"}) {
    const auto cubin = ReadWholeFile(nvcc.Build(std::string("-cubin -rdc=true -arch=") + arch).string());
    REQUIRE(cubin.ok());
    const auto kept = KeepPtx(AsBytes(*cubin), kPtx90);
    REQUIRE(kept.ok());
    INFO(arch);
    CHECK(nvcc.Link(std::string(AsText(*kept)), arch) == "");
  }
}

TEST_CASE("KeepPtx_OtherFiles_AreRefused") {
  CHECK_FALSE(KeepPtx(MakeElf(ET_EXEC, EM_X86_64, {{".text", Buffer(8)}}), kPtx90).ok());
  CHECK_FALSE(KeepPtx({}, kPtx90).ok());
  CHECK_FALSE(KeepPtx(AsBytes(kPtx90), kPtx90).ok());
  const auto kept = KeepPtx(Cubin(), kPtx90);
  REQUIRE(kept.ok());
  CHECK_FALSE(KeepPtx(*kept, kPtx90).ok());
}

TEST_CASE("ReadImages_SectionThatHoldsNoPtx_IsMachineCodeAlone") {
  const auto kept = KeepPtx(Cubin(), "no PTX");
  REQUIRE(kept.ok());
  const auto set = ReadImages(*kept);
  REQUIRE(set.ok());
  CHECK_FALSE(set->HasKind(EntryKind::kPtx));
}

TEST_CASE("KeepPtx_FlippedBits_NeverCrash") {
  std::mt19937 random(5);
  const Buffer original = Cubin();
  for (int round = 0; round < 20000; ++round) {
    Buffer bytes = original;
    const std::size_t range = round % 2 == 0 ? sizeof(Elf64_Ehdr) : bytes.size();
    bytes[random() % range] ^= static_cast<std::byte>(1u << (random() % 8));
    const auto kept = KeepPtx(bytes, kPtx90);
    if (kept.ok()) CHECK(ReadImages(*kept).ok());
  }
}

}  // namespace
}  // namespace gridloom::image
