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
