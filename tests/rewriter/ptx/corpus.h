// The committed PTX corpus, tests/data/ptx.
#pragma once

#include <string>
#include <vector>

namespace gridloom::ptx::testing {

struct CorpusFile {
  std::string path;
  std::string text;
};

/// Every .ptx file below tests/data/ptx, sorted by path.
std::vector<CorpusFile> LoadCorpus();

}  // namespace gridloom::ptx::testing
