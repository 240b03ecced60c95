// What slicing does to cubins, alone or in programs and libraries.
//
//   machine_slice [--arch N] [--out FOLDER] FILE…   a line for each kernel: file, architecture, kernel, "sliced" with
//   its
//                                                   sites, or why not; then how many kernels there are and how much
//                                                   processor time one takes. --out is for files that are cubins.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/slice_cubin.h"
#include "tests/rewriter/machine/cubins_of.h"

using namespace gridloom;

namespace {

double ProcessorMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

class Slicing {
 public:
  std::string out{};

  void Take(const std::string& file, const std::string& bytes) {
    const double start = ProcessorMilliseconds();
    const auto sliced = machine::SliceCubin(image::AsBytes(bytes));
    taken_ += ProcessorMilliseconds() - start;
    const auto cubin = machine::CubinFile::Read(image::AsBytes(bytes));
    const unsigned sm = cubin.ok() ? cubin->sm() : 0;
    if (!sliced.ok()) {
      std::printf("%s\tsm_%u\t\terror\t%s\n", file.c_str(), sm, sliced.error().message.c_str());
      return;
    }
    kernels_ += sliced->kernels.size();
    for (const machine::SlicedKernel& kernel : sliced->kernels) Print(file, sm, kernel);
    if (out.empty()) return;
    std::ofstream to(std::filesystem::path(out) / std::filesystem::path(file).filename(), std::ios::binary);
    to.write(reinterpret_cast<const char*>(sliced->bytes.data()), static_cast<std::streamsize>(sliced->bytes.size()));
  }
  void Summarise() const {
    std::fprintf(stderr, "%zu kernels, %.3f ms of processor time each\n", kernels_,
                 kernels_ == 0 ? 0.0 : taken_ / static_cast<double>(kernels_));
  }

 private:
  static void Print(const std::string& file, unsigned sm, const machine::SlicedKernel& kernel) {
    std::printf("%s\tsm_%u\t%s\t", file.c_str(), sm, kernel.name.c_str());
    if (!kernel.why_whole.empty()) std::printf("whole\t%s\n", kernel.why_whole.c_str());
    else
      std::printf("sliced\t%u places, %u reads of the grid's size, %u ends counted, %u registers before, %u after\n",
                  kernel.sites, kernel.grid_reads, kernel.exits, kernel.registers_before, kernel.registers);
  }

  std::size_t kernels_ = 0;
  double taken_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Slicing slicing;
  unsigned sm = 0;
  for (int number = 1; number < argc; ++number) {
    const std::string word = argv[number];
    if (word == "--out" && number + 1 < argc) slicing.out = argv[++number];
    else if (word == "--arch" && number + 1 < argc)
      sm = static_cast<unsigned>(std::strtoul(argv[++number], nullptr, 10));
    else if (!machine::VisitCubins(word, sm, [&](const std::string& cubin) { slicing.Take(word, cubin); }))
      std::printf("%s\t\t\terror\tit cannot be read\n", word.c_str());
  }
  slicing.Summarise();
  return 0;
}
