// Linked with the driver: a library, and with MAIN a program.
extern "C" {
int cuInit(unsigned flags);
int cuDeviceGetCount(int* count);
int nvmlInit_v2();

int Use(int) {
  int count = 0;
  if (cuInit(0) != 0 || cuDeviceGetCount(&count) != 0 || count != 1) return 1;
  return nvmlInit_v2() == 0 ? 0 : 2;
}
}

#ifdef MAIN
int main() { return Use(0); }
#endif
