// MB, Mandelbrot sets (Quinn's textbook): of each pixel of an image, after how many steps z <- z*z + c leaves the
// circle of radius 2, at most
// --cap of them. A task is an image of a part of the plane that is its own: some are in the set, some far from it, so
// that what a task costs varies by the cap. No data go to the device but the kernel's arguments; neighbouring threads
// have neighbouring pixels, and diverge.
#pragma once

#include "pagoda/task.h"

struct MbArguments {
  float left, top, step;
  int side, cap;
  int* counts;
};

__device__ inline void MbWork(const MbArguments& task, int thread, int threads) {
  for (int pixel = thread; pixel < task.side * task.side; pixel += threads) {
    const float cx = fmaf(static_cast<float>(pixel % task.side), task.step, task.left);
    const float cy = fmaf(static_cast<float>(pixel / task.side), task.step, task.top);
    float x = 0, y = 0;
    int count = 0;
    while (count < task.cap && fmaf(x, x, __fmul_rn(y, y)) <= 4) {
      const float next = fmaf(x, x, fmaf(-y, y, cx));
      y = fmaf(__fadd_rn(x, x), y, cy);
      x = next;
      ++count;
    }
    task.counts[pixel] = count;
  }
}
__global__ void Mandelbrot(MbArguments task) {
  MbWork(task, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
__global__ void MandelbrotFused(const MbArguments* tasks) { MbWork(tasks[blockIdx.x], threadIdx.x, blockDim.x); }

PAGODA_HOST inline void MbOnHost(const MbArguments& task) {
  for (int row = 0; row < task.side; ++row) {
    const float cy = std::fmaf(static_cast<float>(row), task.step, task.top);
    for (int column = 0; column < task.side; ++column) {
      const float cx = std::fmaf(static_cast<float>(column), task.step, task.left);
      float x = 0, y = 0, squares = 0;
      int count = 0;
      for (; count < task.cap && squares <= 4; ++count) {
        const float next = std::fmaf(x, x, std::fmaf(-y, y, cx));
        y = std::fmaf(2 * x, y, cy);
        x = next;
        const float square = y * y;
        squares = std::fmaf(x, x, square);
      }
      task.counts[row * task.side + column] = count;
    }
  }
}

class Mb final : public KindOf<MbArguments> {
 public:
  Mb(const Options& options, const char* size)
      : KindOf(Mandelbrot, MandelbrotFused), options_(options), side_(options[size]) {}

  void Describe(Task& task) const override {
    task.size = SizeOf(options_, task.index, side_ / 4, side_, 1);
    task.share = Square(1.0 * task.size / side_);
    task.out_bytes = sizeof(int) * task.size * task.size;
  }
  void Fill(const Task&, char*) const override {}
  void Compute(const Task& task, const char*, char* out) const override { MbOnHost(Viewport(task, out)); }
  MbArguments ArgumentsOf(const Task& task) const override { return Viewport(task, task.out); }

  std::string About(const std::vector<Task>& tasks) const override {
    double least = 1e30, most = 0;
    for (const Task& task : tasks) {
      const int* const counts = reinterpret_cast<const int*>(task.host_out);
      double steps = 0;
      for (int i = 0; i < task.size * task.size; ++i) steps += counts[i];
      least = std::min(least, steps);
      most = std::max(most, steps);
    }
    std::ostringstream text;
    text << "a task has " << static_cast<long>(least) << " to " << static_cast<long>(most) << " steps";
    return text.str();
  }

 private:
  /// A square of the plane, 2 to 1/16 wide, whose middle lies where the set and its neighbourhood are.
  MbArguments Viewport(const Task& task, char* counts) const {
    Random random = RandomOf(options_, task.index);
    const float x = random.Uniform(-1.9f, 0.5f), y = random.Uniform(-1.1f, 1.1f);
    const float width = std::ldexp(2.0f, -static_cast<int>(random.Next() % 6));
    return {x - width / 2, y - width / 2,   width / static_cast<float>(task.size),
            task.size,     options_["cap"], reinterpret_cast<int*>(counts)};
  }

  const Options& options_;
  int side_;
};
