// ST: seven-point Jacobi step on a regular 3D grid. A CTA has a tile of 32x4 columns and marches through the planes
// with three of its column's values in registers; the neighbours within a plane are read from memory.
#include "workload.h"

constexpr int kTileX = 32, kTileY = 4;
constexpr float kCentre = 1.0f / 6, kNeighbour = 1.0f / 36;

__global__ void __launch_bounds__(kTileX* kTileY)
    Stencil(const float* in, float* out, int nx, int ny, int nz, int planes) {
  const int x = blockIdx.x * kTileX + threadIdx.x, y = blockIdx.y * kTileY + threadIdx.y;
  if (x == 0 || y == 0 || x >= nx - 1 || y >= ny - 1) return;
  const int plane = nx * ny;
  const int first = max(blockIdx.z * planes, 1), end = min((blockIdx.z + 1) * planes, nz - 1);
  int at = first * plane + y * nx + x;
  float below = in[at - plane], centre = in[at];
#pragma unroll 1
  for (int z = first; z < end; ++z, at += plane) {
    const float above = in[at + plane];
    out[at] = kNeighbour * (below + above + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx]) - kCentre * centre;
    below = centre;
    centre = above;
  }
}

int main(int argc, char** argv) {
  // The paper: 134,217,728 = 512^3 points with 128 x 16384 threads, so 64 planes a thread.
  const Sizes sizes(argc, argv, {{"nx", 256, 512}, {"ny", 128, 512}, {"nz", 32, 512}, {"planes", 16, 64}});
  const int nx = sizes["nx"], ny = sizes["ny"], nz = sizes["nz"], planes = sizes["planes"];
  std::vector<float> in(static_cast<std::size_t>(nx) * ny * nz);
  Random random(1);
  for (float& value : in) value = random.Uniform(0, 1);
  const Buffer<float> device_in(in), device_out(in);
  const dim3 grid((nx + kTileX - 1) / kTileX, (ny + kTileY - 1) / kTileY, (nz + planes - 1) / planes);
  Stencil<<<grid, dim3(kTileX, kTileY)>>>(device_in, device_out, nx, ny, nz, planes);
  CU_LAUNCHED();
  const std::vector<float> out = device_out.Read();
  const std::size_t row = nx, plane = static_cast<std::size_t>(nx) * ny;
  for (std::size_t i = 0; i < out.size(); i += CheckEvery(out.size(), 4'000'000)) {
    const std::size_t x = i % row, y = i / row % ny, z = i / plane;
    if (x == 0 || y == 0 || z == 0 || x == row - 1 || y == static_cast<std::size_t>(ny) - 1 ||
        z == static_cast<std::size_t>(nz) - 1) {
      Same("edge", static_cast<long>(i), out[i], in[i]);
      continue;
    }
    const double sum =
        static_cast<double>(in[i - plane]) + in[i + plane] + in[i - 1] + in[i + 1] + in[i - row] + in[i + row];
    Near("out", static_cast<long>(i), out[i], kNeighbour * sum - kCentre * in[i], 1e-5, 1e-6);
  }
  PrintDigest("out", out);
  return Verdict();
}
