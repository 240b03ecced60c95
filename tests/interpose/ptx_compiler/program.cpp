// program LIBRARY SECOND: compiles PTX with the functions of nvPTXCompiler that it looks up in a library, loads the
// result and runs it. A second library of that kind keeps its functions, until the first has gone.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

int g_failed = 0;

void Check(bool good, const char* what) {
  if (good) return;
  std::printf("FAIL: %s\n", what);
  ++g_failed;
}

template <typename Function>
Function* Find(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  if (found != nullptr) return found;
  std::printf("FAIL: no %s\n", name);
  std::exit(1);
}

struct Assembler {
  explicit Assembler(void* library)
      : create(Find<int(void**, std::size_t, const char*)>(library, "nvPTXCompilerCreate")),
        compile(Find<int(void*, int, const char* const*)>(library, "nvPTXCompilerCompile")),
        size(Find<int(void*, std::size_t*)>(library, "nvPTXCompilerGetCompiledProgramSize")),
        program(Find<int(void*, void*)>(library, "nvPTXCompilerGetCompiledProgram")),
        destroy(Find<int(void**)>(library, "nvPTXCompilerDestroy")) {}

  std::vector<char> Assemble(const std::string& ptx, const std::vector<const char*>& options) const {
    void* compiler = nullptr;
    std::size_t bytes = 0;
    Check(create(&compiler, ptx.size(), ptx.c_str()) == 0, "create");
    Check(size(compiler, &bytes) == 7, "the size before it is compiled");
    Check(compile(compiler, static_cast<int>(options.size()), options.data()) == 0, "compile");
    Check(size(compiler, &bytes) == 0 && bytes > ptx.size(), "the size of a program with its PTX");
    std::vector<char> image(bytes + 8, 'x');
    Check(program(compiler, image.data()) == 0, "the program");
    Check(std::string(image.data() + bytes, 8) == "xxxxxxxx", "bytes behind the program");
    Check(destroy(&compiler) == 0 && compiler == nullptr, "destroy");
    return image;
  }

  int (*create)(void**, std::size_t, const char*);
  int (*compile)(void*, int, const char* const*);
  int (*size)(void*, std::size_t*);
  int (*program)(void*, void*);
  int (*destroy)(void**);
};

/// a * a - b, which ptxas fuses unless it is told not to: 2^-46 or 0.
constexpr char kPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .f32 a, .param .f32 b)
{
.reg .u64 %rd<3>;
.reg .f32 %f<5>;
ld.param.u64 %rd1, [out];
ld.param.f32 %f1, [a];
ld.param.f32 %f2, [b];
mul.f32 %f3, %f1, %f1;
sub.f32 %f4, %f3, %f2;
st.global.f32 [%rd1], %f4;
ret;
}
)";

class Driver {
 public:
  Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    void* context = nullptr;
    Check(Call<unsigned>("cuInit", 0u) && Call<void**, int>("cuDevicePrimaryCtxRetain", &context, 0) &&
              Call<void*>("cuCtxSetCurrent", context),
          "the driver");
  }

  float Run(const std::vector<char>& image) {
    void *module = nullptr, *kernel = nullptr;
    unsigned long long out = 0;
    float a = 1 + 0x1p-23f, b = 1 + 0x1p-22f, result = -1;
    void* parameters[] = {&out, &a, &b};
    Check(Call<void**, const void*>("cuModuleLoadData", &module, image.data()), "load");
    Check(Call<void**, void*, const char*>("cuModuleGetFunction", &kernel, module, "k"), "the kernel");
    Check(Call<unsigned long long*, std::size_t>("cuMemAlloc_v2", &out, 4), "memory");
    Check(Call<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**>(
              "cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
          "launch");
    Check(Call<void*, unsigned long long, std::size_t>("cuMemcpyDtoH_v2", &result, out, 4), "copy");
    Check(Call<void*>("cuModuleUnload", module), "unload");
    return result;
  }

 private:
  template <typename... Arguments>
  bool Call(const char* name, Arguments... arguments) {
    return Find<int(Arguments...)>(library_, name)(arguments...) == 0;
  }
  void* library_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* const library = dlopen(argv[1], RTLD_NOW);
  void* const second = dlopen(argv[2], RTLD_NOW);
  Driver driver;
  const Assembler assembler(library);
  Check(driver.Run(assembler.Assemble(kPtx, {"--gpu-name=sm_75"})) == 0x1p-46f, "a product that is fused with the sum");
  Check(driver.Run(assembler.Assemble(kPtx, {"--gpu-name", "sm_75", "--fmad", "false"})) == 0,
        "a product that is not fused");

  void* compiler = nullptr;
  Check(assembler.create(&compiler, 5, "wrong") == 0 && assembler.compile(compiler, 0, nullptr) == 3,
        "an error is the library's");
  Check(assembler.destroy(&compiler) == 0, "destroy behind an error");
  Check(assembler.create(nullptr, 5, "wrong") == 2, "a null pointer is the library's matter");

  const auto of = [](const void* function) {
    Dl_info info{};
    return dladdr(function, &info) != 0 ? std::string(info.dli_fname) : "";
  };
  Check(of(reinterpret_cast<const void*>(Assembler(second).create)) == argv[2],
        "a second library's functions are its own");
  dlclose(library);
  Check(driver.Run(Assembler(second).Assemble(kPtx, {})) == 0x1p-46f, "the second library when the first has gone");
  std::puts(g_failed == 0 ? "PASS" : "FAILED");
  return g_failed == 0 ? 0 : 1;
}
