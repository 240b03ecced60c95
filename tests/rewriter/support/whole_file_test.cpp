#include "rewriter/support/whole_file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using gridloom::ReadWholeFile;

struct Folder {
  Folder() {
    char name[] = "/tmp/gridloom-files-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

TEST_CASE("ReadWholeFile_OfAFile_GivesAllOfIt") {
  const Folder folder;
  const std::string text(200'000, 'x');
  std::ofstream(folder.path + "/file") << text;
  const auto read = ReadWholeFile(folder.path + "/file");
  REQUIRE(read.ok());
  CHECK(*read == text);
}

TEST_CASE("ReadWholeFile_OfWhatIsNoFile_IsAnErrorAtOnce") {
  const Folder folder;
  REQUIRE(mkfifo((folder.path + "/fifo").c_str(), 0600) == 0);
  for (const std::string& path : {folder.path + "/fifo", folder.path, std::string("/dev/zero")}) {
    const auto read = ReadWholeFile(path);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().message.find(path) != std::string::npos);
  }
}

}  // namespace
