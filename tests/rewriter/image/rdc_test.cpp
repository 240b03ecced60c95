// Programs of several separately compiled files, as nvcc -rdc=true builds them: their PTX links into one module that
// ptxas accepts. Skipped, aloud, where there is no nvcc.
#include <catch2/catch.hpp>
#include <iostream>

#include "rewriter/image/select.h"
#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/rewriter/image/nvcc.h"

namespace gridloom::image {
namespace {

constexpr const char* kShared = R"(
#include <cassert>
#include <cstdio>
extern __device__ int counter;
extern __constant__ float weights[8];
extern __device__ float apply(float x);
__device__ float (*pick(int))(float);
template <typename T> __device__ __noinline__ T twice(T x) { printf("%d\n", int(x)); return x + x; }
static __device__ int local_state = 3;
static __device__ __noinline__ int helper(int x) { return x * ++local_state; }
static __global__ void same_name(int* out) { extern __shared__ int dynamic[]; dynamic[threadIdx.x] = helper(*out); *out = dynamic[0]; }
)";

constexpr const char* kFirst = R"(
#include "shared.h"
__global__ void first(float* x, int n) {
  assert(n > 0);
  atomicAdd(&counter, helper(n));
  for (int i = 0; i < n; ++i) x[i] = twice(apply(x[i])) * weights[i & 7] + pick(i)(x[i]);
}
int main() { first<<<1, 1>>>(nullptr, 0); same_name<<<1, 1, 4>>>(nullptr); return 0; }
)";

constexpr const char* kSecond = R"(
#include "shared.h"
__device__ int counter = 5;
__constant__ float weights[8] = {1, 2};
__device__ int* pointer_to_counter = &counter;
__device__ __noinline__ float apply(float x) { printf("apply\n"); return x * helper(2) + twice(1) + *pointer_to_counter; }
__device__ float square(float x) { return x * x; }
__device__ float (*const table[])(float) = {apply, square};
__device__ float (*pick(int i))(float) { return table[i & 1]; }
void launch() { same_name<<<1, 1, 4>>>(nullptr); }
)";

bool IsProvided(std::string_view name) { return name == "vprintf" || name == "__assertfail"; }

TEST_CASE("Rdc_ProgramOfTwoFiles_LinksIntoOneModuleThatPtxasTakes") {
  const testing::Nvcc nvcc({{"first.cu", kFirst}, {"second.cu", kSecond}});
  if (!nvcc.present()) {
    std::cout << "SKIPPED: nvcc is not installed; linking of -rdc programs is tested on hand-written PTX only\n";
    return;
  }
  nvcc.Write({"shared.h", kShared});
  for (const std::string options : {"-rdc=true", "-rdc=true -lineinfo", "-rdc=true -G"}) {
    INFO(options);
    const auto set = ReadImageFile(nvcc.Build(options));
    REQUIRE(set.ok());
    const auto texts = SelectPtx(*set, {9, 0});
    REQUIRE(texts.ok());
    REQUIRE(texts->size() == 2);
    std::vector<ptx::LinkInput> inputs;
    for (const Entry* entry : *texts) {
      const auto text = entry->Read();
      REQUIRE(text.ok());
      DiagnosticSink sink;
      inputs.push_back({"part " + std::to_string(inputs.size()), ptx::ParseModule(*text, sink)});
      REQUIRE_FALSE(sink.has_errors());
    }
    const auto linked = ptx::LinkModules(std::move(inputs), IsProvided);
    INFO((linked.ok() ? "" : linked.error().message));
    REQUIRE(linked.ok());
    const std::string text = ptx::PrintModule(**linked);
    INFO(text);
    CHECK(nvcc.Assemble(text) == "");
  }
}

}  // namespace
}  // namespace gridloom::image
