// A small trace that is written by the test, and options that replay it.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/study/replay/options.h"
#include "sim/trace/trace_file.h"

namespace gridloom::study {

inline constexpr const char* kHostileName = "</script><script>alert(1)//,\"\xfe";

/// A folder that vanishes with the test, with a trace in it.
class ReplayFolder {
 public:
  ReplayFolder() {
    static int number = 0;
    root_ = std::filesystem::temp_directory_path() /
            ("gridloom_replay_" + std::to_string(getpid()) + "_" + std::to_string(number++));
    std::filesystem::create_directories(root_);
    WriteTrace("one.gltrace", 6);
  }
  ~ReplayFolder() { std::filesystem::remove_all(root_); }
  std::string Path(const std::string& name) const { return (root_ / name).string(); }
  std::string Read(const std::string& name) const {
    std::ifstream file(root_ / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(root_ / name) << text; }

  /// Two launches of CTAs of one warp that loads and adds.
  void WriteTrace(const std::string& name, std::uint64_t ctas) const {
    trace::KernelCode code;
    code.name = kHostileName;
    code.register_count = 2;
    trace::Instruction load;
    load.op = trace::OpClass::kMemory;
    load.space = trace::Space::kGlobal;
    load.width = 4;
    load.destinations = 1;
    trace::Instruction add;
    add.op = trace::OpClass::kInt;
    add.destinations = add.sources = 1;
    add.operands = 1;
    code.instructions = {load, add};
    code.operands = {1, 2, 1};
    code.blocks = {{0, 2}};
    trace::CtaTrace cta;
    cta.warps = {{0, 20, 0, 20}};
    for (std::uint64_t i = 0; i < 20; ++i) {
      cta.visits.push_back({0, ~0u});
      cta.accesses.push_back({4096 + i * 512, 4, ~0u});
    }
    const auto shared = std::make_shared<const trace::CtaTrace>(std::move(cta));
    auto writer = trace::TraceWriter::Create(Path(name), "test");
    REQUIRE(writer.ok());
    trace::LaunchInfo info;
    info.kernel = (*writer)->AddKernel(code);
    info.shape = {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 8, .shared_bytes = 0};
    info.grid[0] = static_cast<std::uint32_t>(ctas);
    info.block[0] = 32;
    for (int launch = 0; launch < 2; ++launch) {
      const auto out = (*writer)->BeginLaunch(info, code);
      for (std::uint64_t c = 0; c < ctas; ++c) out->Add(c, {shared, {}});
      out->End(0);
    }
    REQUIRE((*writer)->Close().ok());
  }

  ReplayOptions Options() const {
    ReplayOptions options;
    options.workloads = WorkloadsOf({Path("one.gltrace")}, false);
    options.devices = {"gtx480", "v100"};
    options.policies = {"serial", "leftover"};
    options.report = Path("report");
    options.command = "gridloom replay one.gltrace";
    options.quiet = true;
    return options;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace gridloom::study
