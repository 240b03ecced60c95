// The tool as a person uses it: started as a program, in an installed tree with a stand-in for the driver shim.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace gridloom::launcher {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = 0;   ///< 128 + signal when a signal ended it
  std::string output;  ///< stdout and stderr
};

/// An installed tree in a folder that vanishes with the test.
class Installation {
 public:
  Installation() : root_("/tmp/gridloom_tool_" + std::to_string(getpid())) {
    const fs::path tests = fs::read_symlink("/proc/self/exe").parent_path();
    fs::create_directories(root_ / "bin");
    fs::create_directories(root_ / "lib/gridloom");
    fs::create_directories(root_ / "share/gridloom");
    fs::copy_file(tests / "../gridloom", root_ / "bin/gridloom", fs::copy_options::overwrite_existing);
    fs::copy_file(tests / "libgl_fake_shim.so", Shim(), fs::copy_options::overwrite_existing);
    fs::create_symlink("libgridloom.so", root_ / "lib/gridloom/libcuda.so.1");
    fs::copy("configs/devices", root_ / "share/gridloom/devices", fs::copy_options::recursive);
  }
  ~Installation() { fs::remove_all(root_); }

  fs::path root() const { return root_; }
  fs::path Shim() const { return root_ / "lib/gridloom/libgridloom.so"; }

  /// Runs `gridloom ARGUMENTS` through a shell.
  Outcome Run(const std::string& arguments) const {
    const std::string command = "cd " + root_.string() + " && exec ./bin/gridloom " + arguments + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    Outcome outcome;
    for (char buffer[4096]; std::fgets(buffer, sizeof buffer, pipe) != nullptr;) outcome.output += buffer;
    const int status = pclose(pipe);
    outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return outcome;
  }

 private:
  fs::path root_;
};

inline bool Has(const Outcome& outcome, std::string_view text) {
  return outcome.output.find(text) != std::string::npos;
}

}  // namespace gridloom::launcher
