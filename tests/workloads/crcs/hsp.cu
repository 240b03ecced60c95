// HSP (Rodinia, hotspot): temperatures of a chip over time, a 2D stencil with a second array of the power that each
// cell takes. A launch makes `height` steps on tiles in shared memory, whose useful part is smaller by a border of that
// width.
#include "crcs/program.h"

constexpr int kTile = 16;

/// A chip of 16 mm x 16 mm x 0.5 mm, divided into equal cells, and the longest step of time that keeps the model
/// accurate to 1e-3 K.
struct Chip {
  explicit Chip(int cells) {
    constexpr float kSide = 0.016f, kThickness = 0.0005f, kConductivity = 100, kHeatCapacity = 1.75e6f, kFactor = 0.5f,
                    kMostPower = 3e6f;
    const float cell = kSide / cells;
    const float capacity = kFactor * kHeatCapacity * kThickness * cell * cell;
    const float step = 0.001f / (kMostPower / (kFactor * kThickness * kHeatCapacity));
    per_power = step / capacity;
    per_neighbour = 2 * kConductivity * kThickness;  // cells are square: 1 / (1 / (2 K t))
    per_ambient = kConductivity * cell * cell / kThickness;
  }
  float per_power, per_neighbour, per_ambient;
};

constexpr float kAmbient = 80;

__host__ __device__ inline float Next(const Chip& chip, float centre, float power, float left, float right, float up,
                                      float down) {
  const float sides = fmaf(-2.0f, centre, left + right), ends = fmaf(-2.0f, centre, up + down);
  const float flow =
      fmaf(kAmbient - centre, chip.per_ambient, fmaf(sides, chip.per_neighbour, fmaf(ends, chip.per_neighbour, power)));
  return fmaf(chip.per_power, flow, centre);
}

__global__ void __launch_bounds__(kTile* kTile)
    Heat(const float* power, const float* in, float* out, int size, int height, Chip chip) {
  __shared__ float now[kTile][kTile], next[kTile][kTile], heat[kTile][kTile];
  const int useful = kTile - 2 * height, tx = threadIdx.x, ty = threadIdx.y;
  const int x = static_cast<int>(blockIdx.x) * useful + tx - height,
            y = static_cast<int>(blockIdx.y) * useful + ty - height;
  const bool on_chip = x >= 0 && y >= 0 && x < size && y < size;
  if (on_chip) {
    now[ty][tx] = in[y * size + x];
    heat[ty][tx] = power[y * size + x];
  }
  __syncthreads();
  // Beyond the chip's border it is as warm as at the border.
  const int left = x == 0 ? tx : tx - 1, right = x == size - 1 ? tx : tx + 1, up = y == 0 ? ty : ty - 1,
            down = y == size - 1 ? ty : ty + 1;
  bool known = on_chip;
  for (int step = 1; step <= height; ++step) {
    known = on_chip && tx >= step && ty >= step && tx < kTile - step && ty < kTile - step;
    if (known)
      next[ty][tx] = Next(chip, now[ty][tx], heat[ty][tx], now[ty][left], now[ty][right], now[up][tx], now[down][tx]);
    __syncthreads();
    if (known) now[ty][tx] = next[ty][tx];
    __syncthreads();
  }
  if (known) out[y * size + x] = now[ty][tx];
}

std::vector<float> Steps(std::vector<float> now, const Input<float>& power, int size, int steps) {
  const Chip chip(size);
  std::vector<float> next(now.size());
  for (int step = 0; step < steps; ++step, now.swap(next)) {
    for (int y = 0; y < size; ++y) {
      const float *row = &now[y * size], *up = y == 0 ? row : row - size, *down = y == size - 1 ? row : row + size;
      for (int x = 0; x < size; ++x) {
        const float left = row[x == 0 ? x : x - 1], right = row[x == size - 1 ? x : x + 1];
        next[y * size + x] = Next(chip, row[x], power[y * size + x], left, right, up[x], down[x]);
      }
    }
  }
  return now;
}

int main(int argc, char** argv) {
  // The paper: 512 x 512, 10 launches (5 to 100 in Fig. 12). It does not say how many steps a launch makes.
  Program program("hsp", argc, argv,
                  {{"size", 128, 512, 2, 8192}, {"launches", 10, 10, 1, 1000}, {"height", 1, 1, 1, 7}});
  const int size = program["size"], launches = program["launches"], height = program["height"];
  const std::size_t count = static_cast<std::size_t>(size) * size;
  const Input<float> temperature(program, "temperature", count, [count] { return UniformValues(count, 320, 345, 1); });
  const Input<float> power(program, "power", count, [count] { return UniformValues(count, 0, 0.001f, 2); });
  const DeviceArray<float> first(count), second(count), device_power(count);
  const HostArray<float> result(count);

  program.Prelude();
  first.CopyFrom(temperature.data());
  device_power.CopyFrom(power.data());
  const DeviceArray<float>*in = &first, *out = &second;
  const int ctas = Ctas(size, kTile - 2 * height);
  for (int launch = 0; launch < launches; ++launch, std::swap(in, out)) {
    Heat<<<dim3(ctas, ctas), dim3(kTile, kTile)>>>(device_power, *in, *out, size, height, Chip(size));
    program.Launched();
  }
  in->CopyTo(result.data());
  program.Postlude(result);

  return program.Finish(Steps(temperature.Values(), power, size, launches * height));
}
