// All places of a word in a text, a place a thread; *count is how many there are.
KERNEL Search(const unsigned char* text, const unsigned char* word, int* places, int* count, int n, int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > n - length) return;
  int k = 0;
  while (k < length && text[i + k] == word[k]) ++k;
  if (k == length) places[atomicAdd(count, 1)] = i;
}
