#include "tests/bench/launch_speed.h"

#ifdef BENCH_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

namespace bench {

#ifndef BENCH_OPENCL

bool MeasureOpenCl(const LaunchSizes&, LaunchTimes&, std::string& reason) {
  reason = "built without OpenCL headers (scripts/setup --bench installs PoCL)";
  return false;
}

#else
namespace {

constexpr const char* kSource =
    "kernel void saxpy(global const float* x, global float* y, float a) { size_t i = get_global_id(0); y[i] = fma(a, "
    "x[i], y[i]); }";

void Check(cl_int result, const char* what) {
  if (result == CL_SUCCESS) return;
  std::fprintf(stderr, "launch_speed: OpenCL: %s: error %d\n", what, result);
  std::exit(1);
}

cl_device_id FindDevice(std::string& reason) {
  cl_platform_id platforms[8];
  cl_uint count = 0;
  if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS) count = 0;
  for (cl_uint i = 0; i < std::min(count, 8u); ++i) {
    cl_device_id device = nullptr;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS) return device;
  }
  reason = "no OpenCL CPU device (scripts/setup --bench installs PoCL)";
  return nullptr;
}

/// A queue, its numbers, and a kernel that has them as arguments: launches set nothing anew.
struct Stream {
  cl_command_queue queue;
  cl_mem y;
  cl_kernel kernel;
};

Stream MakeStream(cl_context context, cl_device_id device, cl_program program, cl_mem x) {
  cl_int result = CL_SUCCESS;
  Stream stream{};
  stream.queue = clCreateCommandQueue(context, device, 0, &result);
  Check(result, "queue");
  std::vector<float> zeros(kLaunchThreads);
  stream.y = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, zeros.size() * sizeof(float),
                            zeros.data(), &result);
  Check(result, "buffer");
  stream.kernel = clCreateKernel(program, "saxpy", &result);
  Check(result, "kernel");
  const float a = 1;
  Check(clSetKernelArg(stream.kernel, 0, sizeof x, &x), "argument");
  Check(clSetKernelArg(stream.kernel, 1, sizeof stream.y, &stream.y), "argument");
  Check(clSetKernelArg(stream.kernel, 2, sizeof a, &a), "argument");
  return stream;
}

}  // namespace

bool MeasureOpenCl(const LaunchSizes& sizes, LaunchTimes& times, std::string& reason) {
  cl_device_id device = FindDevice(reason);
  if (device == nullptr) return false;
  cl_int result = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &result);
  Check(result, "context");
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &result);
  Check(result, "program");
  Check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "build");
  std::vector<float> ones(kLaunchThreads, 1.0f);
  cl_mem x = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, ones.size() * sizeof(float), ones.data(),
                            &result);
  Check(result, "buffer");
  std::vector<Stream> streams;
  for (unsigned i = 0; i < sizes.streams; ++i) streams.push_back(MakeStream(context, device, program, x));
  const std::size_t threads = kLaunchThreads;
  for (unsigned run = 0; run <= sizes.runs; ++run) {
    const LaunchClock clock;
    for (unsigned i = 0; i < sizes.launches; ++i) {
      const Stream& stream = streams[i % sizes.streams];
      Check(clEnqueueNDRangeKernel(stream.queue, stream.kernel, 1, nullptr, &threads, &threads, 0, nullptr, nullptr),
            "launch");
    }
    const double launched = clock.us();
    for (const Stream& stream : streams) Check(clFlush(stream.queue), "flush");
    for (const Stream& stream : streams) Check(clFinish(stream.queue), "finish");
    if (run > 0) times.Add(launched / sizes.launches, clock.us() / sizes.launches);
  }
  for (unsigned i = 0; i < sizes.streams; ++i) {
    std::vector<float> got(kLaunchThreads);
    Check(clEnqueueReadBuffer(streams[i].queue, streams[i].y, CL_TRUE, 0, got.size() * sizeof(float), got.data(), 0,
                              nullptr, nullptr),
          "read");
    CheckLaunches(sizes, i, got);
  }
  return true;
}

#endif

}  // namespace bench
