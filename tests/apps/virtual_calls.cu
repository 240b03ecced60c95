// Objects made on the device, virtual calls with divergent types, virtual destructors, multiple inheritance.
#include "app.h"

__device__ int g_destroyed;

struct Shape {
  __device__ virtual ~Shape() { atomicAdd(&g_destroyed, 1); }
  __device__ virtual float Area() const = 0;
  __device__ virtual int Corners() const { return 0; }
};
struct Named {
  int name = 1;
  __device__ virtual int Name() const { return name; }
};
struct Circle : Shape {
  float r;
  __device__ explicit Circle(float radius) : r(radius) {}
  __device__ float Area() const override { return 3.0f * r * r; }
};
struct Box : Shape, Named {
  float w, h;
  __device__ Box(float width, float height) : w(width), h(height) { name = 40; }
  __device__ float Area() const override { return w * h; }
  __device__ int Corners() const override { return 4; }
  __device__ int Name() const override { return name + 2; }
};

__global__ void Create(Shape** shapes, Named** names, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  names[i] = nullptr;
  if (i % 3 == 0) {
    Box* box = new Box(i, 2);
    shapes[i] = box, names[i] = box;
  } else {
    shapes[i] = new Circle(i);
  }
}
__global__ void Measure(Shape** shapes, Named** names, float* area, int* info, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  area[i] = shapes[n - 1 - i]->Area();
  info[i] = shapes[i]->Corners() * 1000 + (names[i] ? names[i]->Name() : 0);
}
__global__ void Destroy(Shape** shapes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) delete shapes[i];
}

int main() {
  const int n = 300;
  Buffer<Shape*> shapes(n);
  Buffer<Named*> names(n);
  Buffer<float> area(n);
  Buffer<int> info(n);
  Create<<<3, 128>>>(shapes, names, n);
  Measure<<<3, 128>>>(shapes, names, area, info, n);
  Destroy<<<3, 128>>>(shapes, n);
  CU_LAUNCHED();
  const auto a = area.Read();
  const auto c = info.Read();
  for (int i = 0; i < n; ++i) {
    const float k = n - 1 - i;
    Same("area", i, a[i], (n - 1 - i) % 3 == 0 ? k * 2 : 3.0f * k * k);
    Same("info", i, c[i], i % 3 == 0 ? 4042 : 0);
  }
  int destroyed = 0;
  CU(cudaMemcpyFromSymbol(&destroyed, g_destroyed, sizeof destroyed));
  Same("destroyed", 0, destroyed, n);
  return Verdict();
}
