// Every entry point that starts kernels goes through one funnel: the engine sees the launch, whichever way it came.
#include <cstring>
#include <map>

#include "interpose/api/driver_api.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;
using test::FakeEngine;

namespace {

struct Launcher {
  CUfunction function;

  void Direct(decltype(&cuLaunchKernel) launch) const {
    CU_OK(launch(function, 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  void Extended(decltype(&cuLaunchKernelEx) launch) const {
    const CUlaunchConfig config{2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0};
    CU_OK(launch(&config, function, nullptr, nullptr));
  }
  void Cooperative(decltype(&cuLaunchCooperativeKernel) launch) const {
    CU_OK(launch(function, 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
  }
  void MultiDevice() const {
    CUDA_LAUNCH_PARAMS params{function, 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr};
    CU_OK(cuLaunchCooperativeKernelMultiDevice(&params, 1, 0));
  }
  void Graph(decltype(&cuGraphLaunch) launch) const {
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CU_OK(cuGraphCreate(&graph, 0));
    const CUDA_KERNEL_NODE_PARAMS_v1 params{function, 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr};
    CU_OK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    CU_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CU_OK(launch(exec, nullptr));
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
  }
};

}  // namespace

TEST_CASE("EveryLaunchingEntryPoint_ReachesTheEngine", "[funnel]") {
  const test::Fixture fixture;
  const Launcher launcher{fixture.Function("nothing")};
  const CUfunction function = launcher.function;
  const std::map<std::string, std::function<void()>> calls = {
      {"cuLaunchKernel", [&] { launcher.Direct(&cuLaunchKernel); }},
      {"cuLaunchKernel_ptsz", [&] { launcher.Direct(&cuLaunchKernel_ptsz); }},
      {"cuLaunchKernelEx", [&] { launcher.Extended(&cuLaunchKernelEx); }},
      {"cuLaunchKernelEx_ptsz", [&] { launcher.Extended(&cuLaunchKernelEx_ptsz); }},
      {"cuLaunchCooperativeKernel", [&] { launcher.Cooperative(&cuLaunchCooperativeKernel); }},
      {"cuLaunchCooperativeKernel_ptsz", [&] { launcher.Cooperative(&cuLaunchCooperativeKernel_ptsz); }},
      {"cuLaunchCooperativeKernelMultiDevice", [&] { launcher.MultiDevice(); }},
      {"cuGraphLaunch", [&] { launcher.Graph(&cuGraphLaunch); }},
      {"cuGraphLaunch_ptsz", [&] { launcher.Graph(&cuGraphLaunch_ptsz); }},
      {"cuLaunch", [&] { CU_OK(cuLaunch(function)); }},
      {"cuLaunchGrid", [&] { CU_OK(cuLaunchGrid(function, 2, 1)); }},
      {"cuLaunchGridAsync", [&] { CU_OK(cuLaunchGridAsync(function, 2, 1, nullptr)); }},
  };
  // The list above is complete: whatever the table marks as launching is in it, and whatever sounds like it is marked.
  for (const api::Row& row : api::Table()) {
    std::vector<std::string> names = {row.symbol};
    if (row.twin_address != nullptr) names.push_back(std::string(row.symbol) + row.twin_suffix);
    for (const std::string& name : names) {
      if (row.launches) CHECK(calls.contains(name));
      const bool sounds = name.find("Launch") != std::string::npos && name.find("HostFunc") == std::string::npos;
      if (sounds) CHECK(row.launches);
    }
  }
  for (const auto& [name, call] : calls) {
    INFO(name);
    FakeEngine::Get().TakeLaunches();
    call();
    CU_OK(cuCtxSynchronize());
    const auto launches = FakeEngine::Get().TakeLaunches();
    REQUIRE(launches.size() == 1);
    CHECK(launches[0].kernel == "nothing");
  }
}

TEST_CASE("Parameters_ArriveAtTheirOffsets", "[funnel]") {
  const test::Fixture fixture;
  const CUfunction fill = fixture.Function("fill");
  CUdeviceptr pointer = 0x1122334455667788;
  unsigned value = 42;
  unsigned char flag = 3;
  void* params[] = {&pointer, &value, &flag};
  CU_OK(cuLaunchKernel(fill, 1, 2, 3, 4, 5, 6, 100, nullptr, params, nullptr));
  struct {
    CUdeviceptr pointer;
    unsigned value;
    unsigned char flag;
  } block = {pointer, 43, 4};
  std::size_t bytes = 13;
  void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer), &block,
                   reinterpret_cast<void*>(kLaunchParamBufferSize), &bytes, nullptr};
  CU_OK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  CU_OK(cuFuncSetBlockShape(fill, 8, 1, 1));
  CU_OK(cuParamSetv(fill, 0, &pointer, 8));
  CU_OK(cuParamSeti(fill, 8, 44));
  CU_OK(cuLaunchGrid(fill, 1, 1));
  CU_OK(cuCtxSynchronize());
  const auto launches = FakeEngine::Get().TakeLaunches();
  REQUIRE(launches.size() == 3);
  CHECK(test::Param<CUdeviceptr>(launches[0], 0) == pointer);
  CHECK(test::Param<unsigned>(launches[0], 8) == 42);
  CHECK(test::Param<unsigned char>(launches[0], 12) == 3);
  CHECK(launches[0].grid.z == 3);
  CHECK(launches[0].block.y == 5);
  CHECK(launches[0].dynamic_shared_bytes == 100);
  CHECK(test::Param<unsigned>(launches[1], 8) == 43);
  CHECK(test::Param<unsigned>(launches[2], 8) == 44);
  CHECK(launches[2].block.x == 8);
}
