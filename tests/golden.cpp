#include "tests/golden.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace gridloom::testing {
namespace {

constexpr std::string_view kMarker = "//--- ";

struct GoldenFile {
  std::string input;
  GoldenSections sections;
};

GoldenFile Split(const std::string& text) {
  GoldenFile file;
  std::string* current = &file.input;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kMarker)) {
      current = &file.sections[line.substr(kMarker.size())];
    } else {
      *current += line + '\n';
    }
  }
  return file;
}

void Rewrite(const std::filesystem::path& path, const std::string& input, const GoldenSections& sections) {
  std::ofstream out(path, std::ios::binary);
  out << input;
  for (const auto& [name, text] : sections) out << kMarker << name << '\n' << text;
  REQUIRE(out.good());
}

}  // namespace

bool& RebaseGoldens() {
  static bool rebase = false;
  return rebase;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  INFO("reading " << path);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void CheckGoldenFolder(const std::string& folder, const std::string& extension,
                       const std::function<GoldenSections(const std::string&, const std::string&)>& produce) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE(!paths.empty());
  for (const auto& path : paths) {
    const GoldenFile file = Split(ReadFile(path.string()));
    const GoldenSections produced = produce(path.filename().string(), file.input);
    if (RebaseGoldens()) {
      Rewrite(path, file.input, produced);
      continue;
    }
    INFO("golden file " << path.string() << " (rewrite with --rebase)");
    for (const auto& [name, text] : produced) {
      INFO("section " << name);
      const auto expected = file.sections.find(name);
      CHECK((expected == file.sections.end() ? "" : expected->second) == text);
    }
    CHECK(file.sections.size() == produced.size());
  }
}

}  // namespace gridloom::testing
