// STN (Parboil, stencil): seven-point Jacobi steps on a regular 3D grid. A CTA marches through all planes with a tile
// of 64x4 columns, two a thread: the current plane is in shared memory, those below and above are in registers. A CTA
// has only its tile to do with, but what it touches lies between the first plane and the last: from the lowest address
// to the highest that is nearly all there is.
#include "crcs/program.h"

constexpr int kThreadsX = 32, kThreadsY = 4, kColumns = 2, kTileX = kThreadsX * kColumns;
constexpr float kCentre = 1.0f / 6, kNeighbour = 1.0f / 36;

__host__ __device__ inline float Next(float below, float above, float left, float right, float back, float front,
                                      float centre) {
  return fmaf(kNeighbour, below + above + left + right + back + front, -(kCentre * centre));
}

__global__ void __launch_bounds__(kThreadsX* kThreadsY) March(const float* in, float* out, int nx, int ny, int nz) {
  extern __shared__ float tile[];  // kThreadsY rows of kTileX
  const int y = blockIdx.y * kThreadsY + threadIdx.y, plane = nx * ny;
  float below[kColumns] = {}, centre[kColumns] = {}, above[kColumns] = {};
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int x = blockIdx.x * kTileX + c * kThreadsX + threadIdx.x;
    if (x >= nx || y >= ny) continue;
    below[c] = in[y * nx + x];
    centre[c] = in[plane + y * nx + x];
  }
#pragma unroll 1
  for (int z = 1; z < nz - 1; ++z) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) tile[threadIdx.y * kTileX + c * kThreadsX + threadIdx.x] = centre[c];
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int tile_x = c * kThreadsX + threadIdx.x, x = blockIdx.x * kTileX + tile_x;
      if (x >= nx || y >= ny) continue;
      const int at = z * plane + y * nx + x, tile_at = threadIdx.y * kTileX + tile_x;
      above[c] = in[at + plane];
      if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1) continue;
      const float left = tile_x > 0 ? tile[tile_at - 1] : in[at - 1];
      const float right = tile_x < kTileX - 1 ? tile[tile_at + 1] : in[at + 1];
      const float back = threadIdx.y > 0 ? tile[tile_at - kTileX] : in[at - nx];
      const float front = threadIdx.y < kThreadsY - 1 ? tile[tile_at + kTileX] : in[at + nx];
      out[at] = Next(below[c], above[c], left, right, back, front, centre[c]);
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      below[c] = centre[c];
      centre[c] = above[c];
    }
  }
}

/// The points at the border keep their values.
std::vector<float> Steps(std::vector<float> grid, int nx, int ny, int nz, int steps) {
  std::vector<float> next = grid;
  const int plane = nx * ny;
  for (int step = 0; step < steps; ++step, grid.swap(next)) {
    for (int z = 1; z < nz - 1; ++z) {
      for (int y = 1; y < ny - 1; ++y) {
        for (int x = 1; x < nx - 1; ++x) {
          const int at = z * plane + y * nx + x;
          next[at] = Next(grid[at - plane], grid[at + plane], grid[at - 1], grid[at + 1], grid[at - nx], grid[at + nx],
                          grid[at]);
        }
      }
    }
  }
  return grid;
}

int main(int argc, char** argv) {
  // The paper: 128 x 128 x 32, 50 launches of 64 CTAs. A plane has at least a page in the scaled input, too.
  Program program(
      "stn", argc, argv,
      {{"nx", 64, 128, 3, 1024}, {"ny", 64, 128, 3, 1024}, {"nz", 16, 32, 3, 512}, {"launches", 10, 50, 1, 1000}});
  const int nx = program["nx"], ny = program["ny"], nz = program["nz"], launches = program["launches"];
  const std::size_t count = static_cast<std::size_t>(nx) * ny * nz;
  const Input<float> grid(program, "grid", count, [count] { return UniformValues(count, 0, 1, 1); });
  const DeviceArray<float> first(count), second(count);
  const HostArray<float> result(count);

  program.Prelude();
  first.CopyFrom(grid.data());
  second.CopyFrom(grid.data());
  const DeviceArray<float>*in = &first, *out = &second;
  for (int launch = 0; launch < launches; ++launch, std::swap(in, out)) {
    March<<<dim3(Ctas(nx, kTileX), Ctas(ny, kThreadsY)), dim3(kThreadsX, kThreadsY),
            kTileX * kThreadsY * sizeof(float)>>>(*in, *out, nx, ny, nz);
    program.Launched();
  }
  in->CopyTo(result.data());
  program.Postlude(result);

  return program.Finish(Steps(grid.Values(), nx, ny, nz, launches));
}
