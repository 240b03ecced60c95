kernel void Jacobi3d(global const float* in, global float* out, int width, int height, int depth) {
  const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2), plane = width * height;
  if (x < 1 || y < 1 || z < 1 || x >= width - 1 || y >= height - 1 || z >= depth - 1) return;
  const int i = z * plane + y * width + x;
  out[i] = (1.0f / 6) * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width] + in[i - plane] + in[i + plane]);
}
