// A folder that lives as long as a command.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace gridloom::launcher {

class TemporaryFolder {
 public:
  /// `purpose`: part of its name.
  explicit TemporaryFolder(const std::string& purpose) {
    std::error_code error;
    std::string name = std::filesystem::temp_directory_path(error) / ("gridloom-" + purpose + "-XXXXXX");
    if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }  ///< empty: there is none

 private:
  std::filesystem::path path_;
};

}  // namespace gridloom::launcher
