#include "sim/timing/dispatch/path_kernels.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

/// Takes kernels of streams below 10.
struct Software final : KernelPath {
  bool Wants(const WorkView& kernel) override { return kernel.stream < 10; }
  void Take(Cycle, const WorkView& kernel) override {
    taken.push_back(kernel.id);
    inputs.assign(kernel.after.begin(), kernel.after.end());
  }
  std::vector<WorkId> taken, inputs;
};

struct Path : FrontEnd {
  Path() { ports.kernel_path = &software; }
  Software software;
  PathKernels kernels{works, ports, lot, reports};
};

TEST_CASE("PathKernels_WithoutAPart_NoKernelGoesThere") {
  FrontEnd front;
  const PathKernels kernels(front.works, front.ports, front.lot, front.reports);
  CHECK_FALSE(kernels.Wants(front.AddKernel(0)));
}

TEST_CASE("PathKernels_ThePart_GetsKernelsThatNothingHoldsBack") {
  Path front;
  const WorkId first = front.AddKernel(0), second = front.AddKernel(0), other = front.AddKernel(20);
  CHECK(front.kernels.Wants(first));
  CHECK_FALSE(front.kernels.Wants(other));
  front.kernels.Add(first);
  front.kernels.Add(second);
  front.kernels.Check(5);
  CHECK(front.software.taken == std::vector<WorkId>{first});
  CHECK(front.works.at(first).result.started == 5);
  front.works.Finish(first, 50);
  for (const WorkId kernel : front.lot.Leave(first)) front.kernels.Add(kernel);
  front.kernels.Check(50);
  CHECK(front.software.taken == std::vector<WorkId>{first, second});
}

TEST_CASE("PathKernels_KernelBehindCopiesToTheDeviceAlone_IsTakenAtOnce_WithThem") {
  Path front;
  const WorkId in = front.AddCopy(0, WorkKind::kCopyToDevice), kernel = front.AddKernel(0);
  front.kernels.Add(kernel);
  front.kernels.Check(0);
  CHECK(front.software.taken == std::vector<WorkId>{kernel});
  CHECK(front.software.inputs == std::vector<WorkId>{in});
}

}  // namespace
}  // namespace gridloom::timing
