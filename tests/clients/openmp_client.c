// Sums and a loop over a million numbers, by OpenMP or OpenACC on the GPU, against the host's.
#include <stdio.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#else
#include <openacc.h>
#endif

#define N 1000000

static int Check(const char* what, double got, double want) {
  printf("%s: %f, want %f\n", what, got, want);
  return got != want;
}

static double Sum(const float* a) {
  double sum = 0;
#ifdef _OPENMP
#pragma omp target teams distribute parallel for map(to : a[0 : N]) reduction(+ : sum)
#else
#pragma acc parallel loop copyin(a[0 : N]) reduction(+ : sum)
#endif
  for (int i = 0; i < N; ++i) sum += a[i];
  return sum;
}

static void Combine(float* a, const float* b) {
#ifdef _OPENMP
#pragma omp target teams distribute parallel for map(tofrom : a[0 : N]) map(to : b[0 : N])
#else
#pragma acc parallel loop copy(a[0 : N]) copyin(b[0 : N])
#endif
  for (int i = 0; i < N; ++i) a[i] = 2 * a[i] + b[i];
}

/// 0: on the GPU.
static double Where(void) {
#ifdef _OPENMP
  int host = 1;
#pragma omp target map(from : host)
  host = omp_is_initial_device();
  return host;
#else
  return acc_get_device_type() == acc_device_nvidia ? 0 : 1;
#endif
}

int main(void) {
  float *a = malloc(N * sizeof(float)), *b = malloc(N * sizeof(float));
  double first = 0, second = 0;
  for (int i = 0; i < N; ++i) {
    a[i] = (float)(i % 7);
    b[i] = (float)(i % 5);
    first += i % 7;
    second += 2 * (i % 7) + i % 5;
  }
  int bad = Check("sum", Sum(a), first);
  Combine(a, b);
  bad += Check("sum of combinations", Sum(a), second);
  bad += Check("on the host", Where(), 0);
  free(a);
  free(b);
  return bad;
}
