kernel void Softmax(global const float* in, global float* out, int columns) {
  local float values[256];
  const int t = get_local_id(0);
  global const float* row = in + get_group_id(0) * columns;
  global float* to = out + get_group_id(0) * columns;
  float most = -1e30f, sum = 0;
  for (int i = t; i < columns; i += 256) most = fmax(most, row[i]);
  values[t] = most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) values[t] = fmax(values[t], values[t + step]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  most = values[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = t; i < columns; i += 256) sum += exp(row[i] - most);
  values[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) values[t] += values[t + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float scale = 1.0f / values[0];
  for (int i = t; i < columns; i += 256) to[i] = exp(row[i] - most) * scale;
}
