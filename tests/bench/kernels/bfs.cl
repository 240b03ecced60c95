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
