// 2D textures: point and linear filtering, all address modes, normalised coordinates, formats, gather, pitched memory.
#include "texture.h"

__global__ void Sample(cudaTextureObject_t texture, const float2* at, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D<float>(texture, at[i].x, at[i].y);
}
__global__ void Channels(cudaTextureObject_t bytes, cudaTextureObject_t unit, uchar4* out, float4* scaled, int width) {
  const int x = threadIdx.x, y = blockIdx.x;
  out[y * width + x] = tex2D<uchar4>(bytes, x, y);
  scaled[y * width + x] = tex2D<float4>(unit, x + 0.5f, y + 0.5f);
}
__global__ void Gather(cudaTextureObject_t texture, float4* out) {
  out[threadIdx.x] = tex2Dgather<float4>(texture, threadIdx.x + 1.0f, 2.0f, 0);
}

int main() {
  const int width = 17, height = 9, n = 3000;
  std::vector<float> image(width * height);
  for (int i = 0; i < width * height; ++i) image[i] = i * 37 % 64;
  const cudaArray_t array = MakeArray(image, width, height, 0, cudaArrayTextureGather);
  Random random(23);
  struct Mode {
    cudaTextureFilterMode filter;
    cudaTextureAddressMode address;
    bool normalized;
  };
  const Mode modes[] = {
      {cudaFilterModePoint, cudaAddressModeClamp, false},  {cudaFilterModePoint, cudaAddressModeBorder, false},
      {cudaFilterModePoint, cudaAddressModeWrap, true},    {cudaFilterModePoint, cudaAddressModeMirror, true},
      {cudaFilterModeLinear, cudaAddressModeClamp, false}, {cudaFilterModeLinear, cudaAddressModeBorder, false},
      {cudaFilterModeLinear, cudaAddressModeWrap, true},   {cudaFilterModeLinear, cudaAddressModeMirror, true}};
  for (const Mode& mode : modes) {
    std::vector<float2> at(n);
    // Coordinates on a grid of 1/64 texel, off the texel borders, so that no rounding decides.
    for (auto& p : at) {
      p.x = (static_cast<int>(random.Next() % (3 * width * 64)) - width * 64 + 0.5f) / 64,
      p.y = (static_cast<int>(random.Next() % (3 * height * 64)) - height * 64 + 0.5f) / 64;
      if (mode.normalized) p.x /= width, p.y /= height;
    }
    const cudaTextureObject_t texture = MakeTexture(array, mode.filter, mode.address, mode.normalized);
    Buffer<float2> dat(at);
    Buffer<float> out(n);
    Sample<<<(n + 127) / 128, 128>>>(texture, dat, out, n);
    CU_LAUNCHED();
    const auto got = out.Read();
    const auto texel = [&](long x, long y) {
      const int ax = Address(x, width, mode.address), ay = Address(y, height, mode.address);
      return ax < 0 || ay < 0 ? 0.0 : image[ay * width + ax];
    };
    for (int i = 0; i < n; ++i) {
      const double x = at[i].x * (mode.normalized ? width : 1.0), y = at[i].y * (mode.normalized ? height : 1.0);
      if (mode.filter == cudaFilterModePoint) {
        Same("point", i, got[i], static_cast<float>(texel(std::floor(x), std::floor(y))));
      } else {
        const double bx = x - 0.5, by = y - 0.5, fx = bx - std::floor(bx), fy = by - std::floor(by);
        const long ix = std::floor(bx), iy = std::floor(by);
        const double want = (1 - fy) * ((1 - fx) * texel(ix, iy) + fx * texel(ix + 1, iy)) +
                            fy * ((1 - fx) * texel(ix, iy + 1) + fx * texel(ix + 1, iy + 1));
        Near("linear", i, got[i], want, 0, 64 * 2.0 / 256);  // the weights have 8 fractional bits
      }
    }
    CU(cudaDestroyTextureObject(texture));
  }

  std::vector<uchar4> colours(width * height);
  for (int i = 0; i < width * height; ++i) colours[i] = make_uchar4(i, i * 3, 255 - i, i * 7);
  const cudaArray_t colour_array = MakeArray(colours, width, height, 0);
  const auto bytes = MakeTexture(colour_array, cudaFilterModePoint, cudaAddressModeClamp, false);
  const auto unit =
      MakeTexture(colour_array, cudaFilterModeLinear, cudaAddressModeClamp, false, cudaReadModeNormalizedFloat);
  Buffer<uchar4> out(width * height);
  Buffer<float4> scaled(width * height), gathered(8);
  Channels<<<height, width>>>(bytes, unit, out, scaled, width);
  const auto gather = MakeTexture(array, cudaFilterModePoint, cudaAddressModeClamp, false);
  Gather<<<1, 8>>>(gather, gathered);
  CU_LAUNCHED();
  const auto o = out.Read();
  const auto s = scaled.Read(), g = gathered.Read();
  for (int i = 0; i < width * height; ++i) {
    True("uchar4", std::memcmp(&o[i], &colours[i], 4) == 0);
    Near("unit", i, s[i].x, colours[i].x / 255.0, 1e-5), Near("unit w", i, s[i].w, colours[i].w / 255.0, 1e-5);
  }
  for (int i = 0; i < 8; ++i) {
    // Order of gather: (x0, y1), (x1, y1), (x1, y0), (x0, y0) around the point.
    const auto at = [&](int x, int y) { return image[y * width + x]; };
    True("gather", g[i].x == at(i, 2) && g[i].y == at(i + 1, 2) && g[i].z == at(i + 1, 1) && g[i].w == at(i, 1));
  }
  return Verdict();
}
