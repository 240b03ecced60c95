// gridloom demo: runs a sample that comes along, an ordinary CUDA program with PTX, as `gridloom run --summary` does.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "rewriter/support/suggest.h"
#include "rewriter/support/terminal.h"

namespace gridloom::launcher {
namespace {

struct Sample {
  std::string_view name, summary;
};
constexpr Sample kSamples[] = {
    {"matmul", "a product of two matrices, through tiles in shared memory"},
    {"vectoradd", "a sum of two vectors"},
    {"reduce", "a sum over a vector, with barriers and exchanges between lanes"},
    {"histogram", "counts of bytes, with atomics"},
    {"daxpy", "a x + y in double precision"},
    {"collatz", "how many steps numbers take to 1: threads that part ways"},
};

std::vector<std::string_view> Names() {
  std::vector<std::string_view> names;
  for (const Sample& sample : kSamples) names.push_back(sample.name);
  return names;
}

class Demo final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("sample", sample_, "the sample; default: " + sample_)->type_name("");
    app.add_flag("--list", list_, "list the samples");
  }

  int Run() override {
    if (list_) {
      for (const Sample& sample : kSamples)
        std::printf("%-10s %s\n", std::string(sample.name).c_str(), std::string(sample.summary).c_str());
      return kExitOk;
    }
    const std::vector<std::string_view> names = Names();
    if (std::ranges::find(names, sample_) == names.end())
      return Fail("there is no sample '" + sample_ + "'" + DidYouMean(sample_, names) +
                  "\n  `gridloom demo --list` lists them");
    const auto program = FindSample(sample_);
    if (!program)
      return Fail("the sample '" + sample_ + "' is not there: " + "`scripts/build driver_" + sample_ +
                  "` builds it, and packages bring it along");
    return Start(*program);
  }

 private:
  /// In place of this process.
  static int Start(const std::filesystem::path& program) {
    std::printf(
        "The sample is a CUDA driver API program; it opens libcuda.so.1 like any other:\n"
        "  $ gridloom run --summary -- %s\n\n",
        Quoted(program.string()).c_str());
    std::fflush(stdout);
    const std::string tool = ToolDirectory() / "gridloom";
    const std::string path = program;
    const std::array<const char*, 6> arguments = {"gridloom", "run", "--summary", "--", path.c_str(), nullptr};
    execv(tool.c_str(), const_cast<char* const*>(arguments.data()));
    return Fail("cannot start '" + tool + "': " + std::strerror(errno));
  }

  std::string sample_ = "matmul";
  bool list_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDemo() { return std::make_unique<Demo>(); }

}  // namespace gridloom::launcher
