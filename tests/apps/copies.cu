// Copies and sets of one, two and three dimensions: pitches, offsets, arrays, default direction, overlapping kinds,
// errors, and when the host goes on.
#include "spin.h"

// Copies from host memory to host memory, and fills of pinned memory by calls without a stream, are done when the call
// has answered.
void HostMemoryIsWaitedFor() {
  int* cell = nullptr;
  int* pinned = nullptr;
  static int registered[1024];
  CU(cudaMalloc(&cell, sizeof(int)));
  CU(cudaHostAlloc(&pinned, 2 * sizeof(int), cudaHostAllocDefault));
  CU(cudaHostRegister(registered, sizeof registered, cudaHostRegisterDefault));
  cudaStream_t stream;
  CU(cudaStreamCreate(&stream));
  constexpr long long kTime = 30'000'000;
  for (int* const to : {pinned + 1, registered}) {
    pinned[0] = 41, *to = 0;
    SpinThenStore<<<1, 1, 0, stream>>>(cell, 1, kTime);
    CU(cudaMemcpyAsync(to, pinned, sizeof(int), cudaMemcpyDefault, stream));
    Same("host to host, async", 0, *static_cast<volatile int*>(to), 41);
    SpinThenStore<<<1, 1, 0, stream>>>(cell, 1, kTime);
    CU(cudaMemset(to, 1, sizeof(int)));
    Same("fill of host memory", 0, *static_cast<volatile int*>(to), 0x01010101);
  }
  CU(cudaStreamDestroy(stream));
  CU(cudaHostUnregister(registered));
  CU(cudaFreeHost(pinned));
  CU(cudaFree(cell));
}

int main() {
  const int width = 45, height = 13, depth = 6;
  std::vector<int> host(width * height), back(width * height, -1);
  for (int i = 0; i < width * height; ++i) host[i] = i * 3;
  const std::size_t row = width * sizeof(int);
  int *a = nullptr, *b = nullptr;
  std::size_t pitch_a = 0, pitch_b = 0;
  CU(cudaMallocPitch(&a, &pitch_a, row, height));
  CU(cudaMallocPitch(&b, &pitch_b, row + 100, height + 3));
  True("pitch", pitch_a >= row && pitch_a % 32 == 0 && pitch_b >= row + 100);
  CU(cudaMemcpy2D(a, pitch_a, host.data(), row, row, height, cudaMemcpyHostToDevice));
  CU(cudaMemcpy2D(reinterpret_cast<char*>(b) + pitch_b + 8, pitch_b, a, pitch_a, row, height,
                  cudaMemcpyDeviceToDevice));
  CU(cudaMemcpy2D(back.data(), row, reinterpret_cast<char*>(b) + pitch_b + 8, pitch_b, row, height, cudaMemcpyDefault));
  for (int i = 0; i < width * height; ++i) Same("2D", i, back[i], host[i]);
  CU(cudaMemset2D(a, pitch_a, 0x11, 20, 4));
  CU(cudaMemcpy2D(back.data(), row, a, pitch_a, row, height, cudaMemcpyDeviceToHost));
  for (int i = 0; i < width * height; ++i)
    Same("set 2D", i, back[i], i % width < 5 && i / width < 4 ? 0x11111111 : host[i]);

  cudaPitchedPtr volume;
  CU(cudaMalloc3D(&volume, make_cudaExtent(row, height, depth)));
  CU(cudaMemset3D(volume, 0, make_cudaExtent(row, height, depth)));
  std::vector<int> block(width * height * depth), result(block.size(), -1);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<int>(i) + 1;
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(block.data(), row, width, height), copy.dstPtr = volume;
  copy.srcPos = make_cudaPos(2 * sizeof(int), 1, 1), copy.dstPos = make_cudaPos(4 * sizeof(int), 3, 0);
  copy.extent = make_cudaExtent(30 * sizeof(int), 8, 4), copy.kind = cudaMemcpyHostToDevice;
  CU(cudaMemcpy3D(&copy));
  cudaMemcpy3DParms whole = {};
  whole.srcPtr = volume, whole.dstPtr = make_cudaPitchedPtr(result.data(), row, width, height);
  whole.extent = make_cudaExtent(row, height, depth), whole.kind = cudaMemcpyDeviceToHost;
  CU(cudaMemcpy3D(&whole));
  for (int z = 0; z < depth; ++z)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const bool inside = x >= 4 && x < 34 && y >= 3 && y < 11 && z < 4;
        Same("3D", x, result[(z * height + y) * width + x],
             inside ? block[((z + 1) * height + y - 2) * width + x - 2] : 0);
      }

  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  CU(cudaMallocArray(&array, &format, width, height));
  CU(cudaMemcpy2DToArray(array, 0, 0, host.data(), row, row, height, cudaMemcpyHostToDevice));
  std::vector<int> part(10 * 5);
  CU(cudaMemcpy2DFromArray(part.data(), 10 * sizeof(int), array, 7 * sizeof(int), 2, 10 * sizeof(int), 5,
                           cudaMemcpyDeviceToHost));
  for (int i = 0; i < 50; ++i) Same("array", i, part[i], host[(i / 10 + 2) * width + 7 + i % 10]);
  CU(cudaFreeArray(array));

  // Host to host through the runtime, bytes at odd offsets, zero bytes, 16- and 32-bit sets through the driver's names.
  std::vector<char> text(100, 'x'), other(100, 'y');
  CU(cudaMemcpy(other.data() + 3, text.data() + 1, 50, cudaMemcpyHostToHost));
  True("host to host", other[2] == 'y' && other[3] == 'x' && other[52] == 'x' && other[53] == 'y');
  char* bytes = nullptr;
  CU(cudaMalloc(&bytes, 1001));
  CU(cudaMemset(bytes, 'a', 1001));
  CU(cudaMemcpy(bytes + 501, text.data(), 77, cudaMemcpyHostToDevice));
  CU(cudaMemcpy(bytes, bytes + 499, 10, cudaMemcpyDeviceToDevice));
  CU(cudaMemcpy(other.data(), bytes, 10, cudaMemcpyDeviceToHost));
  True("odd offsets", std::memcmp(other.data(), "aaxxxxxxxx", 10) == 0);
  CU(cudaMemcpy(bytes, nullptr, 0, cudaMemcpyHostToDevice));
  Error("null", cudaMemcpy(nullptr, text.data(), 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  Error("width over pitch", cudaMemcpy2D(a, 8, host.data(), row, row, 2, cudaMemcpyHostToDevice),
        cudaErrorInvalidPitchValue);
  cudaGetLastError();
  Error("double free", (cudaFree(bytes), cudaFree(bytes)), cudaErrorInvalidValue);
  cudaGetLastError();
  CU(cudaFree(nullptr));
  HostMemoryIsWaitedFor();
  return Verdict();
}
