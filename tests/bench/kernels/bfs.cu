// One level of a breadth-first search; *changed is set when a vertex was found.
KERNEL BfsLevel(const int* starts, const int* edges, int* distance, int* changed, int level, int n) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n || distance[v] != level) return;
  for (int k = starts[v]; k < starts[v + 1]; ++k) {
    const int to = edges[k];
    if (distance[to] < 0) distance[to] = level + 1, *changed = 1;
  }
}
KERNEL BfsInit(int* distance, int n) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < n) distance[v] = v == 0 ? 0 : -1;
}
