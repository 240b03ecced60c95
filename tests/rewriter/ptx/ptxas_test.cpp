// Original and printed text must assemble to the same machine code. Needs ptxas; skipped aloud without it.
#include <elf.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/golden.h"
#include "tests/rewriter/ptx/corpus.h"

using namespace gridloom;
using namespace gridloom::ptx;
using gridloom::testing::ReadFile;

namespace {

std::string FindPtxas() {
  for (const char* path : {"ptxas", "/usr/local/cuda/bin/ptxas"}) {
    if (std::system((std::string(path) + " --version >/dev/null 2>&1").c_str()) == 0) return path;
  }
  return {};
}

// A folder of our own that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "gridloom-ptxas-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Code, constants and initial data of a cubin by section name. Symbol and string tables and debug information may
// differ: they mention line numbers of the PTX text.
std::map<std::string, std::string> LoadedSections(const std::string& cubin) {
  std::map<std::string, std::string> sections;
  Elf64_Ehdr header;
  REQUIRE(cubin.size() > sizeof header);
  std::memcpy(&header, cubin.data(), sizeof header);
  const auto section = [&](std::size_t i) {
    Elf64_Shdr out;
    REQUIRE(header.e_shoff + (i + 1) * sizeof out <= cubin.size());
    std::memcpy(&out, cubin.data() + header.e_shoff + i * sizeof out, sizeof out);
    return out;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (std::size_t i = 1; i < header.e_shnum; ++i) {
    const Elf64_Shdr entry = section(i);
    const std::string name = cubin.data() + names.sh_offset + entry.sh_name;
    const bool loaded = name.starts_with(".text") || name.starts_with(".nv.global") ||
                        name.starts_with(".nv.constant") || name.starts_with(".nv.shared") ||
                        name.starts_with(".nv.info.");
    if (!loaded) continue;
    std::string& content = sections[name];
    content = std::to_string(entry.sh_size) + ':';
    if (entry.sh_type != SHT_NOBITS) content += cubin.substr(entry.sh_offset, entry.sh_size);
  }
  return sections;
}

struct Assembler {
  std::string ptxas;
  TemporaryFolder folder;

  // Assembles two texts at once for one target. The path given to ptxas is the same for both: it ends up in the cubin.
  void CheckSameCode(const std::string& original, const std::string& printed, const std::string& arch) {
    Write("a", original);
    Write("b", printed);
    const std::string command = "run() { cd '" + folder / "" + "'$1 && " + ptxas + " -arch=" + arch +
                                " in.ptx -o out.cubin >log 2>&1; }; run a & run b; wait";
    CHECK(std::system(command.c_str()) == 0);
    INFO("printed text: " << ReadFile(folder / "b/log") << "original: " << ReadFile(folder / "a/log"));
    REQUIRE(std::filesystem::exists(folder / "a/out.cubin"));
    REQUIRE(std::filesystem::exists(folder / "b/out.cubin"));
    const auto a = LoadedSections(ReadFile(folder / "a/out.cubin"));
    const auto b = LoadedSections(ReadFile(folder / "b/out.cubin"));
    CHECK(!a.empty());
    CHECK(a.size() == b.size());
    for (const auto& [name, content] : a) {
      INFO("section " << name);
      const auto other = b.find(name);
      CHECK((other != b.end() && other->second == content));
    }
  }

 private:
  void Write(const std::string& side, const std::string& text) {
    std::filesystem::remove_all(folder / side);
    std::filesystem::create_directory(folder / side);
    std::ofstream(folder / (side + "/in.ptx"), std::ios::binary) << text;
  }
};

// The targets to assemble a module for: every later one too, unless the module is for one architecture only (sm_90a).
std::vector<std::string> ArchsFor(const Module& module) {
  const std::string own(module.targets.at(0));
  if (own.back() < '0' || own.back() > '9') return {own};
  std::vector<std::string> archs;
  for (const unsigned sm : {75u, 80u, 90u, 100u, 120u}) {
    if (sm >= module.sm()) archs.push_back("sm_" + std::to_string(sm));
  }
  return archs;
}

}  // namespace

TEST_CASE("Corpus_PrintedText_AssemblesToTheSameCode") {
  Assembler assembler{FindPtxas(), {}};
  if (assembler.ptxas.empty()) {
    std::printf("ALL TESTS SKIPPED: ptxas is not installed\n");
    return;
  }
  int compared = 0;
  for (const auto& file : ptx::testing::LoadCorpus()) {
    if (file.text.starts_with("// not for ptxas")) continue;
    INFO(file.path);
    DiagnosticSink sink;
    const auto module = ParseModule(file.text, sink);
    const std::string printed = PrintModule(*module);
    for (const std::string& arch : ArchsFor(*module)) {
      INFO("for " << arch);
      assembler.CheckSameCode(file.text, printed, arch);
      ++compared;
    }
  }
  std::printf("%d texts assembled to the same machine code\n", compared);
}
