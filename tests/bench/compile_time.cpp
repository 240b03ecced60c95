// compile_time: how long kernels of a PTX file take from PTX to object code, each in the processor time of the best of
// several runs; with --bytecode 1 to what the interpreter runs, with the bytes of a warp's frames. What loading LLVM
// takes (40 ms, once a process) is not in it.
//   build/compile_time --ptx FILE [--kernel NAME] [--block X] [--block-y Y] [--cpu x86-64-v3|x86-64] [--memcheck 1]
//   [--bytecode 1]
//                      [--runs N] [--ir FILE] [--object FILE] [--llvm "-time-passes"]
#include <llvm/IR/PassTimingInfo.h>
#include <llvm/Support/CommandLine.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/compiler.h"
#include "tests/bench/options.h"

namespace {

using namespace gridloom;

double CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void PassToLlvm(const std::string& options) {
  std::vector<std::string> words{"compile_time"};
  std::istringstream in(options);
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  llvm::cl::ParseCommandLineOptions(static_cast<int>(arguments.size()), arguments.data());
}

struct Best {
  exec::CompiledKernel kernel;
  double ms = std::numeric_limits<double>::max();
  std::size_t bytes = 0;  ///< of the object; of bytecode, what its functions' frames take of a warp's stack
};

/// `bytecode`: what the interpreter runs, in place of machine code.
Best Measure(const ptx::Module& module, const char* kernel, const exec::CompileOptions& options, bool bytecode,
             unsigned runs) {
  Best best;
  for (unsigned run = 0; run < std::max(1u, runs); ++run) {
    exec::InterpretedKernel interpreted;
    const double before = CpuMs();
    if (bytecode) exec::gridloom_interpret(&module, kernel, &options, &interpreted);
    else exec::gridloom_compile(&module, kernel, &options, &best.kernel);
    best.ms = std::min(best.ms, CpuMs() - before);
    if (bytecode) best.kernel.error = interpreted.error + interpreted.refuses;
    best.bytes = best.kernel.object.size();
    if (bytecode)
      for (const exec::ByteFunction& function : interpreted.code.functions) best.bytes += function.frame_bytes;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, only, llvm_options, ir_file, object_file;
  exec::CompileOptions options;
  options.guard_zones = true;
  unsigned block = 256, block_y = 1, runs = 3, memcheck = 0, bytecode = 0, fetch_ahead = 0,
           few_lanes = options.few_lanes;
  const bench::Option known[] = {{"--ptx", &file},           {"--kernel", &only},       {"--block", &block},
                                 {"--block-y", &block_y},    {"--cpu", &options.cpu},   {"--runs", &runs},
                                 {"--memcheck", &memcheck},  {"--bytecode", &bytecode}, {"--ir", &ir_file},
                                 {"--object", &object_file}, {"--llvm", &llvm_options}, {"--fetch-ahead", &fetch_ahead},
                                 {"--few-lanes", &few_lanes}};
  bench::ParseOptions(argc, argv, known);
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  DiagnosticSink sink;
  const std::unique_ptr<ptx::Module> module = ptx::ParseModule(text, sink);
  if (text.empty() || sink.has_errors()) {
    std::fprintf(stderr, "%s: %s\n", file.c_str(), text.empty() ? "nothing to read" : "has errors");
    return 1;
  }
  if (!llvm_options.empty()) PassToLlvm(llvm_options);
  options.block[0] = block;
  options.block[1] = block == 0 ? 0 : block_y;
  options.block[2] = block == 0 ? 0 : 1;
  options.memcheck = memcheck != 0;
  options.fetch_ahead = fetch_ahead != 0;
  options.few_lanes = static_cast<std::uint8_t>(few_lanes);
  options.keep_ir = !ir_file.empty();
  bool failed = false, any = false;
  for (const auto& function : module->functions) {
    if (!function.is_entry || !function.body || (!only.empty() && function.name != only)) continue;
    any = true;
    const std::string name(function.name);
    const Best best = Measure(*module, name.c_str(), options, bytecode != 0, runs);
    failed |= !best.kernel.error.empty();
    std::printf("%9.1f ms %8zu bytes  %s%s%s%s\n", best.ms, best.bytes, name.c_str(),
                best.kernel.gives_way ? ", gives way" : "", best.kernel.error.empty() ? "" : ": ",
                best.kernel.error.c_str());
    if (!ir_file.empty()) std::ofstream(ir_file) << best.kernel.ir;
    if (!object_file.empty())
      std::ofstream(object_file, std::ios::binary)
          .write(reinterpret_cast<const char*>(best.kernel.object.data()),
                 static_cast<std::streamsize>(best.kernel.object.size()));
  }
  if (!llvm_options.empty()) llvm::reportAndResetTimings();
  if (!any) std::fprintf(stderr, "%s: no such kernel\n", file.c_str());
  return failed || !any ? 1 : 0;
}
