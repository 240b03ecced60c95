#include "rewriter/image/kept_ptx.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <random>

#include "rewriter/image/cubin.h"
#include "rewriter/image/select.h"
#include "tests/rewriter/image/image_bytes.h"

namespace gridloom::image {
namespace {

using testing::Buffer;
using testing::kPtx90;
using testing::MakeElf;

Buffer Cubin() {
  return MakeElf(ET_EXEC, kElfMachineCuda, {{".text.k", Buffer(48, std::byte{7})}, {".nv.info", Buffer(5, std::byte{1})}}, 90 << 8, 8);
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
