// nvJitLink in a context that a kernel has failed in: the link goes well, since it is no work of the context's, and who
// loads the result hears of the kernel.
#include <nvJitLink.h>

#include <string>

#include "driver.h"

__global__ void Touch(int* p) { *p = 1; }

int main() {
  CU(cudaFree(nullptr));
  Touch<<<1, 1>>>(nullptr);
  True("failed", cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  const std::string ptx = AffinePtx("Affine", 3);
  const char* options[] = {"-arch=sm_90"};
  nvJitLinkHandle link;
  Same("create", 0, nvJitLinkCreate(&link, 1, options), NVJITLINK_SUCCESS);
  Same("add", 0, nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, ptx.data(), ptx.size(), "affine"), NVJITLINK_SUCCESS);
  Same("complete", 0, nvJitLinkComplete(link), NVJITLINK_SUCCESS);
  std::size_t size = 0;
  Same("size", 0, nvJitLinkGetLinkedCubinSize(link, &size), NVJITLINK_SUCCESS);
  std::string code(size, 0);
  Same("code", 0, nvJitLinkGetLinkedCubin(link, code.data()), NVJITLINK_SUCCESS);
  Same("destroy", 0, nvJitLinkDestroy(&link), NVJITLINK_SUCCESS);
  True("its kernel", code.find("Affine") != std::string::npos);
  CUmodule module;
  Result("loaded", cuModuleLoadData(&module, code.data()), CUDA_ERROR_ILLEGAL_ADDRESS);
  return Verdict();
}
