#include "tests/rewriter/image/nvcc.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace gridloom::image::testing {
namespace {

namespace fs = std::filesystem;

/// Folder of nvcc: on the PATH, else where NVIDIA's packages put it.
std::string FindTools() {
  const char* variable = std::getenv("PATH");
  std::istringstream path(std::string(variable != nullptr ? variable : "") + ":/usr/local/cuda/bin");
  for (std::string folder; std::getline(path, folder, ':');) {
    if (!folder.empty() && fs::exists(folder + "/nvcc")) return folder + "/";
  }
  return "";
}

}  // namespace

Nvcc::Nvcc(const std::vector<SourceFile>& sources)
    : tools_(FindTools()), directory_("/tmp/gridloom_nvcc_" + std::to_string(getpid())) {
  fs::create_directories(directory_);
  for (const SourceFile& source : sources) {
    sources_.push_back((directory_ / source.name).string());
    Write(source);
  }
}

Nvcc::~Nvcc() { fs::remove_all(directory_); }

void Nvcc::Write(const SourceFile& file) const { std::ofstream(directory_ / file.name) << file.text; }

std::string Nvcc::Run(const std::string& command) const {
  const fs::path log = directory_ / "log";
  if (std::system((command + " > " + log.string() + " 2>&1").c_str()) == 0) return "";
  std::ifstream file(log);
  return command + "\n" + std::string((std::istreambuf_iterator<char>(file)), {});
}

fs::path Nvcc::Build(const std::string& options) const {
  const fs::path out = directory_ / "out";
  std::string command = tools_ + "nvcc " + options + " -o " + out.string();
  for (const std::string& source : sources_) command += " " + source;
  REQUIRE(Run(command) == "");
  return out;
}

std::string Nvcc::Assemble(const std::string& ptx) const {
  const fs::path file = directory_ / "linked.ptx";
  std::ofstream(file) << ptx;
  return Run(tools_ + "ptxas -arch=sm_90 " + file.string() + " -o " + (directory_ / "linked.cubin").string());
}

std::string Nvcc::Link(const std::string& cubin, const std::string& arch) const {
  Write({"part.cubin", cubin});
  return Run(tools_ + "nvlink -arch=" + arch + " " + (directory_ / "part.cubin").string() + " -o " +
             (directory_ / "whole.cubin").string());
}

}  // namespace gridloom::image::testing
