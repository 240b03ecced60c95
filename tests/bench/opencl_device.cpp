#include "tests/bench/device.h"

#ifdef BENCH_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#endif

namespace bench {

#ifndef BENCH_OPENCL

std::unique_ptr<Device> OpenOpenCl(const char*, std::string* reason) {
  *reason = "built without OpenCL headers (scripts/setup --bench installs PoCL)";
  return nullptr;
}

#else
namespace {

void Check(cl_int result, const char* what) {
  if (result == CL_SUCCESS) return;
  std::fprintf(stderr, "OpenCL: %s: error %d\n", what, result);
  std::exit(1);
}

class OpenClDevice final : public Device {
 public:
  OpenClDevice(cl_device_id device, const char* source) {
    char name[200] = "", version[200] = "";
    clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, nullptr);
    clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof version, version, nullptr);
    name_ = std::string(name) + ", driver " + version;
    cl_int result = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &result);
    Check(result, "context");
    queue_ = clCreateCommandQueue(context_, device, 0, &result);
    Check(result, "queue");
    program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, &result);
    Check(result, "program");
    result = clBuildProgram(program_, 1, &device, "", nullptr, nullptr);
    if (result != CL_SUCCESS) {
      char log[8000] = "";
      clGetProgramBuildInfo(program_, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, nullptr);
      std::fprintf(stderr, "%s\n", log);
    }
    Check(result, "build");
  }
  std::string name() const override { return name_; }
  Memory Allocate(std::size_t bytes) override {
    cl_int result = CL_SUCCESS;
    buffers_.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &result));
    Check(result, "buffer");
    return buffers_.size() - 1;
  }
  void Write(Memory memory, const void* from, std::size_t bytes) override {
    Check(clEnqueueWriteBuffer(queue_, buffers_[memory], CL_TRUE, 0, bytes, from, 0, nullptr, nullptr), "write");
  }
  void Read(void* to, Memory memory, std::size_t bytes) override {
    Check(clEnqueueReadBuffer(queue_, buffers_[memory], CL_TRUE, 0, bytes, to, 0, nullptr, nullptr), "read");
  }
  void Clear(Memory memory, std::size_t bytes) override {
    const cl_uint zero = 0;
    Check(clEnqueueFillBuffer(queue_, buffers_[memory], &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr), "fill");
  }
  void Launch(const char* kernel, Shape grid, Shape block, const std::vector<Argument>& arguments) override {
    cl_kernel handle = nullptr;
    for (const auto& [text, known] : kernels_)
      if (text == kernel) handle = known;
    if (!handle) {
      cl_int result = CL_SUCCESS;
      handle = clCreateKernel(program_, kernel, &result);
      Check(result, kernel);
      kernels_.emplace_back(kernel, handle);
    }
    for (cl_uint i = 0; i < arguments.size(); ++i) {
      if (const Pointer* pointer = std::get_if<Pointer>(&arguments[i]))
        Check(clSetKernelArg(handle, i, sizeof(cl_mem), &buffers_[pointer->memory]), kernel);
      else Check(clSetKernelArg(handle, i, sizeof(int), &std::get<int>(arguments[i])), kernel);
    }
    const std::size_t local[3] = {block.x, block.y, block.z},
                      global[3] = {grid.x * local[0], grid.y * local[1], grid.z * local[2]};
    const cl_uint dimensions = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    Check(clEnqueueNDRangeKernel(queue_, handle, dimensions, nullptr, global, local, 0, nullptr, nullptr), kernel);
  }
  void Finish() override { Check(clFinish(queue_), "finish"); }

 private:
  std::string name_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
  std::vector<cl_mem> buffers_;
  std::vector<std::pair<std::string, cl_kernel> > kernels_;
};

}  // namespace

std::unique_ptr<Device> OpenOpenCl(const char* source, std::string* reason) {
  cl_platform_id platforms[8];
  cl_uint count = 0;
  if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS || count == 0) {
    *reason = "no OpenCL platform (scripts/setup --bench installs PoCL)";
    return nullptr;
  }
  for (cl_uint i = 0; i < count && i < 8; ++i) {
    cl_device_id device = nullptr;
    cl_uint found = 0;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, &found) == CL_SUCCESS && found > 0)
      return std::make_unique<OpenClDevice>(device, source);
  }
  *reason = "no OpenCL device that runs on the CPU";
  return nullptr;
}
#endif

}  // namespace bench
