// Errors as a driver reports them.
#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "interpose/objects/ptx_sources.h"
#include "interpose/objects/refused_code.h"
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

constexpr std::uint32_t kSmOfDevice = 90;

/// A container with machine code alone, of a kernel k.
image::testing::Buffer CubinOf(std::uint32_t sm) {
  const auto cubin =
      image::testing::MakeElf(ET_EXEC, 190, {{".text.k", image::testing::Buffer(48, std::byte{7})}}, sm << 8, 8);
  return image::testing::MakeContainer(
      {image::testing::EntrySpec{.kind = 2, .sm = sm, .payload = std::string(image::AsText(cubin))}});
}

}  // namespace

// What a compiler puts into a binary is right; a binary may be made by somebody else.
TEST_CASE("Images_WhosePtxNoCompilerWrote_AreRefused_AndNewerWordsAreNot", "[errors]") {
  const test::Fixture fixture;
  const auto load = [](const std::string& line) {
    const std::string ptx =
        ".version 8.0\n.target sm_70\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .pred %p<2>; " + line +
        " ret; }\n";
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

TEST_CASE("MachineCodeWithoutPtx_Loads_AndIsRefusedWhenItIsLaunched", "[errors]") {
  const test::Fixture fixture;
  const auto container = CubinOf(kSmOfDevice);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  unsigned count = 0;
  CU_OK(cuLibraryLoadData(&library, container.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CU_OK(cuLibraryGetKernel(&kernel, library, "k"));
  CU_OK(cuLibraryGetKernelCount(&count, library));
  CU_OK(cuModuleLoadData(&module, container.data()));
  CU_OK(cuModuleGetFunction(&function, module, "k"));
  CHECK(count == 1);
  CHECK(cuLibraryGetKernel(&kernel, library, "nobody") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleGetFunction(&function, module, "nobody") == CUDA_ERROR_NOT_FOUND);
  CHECK(Launch(function, 1, 1) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(Launch(reinterpret_cast<CUfunction>(kernel), 1, 1) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CUdeviceptr pointer = 0;
  CHECK(cuLibraryGetGlobal(&pointer, nullptr, library, "v") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CU_OK(cuCtxSynchronize());  // none of it sticks
  CU_OK(cuLibraryUnload(library));
  CU_OK(cuModuleUnload(module));
}

TEST_CASE("Modules_WithMachineCodeOfOtherDevicesOnly_AreNotLoaded_LibrariesAre", "[errors]") {
  const test::Fixture fixture;
  for (const std::uint32_t sm : {75u, 100u}) {
    const auto container = CubinOf(sm);
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, container.data()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CU_OK(cuLibraryLoadData(&library, container.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CU_OK(cuLibraryGetKernel(&kernel, library, "k"));
    CHECK(Launch(reinterpret_cast<CUfunction>(kernel), 1, 1) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CU_OK(cuLibraryUnload(library));
  }
}

TEST_CASE("Refusals_OfOneFile_AreErrorsOnlyAtFirst", "[errors]") {
  std::string message;
  for (int i = 0; i < 3; ++i) {
    CHECK(message.empty());
    CHECK(session::LevelOfRefusal("liblibrary.so", &message) == session::LogLevel::kError);
  }
  CHECK(message.starts_with(". What else of liblibrary.so has no PTX"));
  message.clear();
  CHECK(session::LevelOfRefusal("liblibrary.so", &message) == session::LogLevel::kInfo);
  CHECK(message.empty());
  // Made at run time.
  for (int i = 0; i < 5; ++i) CHECK(session::LevelOfRefusal("", &message) == session::LogLevel::kError);
}

TEST_CASE("MaxRegisters_TakesWholeNumbersOfItsOwnOption", "[errors]") {
  CHECK(session::MaxRegisters("-maxrregcount=32") == 32);
  CHECK(session::MaxRegisters("-O3 --maxrregcount 40 -g") == 40);
  CHECK(session::MaxRegisters("-DNAME=-maxrregcount=32") == 0);
  CHECK(session::MaxRegisters("-maxrregcountry=32") == 0);
  for (const char* wrong : {"-maxrregcount", "-maxrregcount=", "-maxrregcount=x", "-maxrregcount=-1",
                            "-maxrregcount=8x", "-maxrregcount=99999999999"})
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
  CHECK(cuLaunchCooperativeKernel(nothing, 1u << 20, 1, 1, 1024, 1, 1, 0, nullptr, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
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
  CHECK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20) ==
        CUDA_ERROR_INVALID_VALUE);
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
  CHECK(cuModuleLoadDataEx(&module, ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry broken( { ret; }\n",
                           2, keys, values) == CUDA_ERROR_INVALID_PTX);
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

namespace {

constexpr const char* kRegisters =
    ".reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .pred %p<4>; ld.param.u64 %rd1, "
    "[out];\n";

std::string TextModule(const std::string& version, const std::string& declarations, const std::string& body) {
  return ".version " + version + "\n.target sm_90\n.address_size 64\n" + declarations +
         "\n.entry k(.param .u64 out) {\n" + kRegisters + body + "\nret;\n}\n.entry other(.param .u64 out) {\n" +
         kRegisters + "st.global.u32 [%rd1], 7;\nret;\n}\n";
}

CUresult LoadText(const std::string& text) {
  CUmodule module = nullptr;
  const CUresult loaded = cuModuleLoadData(&module, text.c_str());
  if (loaded == CUDA_SUCCESS) CU_OK(cuModuleUnload(module));
  return loaded;
}

}  // namespace

// Each as ptxas 13.5 takes or refuses it.
TEST_CASE("Modules_ThatDriversRefuse_AreRefused", "[errors]") {
  const test::Fixture fixture;
  const auto in_body = [](const std::string& body) { return LoadText(TextModule("9.0", "", body)); };
  const auto in_module = [](const std::string& text, const std::string& body = "") {
    return LoadText(TextModule("9.0", text, body));
  };
  CHECK(in_body("") == CUDA_SUCCESS);
  // Versions.
  CHECK(LoadText(TextModule("9.5", "", "")) == CUDA_SUCCESS);
  CHECK(LoadText(TextModule("9.6", "", "")) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(LoadText(TextModule("99.0", "", "")) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  // Functions that are defined nowhere.
  const std::string call = "{ .param .u32 p; st.param.u32 [p], 1; call f, (p); }";
  const std::string calls = ".func g() { " + call + " ret; }";
  CHECK(in_module(".extern .func f(.param .u32 x);", call) == CUDA_ERROR_INVALID_PTX);
  CHECK(in_module(".func f(.param .u32 x);", call) == CUDA_ERROR_INVALID_PTX);
  CHECK(in_module(".extern .func f(.param .u32 x);" + calls, "call g, ();") == CUDA_ERROR_INVALID_PTX);
  CHECK(in_module(".func f(.param .u32 x); .func f(.param .u32 x) { ret; }" + calls, "call g, ();") == CUDA_SUCCESS);
  CHECK(in_module(".extern .func (.param .u32 r) vprintf(.param .b64 a, .param .b64 b);",
                  "{ .param .b64 a, b; .param .b32 r; st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; call (r), "
                  "vprintf, (a, b); }") == CUDA_SUCCESS);
  // Memory.
  CHECK(in_body(".shared .b8 s[49152]; st.shared.u32 [s], 1;") == CUDA_SUCCESS);
  CHECK(in_body(".shared .b8 s[49153]; st.shared.u32 [s], 1;") == CUDA_ERROR_INVALID_PTX);
  CHECK(in_module(".shared .b8 s[49153];") == CUDA_SUCCESS);  // nobody uses it
  const std::string both = ".shared .b8 s[30000]; .shared .b8 t[30000];";
  CHECK(in_module(both, "st.shared.u32 [s], 1; st.shared.u32 [t], 1;") == CUDA_ERROR_INVALID_PTX);
  CHECK(in_module(both + ".entry k2() { st.shared.u32 [t], 1; ret; }", "st.shared.u32 [s], 1;") == CUDA_SUCCESS);
  CHECK(in_module(".const .b8 c[65536];") == CUDA_SUCCESS);
  CHECK(in_module(".const .b8 c[65537];") == CUDA_ERROR_INVALID_PTX);
  CHECK(in_module(".const .b8 c[40000]; .const .b8 d[40000];") == CUDA_ERROR_INVALID_PTX);
  // Instructions.
  for (const char* type : {"f16", "bf16"}) {
    CHECK(in_body("atom.global.add." + std::string(type) + " %h1, [%rd1], %h2;") == CUDA_ERROR_INVALID_PTX);
    CHECK(in_body("red.global.add." + std::string(type) + "x2 [%rd1], %r2;") == CUDA_ERROR_INVALID_PTX);
    CHECK(in_body("atom.global.add.noftz." + std::string(type) + " %h1, [%rd1], %h2;") == CUDA_SUCCESS);
    CHECK(in_body("red.global.add.noftz." + std::string(type) + "x2 [%rd1], %r2;") == CUDA_SUCCESS);
  }
  for (const char* right : {"eq.b32", "ne.b32", "lt.u32", "lo.u32", "hs.u32", "ge.s32"})
    CHECK(in_body("setp." + std::string(right) + " %p1, %r1, %r2;") == CUDA_SUCCESS);
  for (const char* wrong : {"lt.b32", "ge.b32", "lo.b32", "equ.b32", "ltu.u32", "num.u32", "lo.s32", "nan.s32"}) {
    CHECK(in_body("setp." + std::string(wrong) + " %p1, %r1, %r2;") == CUDA_ERROR_INVALID_PTX);
    const std::string of = wrong;
    CHECK(in_body("set." + of.substr(0, of.find('.')) + ".u32" + of.substr(of.find('.')) + " %r1, %r1, %r2;") ==
          CUDA_ERROR_INVALID_PTX);
  }
  CHECK(in_body("setp.ltu.f32 %p1, %f1, %f2;") == CUDA_SUCCESS);
  CHECK(in_body("setp.lo.f32 %p1, %f1, %f2;") == CUDA_ERROR_INVALID_PTX);
}

// What may be of a newer PTX stops the kernel that has it (UnknownWords_AreRefusedByNameWhereTheyAreLaunched), not its
// module.
TEST_CASE("Modules_OfANewerPtx_AreLoaded", "[errors]") {
  const test::Fixture fixture;
  for (const char* body :
       {"multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%rd2], %r1;", "mov.u32 %r1, %novelty;",
        "quux.u32 %r1, %r2;", "add.odd.u32 %r1, %r2, %r3;", "add.u4x8 %r1, %r2, %r3;", "add.u32 %r1, %r2, %r3, %r1;"}) {
    INFO(body);
    CHECK(LoadText(TextModule("9.0", "", body)) == CUDA_ERROR_INVALID_PTX);  // all words of that version are known
    CHECK(LoadText(TextModule("9.5", "", body)) == CUDA_SUCCESS);            // refused where it is launched
  }
  CHECK(LoadText(TextModule("9.5", "", "mov.u32 %r1, nobody;")) == CUDA_ERROR_INVALID_PTX);
  CHECK(LoadText(TextModule("9.5", "", "setp.lt.b32 %p1, %r1, %r2;")) == CUDA_ERROR_INVALID_PTX);
  CHECK(LoadText(TextModule("9.5", ".extern .global .u32 elsewhere;", "ld.global.u32 %r1, [elsewhere];")) ==
        CUDA_SUCCESS);
}

TEST_CASE("ModuleFiles_ThatEndTooEarly_AreRefused", "[errors]") {
  const test::Fixture fixture;
  const std::string path = std::filesystem::temp_directory_path() / ("gridloom-module-" + std::to_string(getpid()));
  const auto load = [&](std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
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
