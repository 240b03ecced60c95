// LPC (CUDA example, Laplace's equation in two dimensions): Jacobi steps on a square; each inner cell becomes the mean
// of its four neighbours, the border keeps its values. No shared memory: five global accesses a thread.
#include "crcs/program.h"

constexpr int kTile = 16;

__global__ void __launch_bounds__(kTile* kTile) Relax(const float* in, float* out, int size) {
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y, at = y * size + x;
  if (x == 0 || y == 0 || x >= size - 1 || y >= size - 1) return;
  out[at] = 0.25f * (in[at - 1] + in[at + 1] + in[at - size] + in[at + size]);
}

/// One side at 1, the others at 0; inside, a first guess that is far from the solution everywhere.
std::vector<float> FirstGuess(int size) {
  std::vector<float> cells = UniformValues(static_cast<std::size_t>(size) * size, 0, 1, 1);
  for (int i = 0; i < size; ++i) {
    cells[i * size] = cells[i * size + size - 1] = cells[(size - 1) * size + i] = 0;
    cells[i] = 1;
  }
  return cells;
}

std::vector<float> Steps(std::vector<float> cells, int size, int steps) {
  std::vector<float> next = cells;
  for (int step = 0; step < steps; ++step, cells.swap(next)) {
    for (int y = 1; y < size - 1; ++y) {
      for (int x = 1; x < size - 1; ++x) {
        const float* const cell = &cells[y * size + x];
        next[y * size + x] = 0.25f * (cell[-1] + cell[1] + cell[-size] + cell[size]);
      }
    }
  }
  return cells;
}

int main(int argc, char** argv) {
  // The paper: 256 x 256, so 256 CTAs, 10 launches. That is little enough to be the scaled input, too.
  Program program("lpc", argc, argv, {{"size", 256, 256, 3, 8192}, {"launches", 10, 10, 1, 1000}});
  const int size = program["size"], launches = program["launches"], ctas = Ctas(size, kTile);
  const std::size_t count = static_cast<std::size_t>(size) * size;
  const Input<float> cells(program, "cells", count, [size] { return FirstGuess(size); });
  const DeviceArray<float> first(count), second(count);
  const HostArray<float> result(count);

  program.Prelude();
  first.CopyFrom(cells.data());
  second.CopyFrom(cells.data());
  const DeviceArray<float>*in = &first, *out = &second;
  for (int launch = 0; launch < launches; ++launch, std::swap(in, out)) {
    Relax<<<dim3(ctas, ctas), dim3(kTile, kTile)>>>(*in, *out, size);
    program.Launched();
  }
  in->CopyTo(result.data());
  program.Postlude(result);

  return program.Finish(Steps(cells.Values(), size, launches));
}
