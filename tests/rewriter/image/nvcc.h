// Builds CUDA sources with nvcc where there is one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gridloom::image::testing {

struct SourceFile {
  std::string name;
  std::string text;
};

/// Sources in a folder of their own, which vanishes with this object.
class Nvcc {
 public:
  explicit Nvcc(const std::vector<SourceFile>& sources);
  ~Nvcc();
  Nvcc(const Nvcc&) = delete;
  Nvcc& operator=(const Nvcc&) = delete;

  /// Adds a file that the sources include.
  void Write(const SourceFile& file) const;
  bool present() const { return !tools_.empty(); }
  /// Builds all sources with these options into one file; the test fails when nvcc does.
  std::filesystem::path Build(const std::string& options) const;
  /// What ptxas says about a PTX text; empty when it assembles it.
  std::string Assemble(const std::string& ptx) const;
  /// What nvlink says about a relocatable cubin; empty when it links it.
  std::string Link(const std::string& cubin, const std::string& arch) const;

 private:
  std::string Run(const std::string& command) const;

  std::string tools_;  // folder of nvcc and ptxas, with its slash
  std::filesystem::path directory_;
  std::vector<std::string> sources_;
};

}  // namespace gridloom::image::testing
