#include "tests/apps/driver/host.h"
#include "tests/bench/device.h"

namespace bench {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const char* ptx) {
    driver::Call("cuInit", 0u);
    driver::Device device = 0;
    driver::Call("cuDeviceGet", &device, 0);
    driver::Call("cuDeviceGetName", static_cast<char*>(name_), 128, device);
    driver::Handle context = nullptr;
    driver::Call("cuDevicePrimaryCtxRetain", &context, device);
    driver::Call("cuCtxSetCurrent", context);
    driver::Call("cuModuleLoadData", &module_, static_cast<const void*>(ptx));
    awaited_ = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "gridloomAwaitedKernels"));
    launch_ = reinterpret_cast<LaunchFunction>(dlsym(driver::Library(), "cuLaunchKernel"));
  }
  std::string name() const override { return name_; }
  Memory Allocate(std::size_t bytes) override {
    Memory memory = 0;
    driver::Call("cuMemAlloc_v2", &memory, bytes);
    return memory;
  }
  void Write(Memory memory, const void* from, std::size_t bytes) override {
    driver::Call("cuMemcpyHtoD_v2", memory, from, bytes);
  }
  void Read(void* to, Memory memory, std::size_t bytes) override { driver::Call("cuMemcpyDtoH_v2", to, memory, bytes); }
  void Clear(Memory memory, std::size_t bytes) override {
    driver::Call("cuMemsetD8_v2", memory, static_cast<unsigned char>(0), bytes);
  }
  void Launch(const char* kernel, Shape grid, Shape block, const std::vector<Argument>& arguments) override {
    driver::Handle function = nullptr;
    for (const auto& [text, known] : functions_)
      if (text == kernel) function = known;
    if (!function) {
      driver::Call("cuModuleGetFunction", &function, module_, kernel);
      functions_.emplace_back(kernel, function);
    }
    void* values[16];
    std::size_t count = 0;
    for (const Argument& argument : arguments)
      values[count++] =
          std::visit([](const auto& value) { return const_cast<void*>(static_cast<const void*>(&value)); }, argument);
    const int result =
        launch_(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, 0, nullptr, values, nullptr);
    if (result != 0) {
      std::fprintf(stderr, "launch of %s: error %d\n", kernel, result);
      std::exit(1);
    }
  }
  void Finish() override { driver::Call("cuCtxSynchronize"); }
  bool HasFinalCode() const override { return awaited_ == nullptr || awaited_() == 0; }

 private:
  using LaunchFunction = int (*)(driver::Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 driver::Handle, void**, void**);
  char name_[128] = "";
  driver::Handle module_ = nullptr;
  LaunchFunction launch_ = nullptr;
  int (*awaited_)() = nullptr;  ///< Gridloom's; other drivers have none
  std::vector<std::pair<std::string, driver::Handle>> functions_;
};

}  // namespace

std::unique_ptr<Device> OpenCuda(const char* ptx) { return std::make_unique<CudaDevice>(ptx); }

}  // namespace bench
