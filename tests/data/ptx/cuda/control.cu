// Branches, switches, loops, recursion, function pointers, virtual calls, device new, assert, printf.
#include <cassert>
#include <cstdio>

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float Area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float Area() const override { return side * side; }
};
struct Circle : Shape {
  float radius;
  __device__ explicit Circle(float r) : radius(r) {}
  __device__ float Area() const override { return 3.14159f * radius * radius; }
};

__device__ __noinline__ int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }
__device__ __noinline__ int Add(int a, int b) { return a + b; }
__device__ __noinline__ int Sub(int a, int b) { return a - b; }
typedef int (*Operation)(int, int);
__device__ Operation operations[2] = {Add, Sub};
struct Big {
  int words[9];
  double tail;
};
__device__ __noinline__ Big MakeBig(Big in, int n) {
  in.words[n] += n;
  in.tail *= 2;
  return in;
}

__global__ void Control(float* out, int n, int kind) {
  Shape* shape = kind ? static_cast<Shape*>(new Square(n)) : new Circle(n);
  out[0] = shape->Area();
  delete shape;
  switch (n) {
    case 0: out[1] = 3; break;
    case 1: out[2] = sinf(out[1]); break;
    case 2: out[3] = out[1] * 5; break;
    case 3: out[4] = out[3] + out[2]; break;
    case 4: out[5] = 8; break;
    case 5: out[6] = sqrtf(out[5]); break;
    case 6: out[7] = out[0]; break;
    default: __trap();
  }
  for (int i = 0; i < n; ++i) {
    if (i == kind) continue;
    if (out[i] > 100) break;
    out[i] += Fibonacci(i) + operations[i & 1](i, n);
  }
#pragma unroll 1
  for (int i = 0; i < 10; ++i) out[i] *= 2;
  Big big = {};
  big = MakeBig(big, n);
  out[8] = big.words[kind] + big.tail;
  assert(out[0] >= 0);
  printf("%d %f %s\n", n, out[0], "text");
  char* memory = static_cast<char*>(malloc(n));
  memory[kind] = 1;
  free(memory);
}
