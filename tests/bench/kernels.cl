// The benchmark kernels as OpenCL C: the same algorithms as kernels.cu, work group for block.
#pragma OPENCL FP_CONTRACT OFF

kernel void Copy(global const float* in, global float* out, int n) {
  const int i = get_global_id(0);
  if (i < n) out[i] = in[i];
}

kernel void VectorAdd(global const float* a, global const float* b, global float* c, int n) {
  const int i = get_global_id(0);
  if (i < n) c[i] = a[i] + b[i];
}

kernel void FmaLoop(global float* out, int rounds) {
  const int i = get_global_id(0);
  float a = i * 1e-6f, b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < rounds; ++k) {
    a = fma(a, 0.999f, 0.5f);
    b = fma(b, 0.998f, 0.25f);
    c = fma(c, 0.997f, 0.125f);
    d = fma(d, 0.996f, 0.0625f);
  }
  out[i] = a + b + c + d;
}

kernel void Stencil(global const float* in, global float* out, int width, int height) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  const int i = y * width + x;
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

kernel void MatMulNaive(global const float* a, global const float* b, global float* c, int n) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fma(a[y * n + k], b[k * n + x], sum);
  c[y * n + x] = sum;
}

kernel void MatMulTiled(global const float* a, global const float* b, global float* c, int n) {
  local float sa[16][16], sb[16][16];
  const int tx = get_local_id(0), ty = get_local_id(1), x = get_global_id(0), y = get_global_id(1);
  float sum = 0;
  for (int tile = 0; tile < n; tile += 16) {
    sa[ty][tx] = a[y * n + tile + tx];
    sb[ty][tx] = b[(tile + ty) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < 16; ++k) sum = fma(sa[ty][k], sb[k][tx], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = sum;
}

// OpenCL C 1.2 has no shuffles: the tree goes on in local memory.
kernel void Reduce(global const int* in, global int* out, int n) {
  local int sums[256];
  const int t = get_local_id(0), i = get_group_id(0) * 512 + t;
  sums[t] = (i < n ? in[i] : 0) + (i + 256 < n ? in[i + 256] : 0);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) atomic_add(out, sums[0]);
}

kernel void Histogram(global const uint* in, global uint* out, int n) {
  local uint bins[256];
  const int t = get_local_id(0);
  bins[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_add(&bins[in[i] & 255], 1u);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&out[t], bins[t]);
}

kernel void NBody(global const float* px, global const float* py, global const float* pz, global const float* mass, global float* ax,
                  global float* ay, global float* az, int n) {
  local float sx[256], sy[256], sz[256], sm[256];
  const int t = get_local_id(0), i = get_global_id(0);
  const float x = px[i], y = py[i], z = pz[i];
  float fx = 0, fy = 0, fz = 0;
  for (int tile = 0; tile < n; tile += 256) {
    sx[t] = px[tile + t], sy[t] = py[tile + t], sz[t] = pz[tile + t], sm[t] = mass[tile + t];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 256; ++k) {
      const float dx = sx[k] - x, dy = sy[k] - y, dz = sz[k] - z;
      const float distance2 = dx * dx + dy * dy + dz * dz + 0.01f;
      const float inverse = 1.0f / sqrt(distance2), factor = sm[k] * inverse * inverse * inverse;
      fx += dx * factor, fy += dy * factor, fz += dz * factor;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  ax[i] = fx, ay[i] = fy, az[i] = fz;
}

float Normal(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
  const float tail = 0.39894228f * exp(-0.5f * d * d) *
                     (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}
kernel void BlackScholes(global const float* price, global const float* strike, global const float* years, global float* call,
                         global float* put, int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const float rate = 0.02f, volatility = 0.3f, s = price[i], x = strike[i], t = years[i], root = sqrt(t);
  const float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root), d2 = d1 - volatility * root;
  const float n1 = Normal(d1), n2 = Normal(d2), discount = x * exp(-rate * t);
  call[i] = s * n1 - discount * n2;
  put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
}

kernel void SpMV(global const int* starts, global const int* columns, global const float* values, global const float* x, global float* y,
                 int rows) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  float sum = 0;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum = fma(values[k], x[columns[k]], sum);
  y[row] = sum;
}

kernel void BfsLevel(global const int* starts, global const int* edges, global int* distance, global int* changed, int level, int n) {
  const int v = get_global_id(0);
  if (v >= n || distance[v] != level) return;
  for (int k = starts[v]; k < starts[v + 1]; ++k) {
    const int to = edges[k];
    if (distance[to] < 0) distance[to] = level + 1, *changed = 1;
  }
}
kernel void BfsInit(global int* distance, int n) {
  const int v = get_global_id(0);
  if (v < n) distance[v] = v == 0 ? 0 : -1;
}

kernel void BitonicStep(global uint* keys, int size, int stride) {
  const int t = get_global_id(0);
  const int i = 2 * t - (t & (stride - 1)), j = i + stride;
  const uint a = keys[i], b = keys[j];
  if ((a > b) == ((i & size) == 0)) keys[i] = b, keys[j] = a;
}
kernel void CopyKeys(global const uint* in, global uint* out, int n) {
  const int i = get_global_id(0);
  if (i < n) out[i] = in[i];
}

kernel void Collatz(global uint* out, int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
  uint v = ((uint)i * 2654435761u >> 12) + 1, steps = 0;
  while (v != 1 && steps < 1000) v = v & 1 ? 3 * v + 1 : v / 2, ++steps;
  out[i] = steps;
}
