// Errors as a driver reports them.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "interpose/session/ptx_sources.h"
#include "interpose/session/refused_code.h"
#include "rewriter/image/fatbin.h"
#include "rewriter/image/fatbin_layout.h"
#include "rewriter/image/image_set.h"
#include "tests/interpose/fixture.h"
#include "tests/rewriter/image/image_bytes.h"

using namespace gridloom;
using test::FakeEngine;

namespace {

CUresult Launch(CUfunction function, unsigned grid, unsigned block, unsigned shared = 0, CUstream stream = nullptr) {
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, nullptr, nullptr);
}

}  // namespace

// What a compiler puts into a binary is right; a binary may be made by somebody else.
TEST_CASE("Images_WhosePtxNoCompilerWrote_AreRefused_AndNewerWordsAreNot", "[errors]") {
  const test::Fixture fixture;
  const auto load = [](const std::string& line) {
    const std::string ptx =
        ".version 8.0\n.target sm_70\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .pred %p<2>; " + line + " ret; }\n";
    const auto container = image::testing::MakeContainer({image::testing::EntrySpec{.sm = 70, .payload = ptx + '\0'}});
    const image::WrapperHeader wrapper{image::kWrapperMagic, 1, container.data(), nullptr};
    CUmodule module = nullptr;
    const CUresult loaded = cuModuleLoadData(&module, &wrapper);
    if (loaded != CUDA_SUCCESS) return loaded;
    CUfunction function = nullptr;
    const CUresult found = cuModuleGetFunction(&function, module, "k");
    CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
    return found;
  };
  CHECK(load("mov.u32 %r1, %r2;") == CUDA_SUCCESS);
  CHECK(load("quux.u32 %r1, %r2;") == CUDA_SUCCESS);  // refused when it is launched
  CHECK(load("@%nobody mov.u32 %r1, %r2;") == CUDA_ERROR_INVALID_PTX);
  CHECK(load("mov.u32 %r1, %nobody;") == CUDA_ERROR_INVALID_PTX);
  CHECK(load("add.u32 %r1, %r2;") == CUDA_ERROR_INVALID_PTX);
}

TEST_CASE("Refusals_OfOneFile_AreErrorsOnlyAtFirst", "[errors]") {
  static int code = 0;  // in this program
  std::string message;
  for (int i = 0; i < 3; ++i) {
    CHECK(message.empty());
    CHECK(session::LevelOfRefusal(&code, &message) == session::LogLevel::kError);
  }
  CHECK(message.starts_with(". What else of shim_test has no PTX"));
  message.clear();
  CHECK(session::LevelOfRefusal(&code, &message) == session::LogLevel::kInfo);
  CHECK(message.empty());
  int made_at_run_time = 0;
  for (int i = 0; i < 5; ++i) CHECK(session::LevelOfRefusal(&made_at_run_time, &message) == session::LogLevel::kError);
}

TEST_CASE("MaxRegisters_TakesWholeNumbersOfItsOwnOption", "[errors]") {
  CHECK(session::MaxRegisters("-maxrregcount=32") == 32);
  CHECK(session::MaxRegisters("-O3 --maxrregcount 40 -g") == 40);
  CHECK(session::MaxRegisters("-DNAME=-maxrregcount=32") == 0);
  CHECK(session::MaxRegisters("-maxrregcountry=32") == 0);
  for (const char* wrong :
       {"-maxrregcount", "-maxrregcount=", "-maxrregcount=x", "-maxrregcount=-1", "-maxrregcount=8x", "-maxrregcount=99999999999"})
    CHECK(session::MaxRegisters(wrong) == 0);
  CHECK(session::MaxRegisters("-maxrregcount=" + std::string(1'000'000, '9')) == 0);
}

