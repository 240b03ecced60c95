// What slicing does to cubins.
//
//   machine_slice [--out FOLDER] CUBIN…   a line for each kernel: file, kernel, "sliced" with its sites, or why not;
//                                         then how many kernels there are and how long one takes
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "rewriter/machine/slice/slice_cubin.h"

using namespace gridloom;

namespace {

void PrintKernel(const char* file, const machine::SlicedKernel& kernel) {
  if (kernel.why_whole.empty()) {
    std::printf("%s\t%s\tsliced\t%u places, %u reads of the grid's size, %u registers before, %u after\n", file,
                kernel.name.c_str(), kernel.sites, kernel.grid_reads, kernel.registers_before, kernel.registers);
  } else {
    std::printf("%s\t%s\twhole\t%s\n", file, kernel.name.c_str(), kernel.why_whole.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string out;
  std::size_t kernels = 0;
  std::chrono::duration<double, std::milli> taken{};
  for (int number = 1; number < argc; ++number) {
    if (std::strcmp(argv[number], "--out") == 0 && number + 1 < argc) {
      out = argv[++number];
      continue;
    }
    std::ifstream file(argv[number], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto start = std::chrono::steady_clock::now();
    const auto sliced = machine::SliceCubin(image::AsBytes(bytes));
    taken += std::chrono::steady_clock::now() - start;
    if (!sliced.ok()) {
      std::printf("%s\t\terror\t%s\n", argv[number], sliced.error().message.c_str());
      continue;
    }
    kernels += sliced->kernels.size();
    for (const machine::SlicedKernel& kernel : sliced->kernels) PrintKernel(argv[number], kernel);
    if (out.empty()) continue;
    std::ofstream to(std::filesystem::path(out) / std::filesystem::path(argv[number]).filename(), std::ios::binary);
    to.write(reinterpret_cast<const char*>(sliced->bytes.data()), static_cast<std::streamsize>(sliced->bytes.size()));
  }
  std::fprintf(stderr, "%zu kernels, %.3f ms each\n", kernels,
               kernels == 0 ? 0.0 : taken.count() / static_cast<double>(kernels));
  return 0;
}
