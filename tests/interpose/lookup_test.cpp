// Look-up of driver functions by name and version.
#include <cstring>
#include <set>

#include "interpose/api/driver_api.h"
#include "tests/interpose/fixture.h"

using namespace gridloom;
using api::Find;

TEST_CASE("Find_TakesTheNewestVariantThatExistedThen", "[lookup]") {
  CHECK(Find("cuMemAlloc", 2000, false).address == reinterpret_cast<void*>(&cuMemAlloc));
  CHECK(Find("cuMemAlloc", 3010, false).address == reinterpret_cast<void*>(&cuMemAlloc));
  CHECK(Find("cuMemAlloc", 3020, false).address == reinterpret_cast<void*>(&cuMemAlloc_v2));
  CHECK(Find("cuCtxGetDevice", 12090, false).address == reinterpret_cast<void*>(&cuCtxGetDevice));
  CHECK(Find("cuCtxGetDevice", 13000, false).address == reinterpret_cast<void*>(&cuCtxGetDevice_v2));
  CHECK(Find("cuDeviceGetUuid", 9020, false).address == reinterpret_cast<void*>(&cuDeviceGetUuid));
  CHECK(Find("cuStreamGetCaptureInfo", 11030, false).address == reinterpret_cast<void*>(&cuStreamGetCaptureInfo_v2));
  CHECK(Find("cuGetProcAddress", 11030, false).address == reinterpret_cast<void*>(&cuGetProcAddress));
  CHECK(Find("cuGetProcAddress", 12000, false).address == reinterpret_cast<void*>(&cuGetProcAddress_v2));
}

TEST_CASE("Find_PerThread_TakesTheTwinOrThePlainFunction", "[lookup]") {
  CHECK(Find("cuLaunchKernel", 7000, true).address == reinterpret_cast<void*>(&cuLaunchKernel_ptsz));
  CHECK(Find("cuLaunchKernel", 6050, true).address == reinterpret_cast<void*>(&cuLaunchKernel));
  CHECK(Find("cuMemcpyHtoD", 12000, true).address == reinterpret_cast<void*>(&cuMemcpyHtoD_v2_ptds));
  CHECK(Find("cuInit", 12000, true).address == reinterpret_cast<void*>(&cuInit));
}

TEST_CASE("Find_UnknownOrTooOld_SaysWhich", "[lookup]") {
  CHECK(Find("cuNoSuchFunction", 13000, false).status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(Find("", 0, false).status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(Find("cuLibraryLoadData", 11000, false).status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_CASE("GetProcAddress_AnswersBeforeInitAndInBothForms", "[lookup]") {
  void* address = &address;
  CHECK(cuGetProcAddress_v2("cuNoSuchFunction", &address, 13000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
  CHECK(address == nullptr);
  CUdriverProcAddressQueryResult status{};
  CU_OK(cuGetProcAddress_v2("cuLaunchKernel", &address, 13000, 2, &status));
  CHECK(address == reinterpret_cast<void*>(&cuLaunchKernel_ptsz));
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  CU_OK(cuGetProcAddress("cuInit", &address, 11080, 0));
  CHECK(address == reinterpret_cast<void*>(&cuInit));
  CHECK(cuGetProcAddress_v2("cuInit", &address, 13000, 8, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Table_RowsAreSortedAndWhole", "[lookup]") {
  std::set<std::string> symbols;
  std::size_t exports = 0;
  const api::Row* previous = nullptr;
  for (const api::Row& row : api::Table()) {
    CHECK(symbols.insert(row.symbol).second);
    CHECK(row.address != nullptr);
    CHECK((row.twin_address != nullptr) == (*row.twin_suffix != '\0'));
    if (previous != nullptr) {
      const int order = std::strcmp(previous->name, row.name);
      CHECK((order < 0 || (order == 0 && previous->version < row.version)));
    }
    previous = &row;
    exports += row.twin_address != nullptr ? 2 : 1;
  }
  CHECK(exports == 706);
}

TEST_CASE("Unsupported_AnswersNotSupported", "[lookup]") {
  const test::Fixture fixture;
  CUipcMemHandle handle{};
  CHECK(cuIpcGetMemHandle(&handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuCoredumpGetAttribute({}, nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuTensorMapEncodeIm2col(nullptr, {}, 3, nullptr, nullptr, nullptr, nullptr, nullptr, 1, 1, nullptr, {}, {}, {},
                                {}) == CUDA_ERROR_NOT_SUPPORTED);
}
