// One Jacobi step in three dimensions; the border stays.
KERNEL Jacobi3d(const float* in, float* out, int width, int height, int depth) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z, plane = width * height;
  if (x < 1 || y < 1 || z < 1 || x >= width - 1 || y >= height - 1 || z >= depth - 1) return;
  const int i = z * plane + y * width + x;
  out[i] = (1.0f / 6) * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width] + in[i - plane] + in[i + plane]);
}
