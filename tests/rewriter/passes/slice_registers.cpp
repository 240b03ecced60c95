// slice_registers FILE…: how many registers ptxas gives each kernel, before and after `slice`. Prints a table of the
// kernels that need more or fewer and a summary; fails when fewer than 90 % are unchanged, or one needs more than 4
// more (Kernelet, section 4.1: "register usage by slicing keeps unchanged in most of our test cases"). A FILE is PTX, a
// program or a library; of those, all PTX inside. Answers 77, as a skipped test does, without ptxas.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "rewriter/image/image_set.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

using namespace gridloom;

namespace {

constexpr int kSkipped = 77;
constexpr int kMostMore = 4;

std::string FindPtxas() {
  for (const char* path : {"ptxas", "/usr/local/cuda/bin/ptxas"}) {
    if (std::system((std::string(path) + " --version >/dev/null 2>&1").c_str()) == 0) return path;
  }
  return {};
}

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Kernel -> registers; empty when ptxas refuses the text.
std::map<std::string, int> Registers(const std::string& ptxas, const std::string& folder, const std::string& text,
                                     const std::string& arch) {
  std::ofstream(folder + "/in.ptx", std::ios::binary) << text;
  const std::string command =
      ptxas + " -v -arch=" + arch + " " + folder + "/in.ptx -o " + folder + "/out.cubin >" + folder + "/log 2>&1";
  std::map<std::string, int> registers;
  if (std::system(command.c_str()) != 0) return registers;
  std::ifstream log(folder + "/log");
  const std::regex entry("Compiling entry function '([^']*)'"), used("Used ([0-9]+) registers");
  std::string kernel;
  for (std::string line; std::getline(log, line);) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) kernel = match[1];
    else if (!kernel.empty() && std::regex_search(line, match, used))
      registers[std::exchange(kernel, {})] = std::stoi(match[1]);
  }
  return registers;
}

/// What ptxas can assemble for: the module's own target, 7.5 when that is older.
std::string ArchOf(const ptx::Module& module) {
  const auto it =
      std::ranges::find_if(module.targets, [](std::string_view target) { return target.starts_with("sm_"); });
  return module.sm() < 75 || it == module.targets.end() ? "sm_75" : std::string(*it);
}

struct Tally {
  unsigned files = 0, not_assembled = 0, kernels = 0, refused = 0, unread = 0, same = 0, fewer = 0;
  std::map<int, unsigned> more;
  std::set<std::size_t> seen;
};

void Measure(const std::string& ptxas, const std::string& folder, const std::string& name, const std::string& text,
             Tally& tally) {
  if (!tally.seen.insert(std::hash<std::string>()(text)).second) return;
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(text, sink);
  if (sink.has_errors()) return;
  const auto rewritten = passes::Run(*passes::Pipeline::Parse("slice"), *module);
  if (!rewritten.ok()) return;
  ++tally.files;
  const auto before = Registers(ptxas, folder, text, ArchOf(*module));
  const auto after = Registers(ptxas, folder, ptx::PrintModule(*rewritten->module), ArchOf(*module));
  if (before.empty() || after.size() != before.size()) {
    ++tally.not_assembled;
    if (!before.empty())
      std::printf("%s: sliced PTX does not assemble:\n%s", name.c_str(), ReadWhole(folder + "/log").c_str());
    return;
  }
  for (const passes::KernelOutcome& kernel : rewritten->kernels) {
    ++tally.kernels;
    tally.refused += kernel.status == passes::KernelStatus::kRefused;
    tally.unread += kernel.status == passes::KernelStatus::kUnchanged;
    if (kernel.status != passes::KernelStatus::kChanged) continue;
    const int was = before.at(kernel.kernel), is = after.at(kernel.kernel);
    if (was == is) ++tally.same;
    else if (is < was) ++tally.fewer;
    else ++tally.more[is - was];
    if (was != is)
      std::printf("%4d -> %3d  %+d  %s  %s\n", was, is, is - was, kernel.kernel.substr(0, 60).c_str(), name.c_str());
  }
}

int Report(const Tally& tally) {
  unsigned more = 0;
  int most = 0;
  for (const auto& [by, count] : tally.more) {
    more += count;
    most = std::max(most, by);
  }
  const unsigned changed = tally.same + tally.fewer + more;
  std::printf("%u modules (%u that ptxas does not take), %u kernels: %u refused, %u without reads, %u sliced\n",
              tally.files, tally.not_assembled, tally.kernels, tally.refused, tally.unread, changed);
  std::printf("registers: %u the same, %u fewer, %u more", tally.same, tally.fewer, more);
  for (const auto& [by, count] : tally.more) std::printf(", +%d: %u", by, count);
  const double unchanged = changed == 0 ? 0 : 100.0 * (tally.same + tally.fewer) / changed;
  std::printf("\n%.1f %% not more (at least 90 wanted), at most +%d (%d allowed)\n", unchanged, most, kMostMore);
  return changed != 0 && unchanged >= 90 && most <= kMostMore ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string ptxas = FindPtxas();
  if (ptxas.empty()) {
    std::puts("skipped: no ptxas");
    return kSkipped;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "gridloom-registers-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  Tally tally;
  for (int i = 1; i < argc; ++i) {
    const auto set = image::ReadImageFile(argv[i]);
    if (!set.ok()) {
      std::printf("%s\n", set.error().message.c_str());
      continue;
    }
    for (const image::Container& container : set->containers) {
      for (const image::Entry& entry : container.entries) {
        if (entry.kind != image::EntryKind::kPtx) continue;
        if (const auto text = entry.Read(); text.ok()) Measure(ptxas, folder, argv[i], *text, tally);
      }
    }
  }
  std::filesystem::remove_all(folder);
  return Report(tally);
}
