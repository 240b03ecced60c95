#include <elf.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "interpose/launcher/inspect/machine_code.h"
#include "interpose/launcher/inspect/show.h"
#include "rewriter/ptx/parser.h"
#include "tests/rewriter/image/image_bytes.h"

namespace gridloom::launcher {
namespace {

constexpr const char* kPtx = R"(.version 8.0
.target sm_90
.address_size 64
.const .align 4 .b8 weights[32];
.global .align 4 .u32 counter;
.extern .shared .align 16 .b8 dynamic[];
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.func helper() { .shared .align 4 .b8 inner[64]; .reg .b32 %r<3>; mov.u32 %r1, inner; bar.sync 3; ret; }
.visible .entry _Z3addPfi(.param .u64 p0, .param .u32 p1, .param .align 16 .b8 p2[24])
.maxntid 256, 1, 1
.minnctapersm 2
{
  .local .align 8 .b8 depot[40];
  .shared .align 4 .b8 tile[512];
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .v2 .f32 %v;
  .reg .b64 %rd<3>;
  mov.u32 %r1, tile;
  mov.u32 %r2, dynamic;
  barrier.sync 0;
  bar.red.popc.u32 %r3, 1, %p1;
  bar.warp.sync -1;
  call helper;
  { .param .b32 q; .param .b64 f; .param .b64 a; call (q), vprintf, (f, a); }
  newop.fancy.b32 %r4, %r5;
  ret;
}
)";

/// A file that vanishes with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content) : path_("/tmp/gridloom_inspect_" + std::to_string(getpid())) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

InspectReport Inspected(std::string_view content) {
  const TemporaryFile file(content);
  auto report = InspectFile(file.path(), std::nullopt);
  INFO((report.ok() ? "" : report.error().message));
  REQUIRE(report.ok());
  return *std::move(report);
}

TEST_CASE("ReportKernel_TellsAllAboutAKernel") {
  const InspectReport report = Inspected(kPtx);
  REQUIRE(report.containers.size() == 1);
  REQUIRE(report.containers[0].kernels.size() == 1);
  const KernelReport& kernel = report.containers[0].kernels[0];
  CHECK(kernel.demangled == "add(float*, int)");
  REQUIRE(kernel.parameters.size() == 3);
  CHECK(kernel.parameters[1].offset == 8);
  CHECK(kernel.parameters[2].type == "b8[24]");
  CHECK(kernel.parameters[2].offset == 16);
  CHECK(kernel.parameter_bytes == 40);
  CHECK(kernel.registers == std::map<std::string, std::uint64_t>{{"pred", 2}, {"b32", 11}, {"b64", 3}});
  CHECK(kernel.shared_bytes == 576);
  CHECK(kernel.dynamic_shared);
  CHECK(kernel.local_bytes == 40);
  CHECK(kernel.barriers == std::vector<std::string>{"0", "1", "3"});
  CHECK(kernel.launch_bounds == std::vector<std::string>{"maxntid 256, 1, 1", "minnctapersm 2"});
  CHECK(kernel.instructions == 9);
  CHECK(kernel.callee_instructions == 3);
  CHECK(kernel.system_calls == std::vector<std::string>{"vprintf"});
  CHECK(kernel.unknown_opcodes == std::vector<std::string>{"newop.fancy.b32"});
  CHECK(report.containers[0].constant_bytes == 32);
  CHECK(report.containers[0].device_functions == 1);
}

TEST_CASE("ReportText_HasALinePerKernelOrAParagraph") {
  const InspectReport report = Inspected(kPtx);
  const std::string lines = ReportText(report, {});
  CHECK(lines.find("PTX text, 1 kernel\n") != std::string::npos);
  CHECK(lines.find("[unknown instructions] add(float*, int)") != std::string::npos);
  CHECK(lines.find("<= 256, 1, 1") != std::string::npos);
  CHECK(lines.find("576 B + dynamic") != std::string::npos);
  const std::string details = ReportText(report, {.kernel = "add", .details = true});
  CHECK(details.find("16     24  b8[24] align 16  p2") != std::string::npos);
  CHECK(details.find("newop.fancy.b32") != std::string::npos);
  CHECK(ReportText(report, {.kernel = "other", .details = true}).find("add(") == std::string::npos);
}

TEST_CASE("ReportJson_IsJsonWithTheSameFacts") {
  const auto json = nlohmann::json::parse(ReportJson(Inspected(kPtx), {}));
  CHECK(json["format"] == "PTX text");
  const auto& kernel = json["containers"][0]["kernels"][0];
  CHECK(kernel["name"] == "_Z3addPfi");
  CHECK(kernel["parameters"][2]["offset"] == 16);
  CHECK(kernel["registers"]["b32"] == 11);
  CHECK(kernel["barriers"].size() == 3);
}

TEST_CASE("InspectFile_PtxWithMistakes_ShowsThemAndWhatCouldBeRead") {
  const InspectReport report = Inspected(std::string(kPtx) + ".visible .entry broken( { ret; }\n");
  CHECK(report.containers[0].kernels.size() >= 1);
  REQUIRE_FALSE(report.containers[0].diagnostics.empty());
  CHECK(ReportText(report, {}).find("error:") != std::string::npos);
}

TEST_CASE("InspectFile_Containers_ShowEveryEntryAndMarkTheOneThatRuns") {
  using image::testing::EntrySpec;
  const auto bytes = image::testing::MakeContainer(
      {EntrySpec{.kind = 2, .sm = 80, .payload = "x"}, EntrySpec{.sm = 75, .compression = image::Compression::kLz4},
       EntrySpec{.compression = image::Compression::kZstd, .name = "a.cu"}, EntrySpec{.sm = 120}});
  const InspectReport report = Inspected(image::AsText(bytes));
  const auto& entries = report.containers[0].entries;
  REQUIRE(entries.size() == 4);
  CHECK(entries[2].selected);
  CHECK_FALSE(entries[3].selected);
  CHECK(report.note.empty());
  const std::string text = ReportText(report, {});
  CHECK(text.find("machine code  sm_80") != std::string::npos);
  CHECK(text.find("*  PTX 9.0       sm_90") != std::string::npos);
  CHECK(text.find("a.cu") != std::string::npos);
}

TEST_CASE("InspectFile_PtxInStringsOfAProgram_IsFound") {
  const std::string program(image::AsText(image::testing::MakeElf(2, 62, {})));
  const std::string one =
      "// BEGIN PREAMBLE\n\t.version\t8.0\n\t.target sm_70\n\t.address_size 64\n.visible .entry one() { ret; }\n";
  const std::string two = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry two() { ret; }\n";
  const std::string none = "the option .version tells the .target";
  const InspectReport report = Inspected(program + '\0' + one + '\0' + none + '\0' + two);
  REQUIRE(report.containers.size() == 2);
  CHECK(report.containers[0].section == "strings");
  REQUIRE(report.containers[0].kernels.size() == 1);
  CHECK(report.containers[0].kernels[0].name == "one");
  CHECK(report.containers[1].kernels[0].name == "two");
  CHECK(report.note.empty());
  CHECK(Inspected(program + '\0' + none).containers.empty());
}

TEST_CASE("BriefText_SumsUpWithoutReading") {
  const TemporaryFile file(kPtx);
  const auto report = InspectFile(file.path(), std::nullopt, InspectDepth::kEntries);
  REQUIRE(report.ok());
  CHECK(report->containers[0].kernels.empty());
  const std::string text = BriefText(*report);
  CHECK(text.find("1 container") != std::string::npos);
  CHECK(text.find("PTX 8.0") != std::string::npos);
  CHECK(text.find("sm_90") != std::string::npos);
}

TEST_CASE("InspectFile_MachineCodeOnly_SaysSo") {
  const auto bytes = image::testing::MakeContainer({image::testing::EntrySpec{.kind = 2, .sm = 80, .payload = "x"}});
  CHECK(Inspected(image::AsText(bytes)).note.find("machine code for sm_80 but no PTX") != std::string::npos);
}

TEST_CASE("InspectFile_NeedsANewerDevice_IsReadForThatOne") {
  const auto bytes = image::testing::MakeContainer({image::testing::EntrySpec{.sm = 120}});
  const InspectReport report = Inspected(image::AsText(bytes));
  CHECK(report.device == ComputeCapability{12, 0});
  CHECK(report.containers[0].entries[0].selected);
}

/// A cubin of one kernel `k` for an architecture, with these words.
std::string CubinOf(unsigned sm, const std::vector<std::array<std::uint64_t, 2>>& words) {
  image::testing::Buffer symbols, names, code;
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  symbol.st_other = 0x10;  // a kernel
  image::testing::Append(symbols, symbol);
  for (const char c : {'\0', 'k', '\0'}) image::testing::Append(names, c);
  for (const auto& word : words) image::testing::Append(code, word);
  const auto elf =
      image::testing::MakeElf(ET_EXEC, 190, {{".symtab", symbols}, {".strtab", names}, {".text.k", code}}, sm << 8, 8);
  return {reinterpret_cast<const char*>(elf.data()), elf.size()};
}

TEST_CASE("MachineCode_KernelOfACubin_IsListedWithControlBitsAndUnknownWords") {
  const TemporaryFile file(
      CubinOf(80, {{0x0000000000007919, 0x000e2a0000002100}, {0x1234567890abcdef, 0x0000000000000000}}));
  const auto text = MachineCodeText(file.path(), "k", std::nullopt);
  REQUIRE(text.ok());
  CHECK(*text ==
        "k, sm_80, 2 instructions, 1 unknown\n"
        "    not sliced: the entries of the table of symbols have another size\n"
        "    /*0000*/  B------ W0 R- - S05  S2R R0, SR_TID.X ;\n"
        "    /*0010*/  B------ W0 R0 Y S00  unknown 0x00000000000000001234567890abcdef\n");
  CHECK(MachineCodeText(file.path(), "k", ComputeCapability{8, 0}).ok());
}

TEST_CASE("MachineCode_Kernels_SayWhetherTheyGoInSlices") {
  const std::string file = "tests/rewriter/machine/slices.sm_80.cubin";
  const auto text = MachineCodeText(file, "AllAxes", std::nullopt);
  REQUIRE(text.ok());
  CHECK(text->find("\n    in slices: 3 reads of %ctaid and 3 of the grid's size become others, 8 registers\n") !=
        std::string::npos);
  const auto whole = MachineCodeText(file, "GridId", std::nullopt);
  REQUIRE(whole.ok());
  CHECK(whole->find("\n    not sliced: it reads %gridid (at 0x30: MOV R4, c[0x0][0x30])\n") != std::string::npos);
}

TEST_CASE("MachineCode_NothingOfThatNameOrArchitecture_IsAnErrorByName") {
  const TemporaryFile file(CubinOf(80, {}));
  CHECK(MachineCodeText(file.path(), "other", std::nullopt).error().message.find("name contains 'other'") !=
        std::string::npos);
  CHECK(MachineCodeText(file.path(), "k", ComputeCapability{9, 0}).error().message.find("no machine code of sm_90") ==
        0);
}

TEST_CASE("MachineCode_ArchitectureWithoutRows_IsNamed") {
  const TemporaryFile file(CubinOf(100, {{0x0000000000007919, 0x000e2a0000002100}}));
  const auto text = MachineCodeText(file.path(), "k", std::nullopt);
  REQUIRE(text.ok());
  CHECK(*text == "k, sm_100, 1 instructions: the table of machine code has no rows for sm_100\n");
}

}  // namespace
}  // namespace gridloom::launcher
