// Prices of European options; the normal distribution by a polynomial (Abramowitz and Stegun 26.2.17).
__device__ static float Normal(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  const float tail =
      0.39894228f * expf(-0.5f * d * d) *
      (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}
KERNEL BlackScholes(const float* price, const float* strike, const float* years, float* call, float* put, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float rate = 0.02f, volatility = 0.3f, s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
  const float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root),
              d2 = d1 - volatility * root;
  const float n1 = Normal(d1), n2 = Normal(d2), discount = x * expf(-rate * t);
  call[i] = s * n1 - discount * n2;
  put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
}
