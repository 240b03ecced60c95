#include "tests/rewriter/ptx/corpus.h"

#include <algorithm>
#include <filesystem>

#include "tests/golden.h"

namespace gridloom::ptx::testing {

std::vector<CorpusFile> LoadCorpus() {
  std::vector<CorpusFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/data/ptx")) {
    if (entry.path().extension() != ".ptx") continue;
    files.push_back({entry.path().string(), gridloom::testing::ReadFile(entry.path().string())});
  }
  std::ranges::sort(files, {}, &CorpusFile::path);
  return files;
}

}  // namespace gridloom::ptx::testing
