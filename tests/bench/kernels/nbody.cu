// Accelerations of all bodies; x, y, z, mass in four arrays, tiles of 256 bodies in shared memory; n a multiple of 256.
KERNEL NBody(const float* px, const float* py, const float* pz, const float* mass, float* ax, float* ay, float* az,
             int n) {
  __shared__ float sx[256], sy[256], sz[256], sm[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  const float x = px[i], y = py[i], z = pz[i];
  float fx = 0, fy = 0, fz = 0;
  for (int tile = 0; tile < n; tile += 256) {
    sx[t] = px[tile + t], sy[t] = py[tile + t], sz[t] = pz[tile + t], sm[t] = mass[tile + t];
    __syncthreads();
    for (int k = 0; k < 256; ++k) {
      const float dx = sx[k] - x, dy = sy[k] - y, dz = sz[k] - z;
      const float distance2 = dx * dx + dy * dy + dz * dz + 0.01f;
      const float inverse = 1.0f / sqrtf(distance2), factor = sm[k] * inverse * inverse * inverse;
      fx += dx * factor, fy += dy * factor, fz += dz * factor;
    }
    __syncthreads();
  }
  ax[i] = fx, ay[i] = fy, az[i] = fz;
}
