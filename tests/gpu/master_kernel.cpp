// Runs random mixes of tasks on a MasterKernel, which a host feeds through its TaskTable, and every task once more as a
// plain launch: both have to give the same, bit by bit. On a GPU or under Gridloom.
//
// usage: master_kernel REWRITTEN.ptx [tasks, 1000] [seed, 1] [columns, 4; 0: as many as fit] [rows, 32] [threads of a
// master block, 1024] REWRITTEN.ptx: tests/gpu/tasks.cu behind the pass `task`.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "driver.h"
#include "interpose/tasks/task_table.h"

using namespace gridloom;

namespace {

#define DRIVER(name, symbol)                                                                                          \
  template <class... Arguments>                                                                                       \
  void name(Arguments... arguments) {                                                                                 \
    static const auto function = Find<decltype(&symbol)>(#symbol);                                                    \
    const CUresult status = function(arguments...);                                                                   \
    if (status != CUDA_SUCCESS) std::fprintf(stderr, #symbol ": error %d\n", static_cast<int>(status)), std::exit(1); \
  }
#undef cuModuleGetGlobal
#undef cuMemAlloc
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
DRIVER(Init, cuInit)
DRIVER(Retain, cuDevicePrimaryCtxRetain)
DRIVER(SetCurrent, cuCtxSetCurrent)
DRIVER(Load, cuModuleLoadData)
DRIVER(GetFunction, cuModuleGetFunction)
DRIVER(Global, cuModuleGetGlobal_v2)
DRIVER(Allocate, cuMemAlloc_v2)
DRIVER(Fill, cuMemsetD8_v2)
DRIVER(HostAllocate, cuMemHostAlloc)
DRIVER(ToDevice, cuMemcpyHtoDAsync_v2)
DRIVER(ToHost, cuMemcpyDtoHAsync_v2)
DRIVER(NewStream, cuStreamCreate)
DRIVER(Wait, cuStreamSynchronize)
DRIVER(Launch, cuLaunchKernel)
DRIVER(SetAttribute, cuFuncSetAttribute)
DRIVER(Occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor)
DRIVER(DeviceAttribute, cuDeviceGetAttribute)

/// Copies over a stream of its own, from pinned memory that is used again when all before it has arrived.
class StreamPort final : public tasks::Port {
 public:
  StreamPort(CUdeviceptr table, CUstream stream) : table_(table), stream_(stream) {
    HostAllocate(reinterpret_cast<void**>(&staging_), kStaging, 0u);
  }
  void Write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (used_ + bytes.size() > kStaging) Wait(stream_), used_ = 0;
    std::memcpy(staging_ + used_, bytes.data(), bytes.size());
    ToDevice(table_ + offset, static_cast<const void*>(staging_ + used_), bytes.size(), stream_);
    used_ += (bytes.size() + 15) / 16 * 16;
  }
  void Read(std::uint64_t offset, std::span<std::byte> bytes) override {
    ToHost(static_cast<void*>(bytes.data()), table_ + offset, bytes.size(), stream_);
    Wait(stream_);
    used_ = 0;
  }

 private:
  static constexpr std::size_t kStaging = 1 << 20;
  CUdeviceptr table_;
  CUstream stream_;
  std::byte* staging_ = nullptr;
  std::size_t used_ = 0;
};

struct Known {
  std::uint32_t number = 0, static_bytes = 0;
  passes::task::Barrier barrier{};
  bool full_warps = false, full_rows = false;
  CUfunction plain = nullptr;
};

struct Job {
  std::string kernel;
  tasks::Extent grid, block;
  std::uint32_t dynamic_bytes = 0;
  std::size_t words = 0, at = 0;  ///< of its results
  std::vector<std::byte> params;  ///< behind the pointer to its results
};

template <class T>
void Put(std::vector<std::byte>& bytes, T value) {
  const std::size_t at = (bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T);
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

class Jobs {
 public:
  Jobs(std::uint64_t seed, CUdeviceptr in) : random_(seed), in_(in) {}

  Job Next(std::uint32_t most_threads) {
    Job job;
    const auto linear = [&](std::uint32_t n, std::uint32_t threads) {
      job.block.x = threads, job.grid.x = (n + threads - 1) / threads;
      job.words = std::size_t{job.grid.x} * threads;
    };
    const std::uint32_t threads = std::min(1 + Draw(512), most_threads), n = 1 + Draw(2000);
    switch (Draw(7)) {
      case 0:
        job.kernel = "Scale", linear(n, threads), job.grid.x = 1 + Draw(job.grid.x);
        Put(job.params, in_), Put(job.params, n), Put(job.params, Draw(1000));
        break;
      case 1: job.kernel = "Sums", linear(n, threads), Put(job.params, in_), Put(job.params, n); break;
      case 2:
        job.kernel = "Early", linear(n, threads), job.dynamic_bytes = 4 * threads;
        Put(job.params, in_), Put(job.params, n);
        break;
      case 3: {
        job.kernel = "Corners";
        job.block = {1 + Draw(16), 1 + Draw(8), 1 + Draw(3)};
        while (job.block.count() > most_threads) job.block.x = (job.block.x + 1) / 2, job.block.y = 1;
        const std::uint32_t nx = 1 + Draw(40), ny = 1 + Draw(20), nz = 1 + Draw(6);
        job.grid = {(nx + job.block.x - 1) / job.block.x, (ny + job.block.y - 1) / job.block.y,
                    (nz + job.block.z - 1) / job.block.z};
        job.words = std::size_t{nx} * ny * nz;
        Put(job.params, nx), Put(job.params, ny), Put(job.params, nz);
        break;
      }
      case 4: {
        job.kernel = "Turn";
        const std::uint32_t side = most_threads >= 256 ? 1 + Draw(16) : 4;
        job.block = {side, side, 1}, job.grid.x = (n + side * side - 1) / (side * side);
        job.words = std::size_t{job.grid.x} * side * side, job.dynamic_bytes = 4 * side * side;
        Put(job.params, in_), Put(job.params, n);
        break;
      }
      case 5: {
        job.kernel = "Chosen";
        job.block = {32 * (1 + Draw(std::min(most_threads / 32, 4u))), 1, 1};
        while (job.block.count() * 2 <= most_threads && Draw(2) == 0) job.block.y *= 2;
        job.grid.x = 1 + Draw(6);
        job.words = std::size_t{job.grid.x} * job.block.count();
        Put(job.params, in_), Put(job.params, Draw(static_cast<std::uint32_t>(job.block.count() / 32) + 2));
        break;
      }
      default: {
        job.kernel = "Mix", linear(1 + Draw(300), threads), job.words *= 2;
        for (int i = 0; i < 9; ++i) Put(job.params, std::uint64_t{random_()});
        for (int i = 0; i < 5; ++i) Put(job.params, static_cast<std::uint16_t>(random_()));
        job.params.resize((job.params.size() + 7) / 8 * 8);
        Put(job.params, static_cast<std::uint32_t>(job.words / 2)), Put(job.params, Draw(60));
      }
    }
    return job;
  }

 private:
  std::uint32_t Draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  std::mt19937_64 random_;
  CUdeviceptr in_;
};

std::vector<std::byte> ParamsOf(const Job& job, CUdeviceptr out) {
  std::vector<std::byte> params;
  Put(params, out);
  params.insert(params.end(), job.params.begin(), job.params.end());
  return params;
}

std::uint32_t Argument(int argc, char** argv, int index, std::uint32_t otherwise) {
  return argc > index ? static_cast<std::uint32_t>(std::strtoul(argv[index], nullptr, 10)) : otherwise;
}

/// The kernels of the text that have a task function, in the order of the facts about them.
std::map<std::string, Known> KnownTasks(CUmodule module, const std::string& ptx) {
  CUdeviceptr facts = 0;
  std::size_t bytes = 0;
  Global(&facts, &bytes, module, "gl_task_facts");
  std::vector<std::uint32_t> values(bytes / 4);
  ToHost(static_cast<void*>(values.data()), facts, bytes, static_cast<CUstream>(nullptr));
  Wait(static_cast<CUstream>(nullptr));
  std::map<std::string, Known> known;
  for (std::size_t at = ptx.find(".entry "); at != std::string::npos; at = ptx.find(".entry ", at + 1)) {
    const std::size_t begin = at + 7, end = ptx.find_first_of(" (\n", begin);
    const std::string name = ptx.substr(begin, end - begin);
    if (ptx.find(" gl_task_" + name + "(") == std::string::npos &&
        ptx.find(" gl_task_" + name + " (") == std::string::npos)
      continue;
    const std::uint32_t number = static_cast<std::uint32_t>(known.size());
    Known& one = known[name];
    const std::uint32_t whole = values.at(4 * number + 2);
    one = {number,
           values.at(4 * number),
           static_cast<passes::task::Barrier>(values.at(4 * number + 1)),
           whole != 0,
           whole == 2,
           nullptr};
    GetFunction(&one.plain, module, name.c_str());
  }
  return known;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: master_kernel REWRITTEN.ptx [tasks] [seed] [columns] [rows] [threads]\n"), 2;
  std::ifstream file(argv[1]);
  std::ostringstream read;
  read << file.rdbuf();
  const std::string ptx = read.str();
  const std::uint32_t count = Argument(argc, argv, 2, 1000), seed = Argument(argc, argv, 3, 1);
  tasks::TableShape shape{
      .columns = Argument(argc, argv, 4, 4), .rows = Argument(argc, argv, 5, 32), .entry_bytes = 256};
  const std::uint32_t threads = Argument(argc, argv, 6, 1024);
  shape.warps = threads / 32 - 1;

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction master = nullptr;
  CUstream resident = nullptr, copies = nullptr;
  Init(0u), Retain(&context, 0), SetCurrent(context);
  Load(&module, static_cast<const void*>(ptx.c_str()));
  GetFunction(&master, module, "gl_master");
  const std::map<std::string, Known> known = KnownTasks(module, ptx);
  NewStream(&resident, 1u), NewStream(&copies, 1u);

  int fit = 0, sms = 0;
  SetAttribute(master, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shape.pool_bytes));
  Occupancy(&fit, master, static_cast<int>(threads), std::size_t{shape.pool_bytes});
  DeviceAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  if (shape.columns == 0) shape.columns = static_cast<std::uint32_t>(fit * sms);
  std::fprintf(stderr, "%d blocks of the MasterKernel fit on each of %d SMs, %u columns\n", fit, sms, shape.columns);

  constexpr std::uint32_t kIn = 4096;
  std::vector<std::uint32_t> in(kIn);
  for (std::uint32_t i = 0; i < kIn; ++i) in[i] = i * 2654435761u;
  CUdeviceptr device_in = 0, table = 0, device_control = 0;
  Allocate(&device_in, std::size_t{kIn * 4});
  ToDevice(device_in, static_cast<const void*>(in.data()), std::size_t{kIn * 4}, copies);
  Wait(copies);
  Jobs jobs(seed, device_in);
  std::vector<Job> all;
  std::size_t words = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    all.push_back(jobs.Next(shape.warps * 32));
    all.back().at = words;
    words += (all.back().words + 3) / 4 * 4;
  }
  CUdeviceptr results[2];
  for (CUdeviceptr& one : results) Allocate(&one, words * 4), Fill(one, static_cast<unsigned char>(0x5A), words * 4);

  // Not in the host's memory: every scheduler warp reads it in each round.
  const std::size_t control_bytes = passes::task::Control::BytesFor(shape.columns, threads / 32);
  Allocate(&device_control, control_bytes), Fill(device_control, static_cast<unsigned char>(0), control_bytes);
  Allocate(&table, shape.bytes()), Fill(table, static_cast<unsigned char>(0), shape.bytes());
  Wait(static_cast<CUstream>(nullptr));  // streams that do not block do not wait for it
  void* arguments[] = {&table, &device_control, &shape.rows, &shape.entry_bytes, &shape.pool_bytes};
  const auto begin = std::chrono::steady_clock::now();
  Launch(master, shape.columns, 1u, 1u, threads, 1u, 1u, shape.pool_bytes, resident, static_cast<void**>(arguments),
         static_cast<void**>(nullptr));
  StreamPort port(table, copies);
  tasks::TaskTable host(shape, port);
  std::uint32_t full = 0, skipped = 0;
  for (const Job& job : all) {
    const Known& kernel = known.at(job.kernel);
    const std::vector<std::byte> params = ParamsOf(job, results[0] + job.at * 4);
    tasks::Task task{.kernel = kernel.number,
                     .grid = job.grid,
                     .block = job.block,
                     .static_bytes = kernel.static_bytes,
                     .dynamic_bytes = job.dynamic_bytes,
                     .barrier = kernel.barrier,
                     .full_warps = kernel.full_warps,
                     .full_rows = kernel.full_rows,
                     .params = params};
    if (const auto why = WhyNotTask(task, shape)) {
      ++skipped;
      std::fprintf(stderr, "%s is no task: %s\n", job.kernel.c_str(), *why);
      continue;
    }
    while (!host.Spawn(task)) ++full;
  }
  host.Flush();
  while (host.running() > 0) host.Update();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const unsigned end = 1;
  ToDevice(device_control, static_cast<const void*>(&end), sizeof end, copies);
  Wait(resident);

  for (const Job& job : all) {
    std::vector<std::byte> params = ParamsOf(job, results[1] + job.at * 4);
    std::size_t size = params.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    Launch(known.at(job.kernel).plain, job.grid.x, job.grid.y, job.grid.z, job.block.x, job.block.y, job.block.z,
           job.dynamic_bytes, resident, static_cast<void**>(nullptr), static_cast<void**>(extra));
  }
  Wait(resident);
  std::vector<std::uint32_t> got(words), want(words);
  ToHost(static_cast<void*>(got.data()), results[0], words * 4, copies),
      ToHost(static_cast<void*>(want.data()), results[1], words * 4, copies);
  Wait(copies);
  std::uint32_t wrong = 0;
  for (const Job& job : all) {
    if (std::memcmp(&got[job.at], &want[job.at], job.words * 4) == 0) continue;
    if (++wrong <= 5) {
      std::fprintf(stderr, "task %zu, %s, grid %u %u %u, block %u %u %u: another result\n",
                   static_cast<std::size_t>(&job - all.data()), job.kernel.c_str(), job.grid.x, job.grid.y, job.grid.z,
                   job.block.x, job.block.y, job.block.z);
    }
  }
  std::printf("%s: %u tasks, %u wrong, %u skipped, the table was full %u times, read %llu times\n",
              wrong + skipped == 0 ? "PASS" : "FAIL", count, wrong, skipped, full,
              static_cast<unsigned long long>(host.updates()));
  std::fprintf(stderr, "%.1f us a task\n", seconds * 1e6 / count);
  return wrong + skipped != 0;
}
