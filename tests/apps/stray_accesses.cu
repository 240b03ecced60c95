// Accesses outside of allocations that a GPU does not notice, because its memory is mapped in pages of 2 MiB: a program
// that makes them by mistake runs there, and must run here. (illegal_address.cu has those that end a program
// everywhere.)
#include "app.h"

__global__ void Fill(int* p, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) p[i] = i + 1;
}
__global__ void Copy(const int* from, int* to, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) to[i] = from[i];
}
/// Every thread another distance, so that the accesses are not in a row.
__global__ void Scatter(int* p, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) p[static_cast<long>(i) * 7919 % count] = i;
}
/// A stencil that reads the row above the first one and uses nothing of it.
__global__ void ReadBefore(const float* p, float* out, int row) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float above = p[i - row];
  out[i] = i < row ? p[i] : p[i] + above;
}

int main() {
  const int room = 768, count = 20000;
  {
    Buffer<int> copy(count), little(room);  // the last one: nothing of the program's comes behind it
    Fill<<<4, 256>>>(little, count);
    CU_LAUNCHED();
    Copy<<<4, 256>>>(little, copy, count);
    CU_LAUNCHED();
    const auto got = copy.Read();
    for (int i = 0; i < count; ++i) Same("past the end", i, got[i], i + 1);
    Scatter<<<(count + 255) / 256, 256>>>(little, count);
    CU_LAUNCHED();
  }
  // Memory that is handed out later is usable as ever.
  Buffer<int> again(count);
  Fill<<<4, 256>>>(again, count);
  CU_LAUNCHED();
  const auto filled = again.Read();
  for (int i = 0; i < count; ++i) Same("again", i, filled[i], i + 1);

  const int row = 512, rows = 2048;
  std::vector<float> image(static_cast<std::size_t>(row) * rows);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 1000);
  Buffer<float> other(image), large(image), out(image.size());
  ReadBefore<<<row * rows / 256, 256>>>(large, out, row);
  CU_LAUNCHED();
  const auto result = out.Read();
  for (std::size_t i = 0; i < image.size(); i += 97)
    Same("before the start", static_cast<long>(i), result[i], i < row ? image[i] : image[i] + image[i - row]);
  return Verdict();
}
