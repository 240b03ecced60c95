kernel void Search(global const uchar* text, global const uchar* word, global int* places, global int* count, int n,
                   int length) {
  const int i = get_global_id(0);
  if (i > n - length) return;
  int k = 0;
  while (k < length && text[i + k] == word[k]) ++k;
  if (k == length) places[atomic_inc(count)] = i;
}
