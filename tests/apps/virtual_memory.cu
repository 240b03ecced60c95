// Virtual memory management: reserve, create, map, access rights, the same memory mapped twice, growing a range.
#include <fcntl.h>
#include <unistd.h>

#include "driver.h"

__global__ void Fill(int* v, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = value + i;
}

int main() {
  CU(cudaFree(nullptr));
  CUmemAllocationProp property = {};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t granule = 0;
  DRV(cuMemGetAllocationGranularity(&granule, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  True("granularity", granule >= 4096 && (granule & (granule - 1)) == 0);
  CUdeviceptr range, alias;
  DRV(cuMemAddressReserve(&range, 4 * granule, 0, 0, 0));
  DRV(cuMemAddressReserve(&alias, granule, 0, 0, 0));
  CUmemGenericAllocationHandle handles[2];
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (int k = 0; k < 2; ++k) {
    DRV(cuMemCreate(&handles[k], granule, &property, 0));
    DRV(cuMemMap(range + k * granule, granule, 0, handles[k], 0));
  }
  DRV(cuMemSetAccess(range, 2 * granule, &access, 1));
  const int n = static_cast<int>(2 * granule / sizeof(int));
  Fill<<<(n + 255) / 256, 256>>>(reinterpret_cast<int*>(range), 5, n);
  CU_LAUNCHED();
  std::vector<int> got(n);
  DRV(cuMemcpyDtoH(got.data(), range, n * sizeof(int)));  // across both pieces
  for (int i = 0; i < n; i += 997) Same("mapped", i, got[i], 5 + i);

  DRV(cuMemMap(alias, granule, 0, handles[1], 0));
  DRV(cuMemSetAccess(alias, granule, &access, 1));
  Fill<<<1, 64>>>(reinterpret_cast<int*>(alias), -1000, 64);
  CU_LAUNCHED();
  int value = 0;
  DRV(cuMemcpyDtoH(&value, range + granule + 4 * 10, 4));
  Same("alias", 0, value, -990);

  unsigned long long flags = 0;
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  DRV(cuMemGetAccess(&flags, &location, range));
  Same("access", 0, flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  CUmemGenericAllocationHandle again;
  DRV(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
  True("handle", again == handles[0]);
  DRV(cuMemRelease(again));

  // Unmapping keeps the memory as long as it is mapped elsewhere or a handle is held.
  DRV(cuMemUnmap(range + granule, granule));
  DRV(cuMemRelease(handles[1]));
  std::uint64_t types = 7;
  DRV(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, alias));
  Same("not to be exported", 0, types, std::uint64_t{CU_MEM_HANDLE_TYPE_NONE});
  DRV(cuMemcpyDtoH(&value, alias + 4 * 20, 4));
  Same("still there", 0, value, -980);
  DRV(cuMemUnmap(alias, granule));
  DRV(cuMemUnmap(range, granule));
  DRV(cuMemRelease(handles[0]));
  Result("unmapped twice", cuMemUnmap(range, granule), CUDA_SUCCESS);  // a reserved range that has nothing mapped

  // Memory that a file descriptor stands for, which another process could have: here the same one imports it.
  CUmemGenericAllocationHandle mine, theirs;
  Result("not to be shared", cuMemCreate(&mine, granule, &property, 0), CUDA_SUCCESS);
  int descriptor = -1;
  Result("was not asked for",
         cuMemExportToShareableHandle(&descriptor, mine, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
         CUDA_ERROR_INVALID_VALUE);
  DRV(cuMemRelease(mine));
  property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  DRV(cuMemCreate(&mine, granule, &property, 0));
  DRV(cuMemExportToShareableHandle(&descriptor, mine, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  DRV(cuMemImportFromShareableHandle(&theirs, reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor)),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  DRV(cuMemMap(range, granule, 0, mine, 0));
  DRV(cuMemMap(alias, granule, 0, theirs, 0));
  DRV(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, alias + 8));
  Same("may be exported", 0, types, std::uint64_t{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR});
  DRV(cuMemSetAccess(range, granule, &access, 1));
  DRV(cuMemSetAccess(alias, granule, &access, 1));
  DRV(cuMemRelease(mine));
  Fill<<<1, 64>>>(reinterpret_cast<int*>(range), 7000, 64);
  CU_LAUNCHED();
  DRV(cuMemcpyDtoH(&value, alias + 4 * 30, 4));
  Same("imported", 0, value, 7030);
  DRV(cuMemUnmap(range, granule));
  DRV(cuMemcpyDtoH(&value, alias + 4 * 31, 4));
  Same("imported, alone", 0, value, 7031);
  DRV(cuMemUnmap(alias, granule));
  DRV(cuMemRelease(theirs));
  const int other = open("/dev/null", O_RDONLY);
  True("no such memory",
       cuMemImportFromShareableHandle(&theirs, reinterpret_cast<void*>(static_cast<std::uintptr_t>(other)),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
  close(other);
  DRV(cuMemAddressFree(range, 4 * granule));
  DRV(cuMemAddressFree(alias, granule));
  return Verdict();
}
