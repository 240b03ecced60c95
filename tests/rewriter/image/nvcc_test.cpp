// What nvcc really writes. Skipped, aloud, where there is no nvcc.
#include "tests/rewriter/image/nvcc.h"

#include <catch2/catch.hpp>
#include <iostream>

#include "rewriter/image/cubin.h"
#include "rewriter/image/ptx_text.h"
#include "rewriter/image/select.h"

namespace gridloom::image {
namespace {

using testing::Nvcc;

constexpr const char* kSource = R"(
__global__ void scale(float* x, float f, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }
__global__ void fill(int* x) { __shared__ int s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads(); x[threadIdx.x] = s[31 - threadIdx.x]; }
#ifndef LIBRARY
int main() { scale<<<1, 32>>>(nullptr, 1.0f, 0); fill<<<1, 32>>>(nullptr); return 0; }
#endif
)";

/// The PTX that a device of that capability runs, of the container that has kernels.
std::string PtxFor(const ImageSet& set, ComputeCapability device) {
  for (const Container& container : set.containers) {
    const Entry* entry = SelectPtx(container, device);
    if (entry == nullptr) continue;
    const auto text = entry->Read();
    REQUIRE(text.ok());
    return *text;
  }
  return "";
}

struct BuildCase {
  const char* options;
  Format format;
};

TEST_CASE("Nvcc_EveryWayToBuild_GivesBackThePtx") {
  const Nvcc nvcc(std::vector<testing::SourceFile>{{"a.cu", kSource}});
  if (!nvcc.present()) {
    std::cout << "SKIPPED: nvcc is not installed; containers as nvcc writes them are not tested\n";
    return;
  }
  const BuildCase cases[] = {
      {"", Format::kExecutable},
      {"-compress-mode=size", Format::kExecutable},
      {"-compress-mode=speed", Format::kExecutable},
      {"-compress-mode=balance", Format::kExecutable},
      {"-compress-mode=none", Format::kExecutable},
      {"-rdc=true", Format::kExecutable},
      {"-G", Format::kExecutable},
      {"-lineinfo", Format::kExecutable},
      {"-arch=sm_90a", Format::kExecutable},
      {"-c", Format::kObject},
      {"-shared -Xcompiler -fPIC -DLIBRARY", Format::kSharedObject},
      {"-cudart shared", Format::kExecutable},
      {"-fatbin", Format::kFatbin},
      {"-ptx", Format::kPtx},
  };
  for (const BuildCase& build : cases) {
    INFO("nvcc " << build.options);
    const auto set = ReadImageFile(nvcc.Build(build.options));
    REQUIRE(set.ok());
    CHECK(set->format == build.format);
    const std::string ptx = PtxFor(*set, {9, 0});
    CHECK(ReadPtxHeader(ptx).has_value());
    CHECK(ptx.find(".entry _Z5scalePffi") != std::string::npos);
    CHECK(ptx.find(".entry _Z4fillPi") != std::string::npos);
  }
}

TEST_CASE("Nvcc_Cubins_ListTheirKernels") {
  const Nvcc nvcc(std::vector<testing::SourceFile>{{"a.cu", kSource}});
  if (!nvcc.present()) return;
  const auto set = ReadImageFile(nvcc.Build("-cubin -arch=sm_80"));
  REQUIRE(set.ok());
  CHECK(set->format == Format::kCubin);
  const auto cubin = ReadCubin(set->containers.at(0).entries.at(0).stored);
  REQUIRE(cubin.ok());
  CHECK(cubin->arch.text() == "sm_80");
  CHECK(cubin->kernels.size() == 2);
}

TEST_CASE("Nvcc_MachineCodeOnly_IsReportedWithItsArchitectures") {
  const Nvcc nvcc(std::vector<testing::SourceFile>{{"a.cu", kSource}});
  if (!nvcc.present()) return;
  const auto set = ReadImageFile(nvcc.Build("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"));
  REQUIRE(set.ok());
  const auto texts = SelectPtx(*set, {9, 0});
  REQUIRE_FALSE(texts.ok());
  CHECK(texts.error().message.find("machine code for sm_80, sm_90 but no PTX") != std::string::npos);
}

}  // namespace
}  // namespace gridloom::image
