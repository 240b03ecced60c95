// The tool as a person uses it: started as a program, in an installed tree with a stand-in for the driver shim.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/interpose/launcher/installation.h"

namespace gridloom::launcher {
namespace {

TEST_CASE("Run_KeepsTheProgramsExitCodeAndSignals") {
  const Installation tree;
  CHECK(tree.Run("run -- sh -c 'exit 42'").exit_code == 42);
  CHECK(tree.Run("run true").exit_code == 0);
  CHECK(tree.Run("run -- sh -c 'kill -TERM $$'").exit_code == 128 + SIGTERM);
}

TEST_CASE("Run_PreloadsTheShimAndPassesOptionsOn") {
  const Installation tree;
  const Outcome outcome = tree.Run("run --device a100 --memcheck --log debug -- env");
  CHECK(outcome.exit_code == 0);
  CHECK(Has(outcome, "LD_PRELOAD=" + fs::canonical(tree.Shim()).string()));
  CHECK(Has(outcome, "LD_LIBRARY_PATH=" + (fs::canonical(tree.root()) / "lib/gridloom").string()));
  CHECK(Has(outcome, "GRIDLOOM_DEVICE=a100\n"));
  CHECK(Has(outcome, "GRIDLOOM_MEMCHECK=1\n"));
  CHECK(Has(outcome, "GRIDLOOM_LOG=debug\n"));
  setenv("LD_PRELOAD", "libm.so.6", 1);  // what the user preloads sees the program's calls first
  CHECK(Has(tree.Run("run -- env"), "LD_PRELOAD=libm.so.6:" + fs::canonical(tree.Shim()).string() + "\n"));
  unsetenv("LD_PRELOAD");
  const Outcome loaded = tree.Run("run -- grep -c libgridloom.so /proc/self/maps");
  CHECK(loaded.exit_code == 0);
}

TEST_CASE("Run_OwnFailures_Are125To127WithOneSentence") {
  const Installation tree;
  Outcome outcome = tree.Run("run -- ./nosuch");
  CHECK(outcome.exit_code == 127);
  CHECK(outcome.output == "gridloom: cannot find program './nosuch'\n");
  std::ofstream(tree.root() / "someprogram") << "#!/no/such/interpreter\n";
  outcome = tree.Run("run someprogram");
  CHECK(outcome.exit_code == 127);
  CHECK(Has(outcome, "did you mean './someprogram'?"));
  outcome = tree.Run("run ./someprogram");
  CHECK(outcome.exit_code == 126);
  CHECK(Has(outcome, "`chmod +x ./someprogram` makes it so"));
  fs::permissions(tree.root() / "someprogram", fs::perms::owner_all);
  outcome = tree.Run("run ./someprogram");
  CHECK(outcome.exit_code == 127);
  CHECK(Has(outcome, "interpreter"));
  CHECK(tree.Run("run ./lib").exit_code == 126);
  CHECK(tree.Run("run").exit_code == 125);
  CHECK(tree.Run("run --device h2000 -- true").exit_code == 125);
  outcome = tree.Run("run --ranges interval -- true");
  CHECK(outcome.exit_code == 125);
  CHECK(outcome.output ==
        "gridloom: --ranges is for a trace, or for timing on a device that goes by them: add --trace, --policy "
        "crcs-ppcs or "
        "--hardware crcs\n");
  for (const std::string other : {"--check-ranges interval", "--memcheck", "--slice 4"}) {
    outcome = tree.Run("run --trace t --ranges interval " + other + " -- true");
    CHECK(outcome.exit_code == 125);
    CHECK(outcome.output == "gridloom: --ranges and " + other.substr(0, other.find(' ')) +
                                " exclude each other: leave one of them out\n");
  }
  CHECK(tree.Run("run --trace t --ranges strided --slice 0 -- true").exit_code == 0);
  fs::remove(tree.Shim());
  outcome = tree.Run("run true");
  CHECK(outcome.exit_code == 125);
  CHECK(Has(outcome, "cannot find libgridloom.so"));
}

TEST_CASE("Run_DryRun_PrintsACommandLineThatDoesTheSame") {
  const Installation tree;
  const Outcome outcome = tree.Run("run --dry-run -q -- sh -c 'echo $GRIDLOOM_LOG'");
  CHECK(outcome.exit_code == 0);
  REQUIRE(outcome.output.ends_with("\n"));
  FILE* pipe = popen(outcome.output.c_str(), "r");
  char line[64] = "";
  REQUIRE(std::fgets(line, sizeof line, pipe) != nullptr);
  pclose(pipe);
  CHECK(std::string(line) == "error\n");
}

TEST_CASE("Tool_Usage") {
  const Installation tree;
  CHECK(tree.Run("").exit_code == 125);
  CHECK(tree.Run("--help").exit_code == 0);
  CHECK(Has(tree.Run("--version"), "gridloom "));
  for (const std::string command : {"run", "inspect", "devices", "doctor"}) {
    const Outcome help = tree.Run(command + " --help");
    CHECK(help.exit_code == 0);
    CHECK(Has(help, "usage: gridloom " + command));
    CHECK(Has(help, "examples:"));
  }
  CHECK(tree.Run("inspekt x").output == "gridloom: unknown command 'inspekt'; did you mean 'inspect'?\n");
  CHECK(Has(tree.Run("run --devise a100 -- true"), "unknown option '--devise'; did you mean '--device'?"));
}

TEST_CASE("Devices_ListsThemAndShowsOne") {
  const Installation tree;
  CHECK(Has(tree.Run("devices"), "Hopper data-centre GPU"));
  CHECK(Has(tree.Run("devices h200"), "sm.max_threads"));
  const auto list = nlohmann::json::parse(tree.Run("devices --json").output);
  CHECK(list.size() >= 15);
  const auto one = nlohmann::json::parse(tree.Run("devices --json h200").output);
  CHECK(one["sm"]["count"] == 132);
  CHECK(one["memory"]["ecc"] == true);
  CHECK(tree.Run("devices h2000").exit_code == 125);
}

TEST_CASE("Inspect_OfAProgramWithoutDeviceCode_SaysSo") {
  const Installation tree;
  CHECK(Has(tree.Run("inspect /bin/true"), "ELF executable\nnote: no device code"));
  CHECK(tree.Run("inspect nosuch").exit_code == 125);
  CHECK(tree.Run("inspect").exit_code == 125);
}

TEST_CASE("Inspect_OfOurselves_FindsTheKernelsThatPassesAdd") {
  const Installation tree;
  const Outcome outcome = tree.Run("inspect bin/gridloom");
  CHECK(Has(outcome, "gl_master\n"));
  CHECK(Has(outcome, "gl_super\n"));
}

TEST_CASE("Doctor_NamesWhatIsMissingAndWhatMendsIt") {
  const Installation tree;
  const Outcome outcome = tree.Run("doctor");
  CHECK(outcome.exit_code == 1);  // the stand-in tree has no compiler library
  CHECK(Has(outcome, "cannot find libgridloom-compiler.so"));
  CHECK(Has(outcome, "to mend it: scripts/build"));
  const auto checks = nlohmann::json::parse(tree.Run("doctor --json").output);
  CHECK(checks.size() >= 8);
  CHECK(checks[0]["check"] == "processor");
}

TEST_CASE("Rewrite_Ptx_WritesShowsAndNamesRefusals") {
  const Installation tree;
  std::ofstream(tree.root() / "k.ptx")
      << ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 flag;\n"
         ".entry sliced()\n{\n.reg .u32 %r;\nmov.u32 %r, %ctaid.x;\nret;\n}\n"
         ".entry waits()\n{\n.reg .u32 %r;\n.reg .pred %p;\nL:\nld.volatile.global.u32 %r, [flag];\n"
         "setp.eq.u32 %p, %r, 0;\n@%p bra L;\nret;\n}\n";
  const Outcome text = tree.Run("rewrite k.ptx --pass slice -o out.ptx");
  CHECK(text.exit_code == 0);
  CHECK(Has(text, "first_x grid_x reciprocal_x shift_x"));
  CHECK(Has(text, "slice: a loop may wait for what another CTA writes (ld.volatile.global.u32) (line 16)"));
  CHECK(Has(tree.Run("inspect --details out.ptx"), "sliced_gl_first_x"));
  const Outcome diff = tree.Run("rewrite k.ptx --pass slice --diff");
  CHECK(Has(diff, "-\tmov.u32 %r, %ctaid.x;"));
  CHECK(Has(diff, "+\tsub.u32 %r, %gl_n, %gl_q;"));
  const auto json = nlohmann::json::parse(tree.Run("rewrite k.ptx --pass slice --json").output);
  const auto& kernels = json["modules"][0]["kernels"];
  CHECK(kernels[0]["status"] == "changed");
  CHECK(kernels[0]["parameters"][0]["role"] == "first_x");
  CHECK(kernels[1]["status"] == "refused");
  CHECK(kernels[1]["line"] == 16);
  const auto inspected = nlohmann::json::parse(tree.Run("inspect --json k.ptx").output);
  CHECK(inspected["containers"][0]["kernels"][0]["passes"]["slice"]["applies"] == true);
  CHECK(inspected["containers"][0]["kernels"][1]["passes"]["slice"]["applies"] == false);
}

TEST_CASE("Rewrite_MachineCode_GetsSlicedForms") {
  const Installation tree;
  std::filesystem::copy_file("tests/rewriter/machine/slices.sm_80.cubin", tree.root() / "k.cubin");
  std::filesystem::copy_file("tests/rewriter/machine/slices.sm_80.cubin", tree.root() / "libcublas.so.12");
  const Outcome text = tree.Run("rewrite k.cubin --slice --slice-machine-code -o out.cubin");
  CHECK(text.exit_code == 0);
  CHECK(Has(text, "_Z5AxisXPfi$gridloom_slice"));
  CHECK(Has(text, "slice: it synchronises the whole grid"));
  CHECK(Has(tree.Run("inspect --machine-code AxisX out.cubin"), "_Z5AxisXPfi$gridloom_slice"));
  const auto json = nlohmann::json::parse(tree.Run("rewrite out.cubin --slice --slice-machine-code --json").output);
  CHECK(json["machine_code"][0]["kernels"].size() == 17);
  const Outcome library = tree.Run("rewrite libcublas.so.12 --slice --slice-machine-code -o same.so");
  CHECK(library.exit_code == 0);
  CHECK(Has(library, "NVIDIA's libraries stays as it is (--slice-libraries)"));
  CHECK(std::filesystem::file_size(tree.root() / "same.so") == std::filesystem::file_size(tree.root() / "k.cubin"));
  CHECK(Has(tree.Run("rewrite libcublas.so.12 --slice --slice-machine-code --slice-libraries"), "gridloom_slice"));
  CHECK(tree.Run("rewrite k.cubin --slice-machine-code --pass slice").exit_code == 125);
}

TEST_CASE("Inspect_GlobalMemory_ShowsExpressionsAndReasons") {
  const Installation tree;
  std::ofstream(tree.root() / "k.ptx")
      << ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".entry k(.param .u64 A, .param .u64 B)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<8>;\n"
         "ld.param.u64 %rd1, [A];\nld.param.u64 %rd2, [B];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"
         "mad.lo.u32 %r3, %r1, 256, %r2;\nmul.wide.u32 %rd3, %r3, 4;\nadd.u64 %rd4, %rd1, %rd3;\n"
         "ld.global.u32 %r4, [%rd4];\nmul.wide.u32 %rd5, %r4, 4;\nadd.u64 %rd6, %rd2, %rd5;\n"
         "st.global.u32 [%rd6], %r4;\nret;\n}\n";
  const Outcome text = tree.Run("inspect --details k.ptx");
  CHECK(Has(text, "A: read, contiguous\n        A[(ctaid.x*256 + tid.x)*4]"));
  CHECK(
      Has(text,
          "B: written, irregular\n        an address depends on a value that is loaded from global memory (line 15)"));
  const auto json = nlohmann::json::parse(tree.Run("inspect --json k.ptx").output);
  const auto& kernel = json["containers"][0]["kernels"][0];
  CHECK(kernel["passes"]["profile"]["applies"] == false);
  CHECK(kernel["accesses"][0]["expressions"][0] == "A[(ctaid.x*256 + tid.x)*4]");
  CHECK(kernel["accesses"][1]["pattern"] == "irregular");
}

TEST_CASE("Rewrite_UnknownPassOrFile_FailsAndSaysWhy") {
  const Installation tree;
  const Outcome pass = tree.Run("rewrite k.ptx --pass slcie");
  CHECK(pass.exit_code == 125);
  CHECK(Has(pass, "no pass is named 'slcie'"));
  const Outcome file = tree.Run("rewrite none.ptx --pass slice");
  CHECK(file.exit_code == 125);
  CHECK(Has(file, "none.ptx"));
  CHECK(tree.Run("run --slice many -- true").exit_code == 125);
}

}  // namespace
}  // namespace gridloom::launcher