TEST_CASE("LaunchConfiguration_IsCheckedAgainstTheDevice", "[errors]") {
  const test::Fixture fixture;
  const CUfunction nothing = fixture.Function("nothing");
  CHECK(Launch(nothing, 0, 32) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Launch(nothing, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Launch(nothing, 1, 1025) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(nothing, 1, 65536, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 65, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Launch(fixture.Function("bounded"), 1, 65) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Launch(nothing, 1, 32, 48 * 1024 + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Launch(fixture.Function("shared"), 1, 32, 48 * 1024 - 1023) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Launch(nullptr, 1, 32) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(Launch(nothing, 1, 32, 0, reinterpret_cast<CUstream>(0x1234)) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuLaunchCooperativeKernel(nothing, 1u << 20, 1, 1, 1024, 1, 1, 0, nullptr, nullptr) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CHECK(FakeEngine::Get().launches() == 0);
  CU_OK(Launch(nothing, 1, 32));  // none of it sticks
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("DynamicShared_BeyondTheDefaultNeedsOptIn", "[errors]") {
  const test::Fixture fixture;
  const CUfunction shared = fixture.Function("shared");
  int limit = 0;
  CU_OK(cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared));
  CHECK(limit == 48 * 1024 - 1024);
  CHECK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024));
  CU_OK(Launch(shared, 1, 32, 100 * 1024));
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("KernelFault_IsStickyUntilTheContextIsReset", "[errors]") {
  const test::Fixture fixture;
  FakeEngine::Get().set_body([](const exec::LaunchParams&) {
    exec::LaunchFault fault;
    fault.kind = exec::FaultKind::kIllegalAddress;
    return fault;
  });
  const CUfunction nothing = fixture.Function("nothing");
  CU_OK(Launch(nothing, 1, 32));
  CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  FakeEngine::Get().set_body(nullptr);
  CHECK(Launch(nothing, 1, 32) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr pointer = 0;
  CHECK(cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CUcontext current = nullptr;
  CU_OK(cuCtxGetCurrent(&current));
  CU_OK(cuDevicePrimaryCtxReset(0));
  CU_OK(cuMemAlloc_v2(&pointer, 16));
  CU_OK(cuCtxSynchronize());
}

TEST_CASE("FaultKinds_MapToDriverErrors", "[errors]") {
  using exec::FaultKind;
  const std::pair<FaultKind, CUresult> kinds[] = {{FaultKind::kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS},
                                                  {FaultKind::kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION},
                                                  {FaultKind::kTrap, CUDA_ERROR_LAUNCH_FAILED},
                                                  {FaultKind::kAssert, CUDA_ERROR_ASSERT},
                                                  {FaultKind::kStackOverflow, CUDA_ERROR_LAUNCH_FAILED},
                                                  {FaultKind::kInvalidPc, CUDA_ERROR_INVALID_PC},
                                                  {FaultKind::kDeadlock, CUDA_ERROR_LAUNCH_TIMEOUT}};
  for (const auto& [kind, status] : kinds) {
    const test::Fixture fixture;
    FakeEngine::Get().set_body([kind = kind](const exec::LaunchParams&) {
      exec::LaunchFault fault;
      fault.kind = kind;
      return fault;
    });
    CU_OK(Launch(fixture.Function("nothing"), 1, 32));
    CHECK(cuStreamSynchronize(nullptr) == status);
  }
}

TEST_CASE("Calls_WithoutContextOrInit_SayWhatIsMissing", "[errors]") {
  const test::Fixture fixture;
  std::thread([] {
    CUdeviceptr pointer = 0;
    CHECK(cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_INVALID_CONTEXT);
    CUcontext context = reinterpret_cast<CUcontext>(1);
    CU_OK(cuCtxGetCurrent(&context));
    CHECK(context == nullptr);
    CHECK(cuCtxPopCurrent_v2(&context) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)) == CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

TEST_CASE("Modules_RefuseWhatTheyCannotRun", "[errors]") {
  const test::Fixture fixture;
  CUmodule module = nullptr;
  char log[512] = "";
  CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CHECK(cuModuleLoadDataEx(&module, ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry broken( { ret; }\n", 2, keys, values) ==
        CUDA_ERROR_INVALID_PTX);
  CHECK(std::strstr(log, ":4:") != nullptr);  // names the line
  CHECK(reinterpret_cast<std::uintptr_t>(values[1]) == std::strlen(log));
  CHECK(cuModuleLoadData(&module, "hello") == CUDA_ERROR_INVALID_PTX);
  CHECK(cuModuleLoad(&module, "/nonexistent") == CUDA_ERROR_FILE_NOT_FOUND);
  CUfunction function = nullptr;
  CHECK(cuModuleGetFunction(&function, fixture.module, "missing") == CUDA_ERROR_NOT_FOUND);
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
  CHECK(cuModuleGetGlobal_v2(&pointer, &bytes, fixture.module, "missing") == CUDA_ERROR_NOT_FOUND);
  CU_OK(cuModuleGetGlobal_v2(&pointer, &bytes, fixture.module, "table"));
  CHECK(bytes == 64);
}

TEST_CASE("ModuleFiles_ThatEndTooEarly_AreRefused", "[errors]") {
  const test::Fixture fixture;
  const std::string path = std::filesystem::temp_directory_path() / ("gridloom-module-" + std::to_string(getpid()));
  const auto load = [&](std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    const CUresult loaded = cuModuleLoad(&module, path.c_str());
    CHECK(cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) == loaded);
    return loaded;
  };
  CHECK(load("") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load("hi") == CUDA_ERROR_INVALID_PTX);
  CHECK(load("\x7f"
             "ELF") == CUDA_ERROR_INVALID_IMAGE);
  // A fat binary that says it has a gigabyte; a wrapper, whose pointers mean nothing in a file.
  const std::uint64_t container[] = {0x0010'0001'BA55'ED50, 1 << 30};
  CHECK(load({reinterpret_cast<const char*>(container), sizeof container}) == CUDA_ERROR_INVALID_IMAGE);
  const std::uint64_t wrapper[] = {0x0000'0001'4662'43B1, 0x1234'5678, 0};
  CHECK(load({reinterpret_cast<const char*>(wrapper), sizeof wrapper}) == CUDA_ERROR_INVALID_IMAGE);
  std::filesystem::remove(path);
  CUmodule module = nullptr;
  CHECK(cuModuleLoad(&module, "/") == CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_CASE("Names_CoverEveryStatus", "[errors]") {
  const char* text = nullptr;
  CU_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  CHECK(std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CU_OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::string(text) == "out of memory");
  CHECK(cuGetErrorString(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}
